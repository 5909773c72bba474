"""Registration: one broker of each id, an epoch for each of its lives."""

from __future__ import annotations

from random import Random

import pytest

from dataplane.cluster.membership import BrokerIdTakenError, Membership
from dataplane.cluster.paths import BrokerAddress, broker_path, parse_broker
from dataplane.doors import Doors
from tests.simulation.virtual_time import VirtualTime
from tests.simulation.zookeeper import ZooKeeperClient, ZooKeeperServer

ADDRESS = BrokerAddress(1, "127.0.0.1", 20011)


class World:
    def __init__(self) -> None:
        self.time = VirtualTime()
        self.server = ZooKeeperServer(self.time.call_later, lambda: 0.001)

    def member(self, address: BrokerAddress = ADDRESS) -> tuple[Membership, ZooKeeperClient]:
        zookeeper = self.server.connect(2.0)
        doors = Doors(self.time, None, zookeeper, None, Random(1))  # type: ignore[arg-type]
        return Membership(doors, address, 2.0), zookeeper


def test_a_broker_is_found_where_it_says_and_its_epoch_is_the_czxid() -> None:
    world = World()
    member, zookeeper = world.member()
    assert not member.accepts(5)
    world.time.wait(member.start())
    node = world.server.tree.node(broker_path(1))
    assert parse_broker(1, node.data) == ADDRESS
    assert (member.broker_epoch, node.owner) == (node.czxid, zookeeper.session_id())


def test_requests_for_an_earlier_life_are_not_accepted_and_for_a_later_one_are() -> None:
    world = World()
    member, _ = world.member()
    world.time.wait(member.start())
    epoch = member.broker_epoch
    assert [member.accepts(e) for e in (epoch - 1, epoch, epoch + 1, -1)] == [False, True, True, True]


def test_a_broker_registers_again_after_its_session_expired_and_accepts_nothing_in_between() -> None:
    world = World()
    member, zookeeper = world.member()
    epochs: list[int] = []
    member.on_registered(epochs.append)
    world.time.wait(member.start())
    zookeeper.cut()
    world.time.run(10)
    assert member.registered  # it cannot know
    zookeeper.resume()
    world.time.until(lambda: not member.registered)
    assert not member.accepts(-1)
    world.time.until(lambda: member.registered)
    assert epochs == [epochs[0], member.broker_epoch]
    assert epochs[1] > epochs[0]


def test_a_broker_waits_for_the_end_of_its_previous_life() -> None:
    world = World()
    first, zookeeper = world.member()
    world.time.wait(first.start())
    zookeeper.kill()
    began = world.time.monotonic()
    second, _ = world.member()
    world.time.wait(second.start())
    assert 1.5 < world.time.monotonic() - began < 2.5
    assert second.broker_epoch > first.broker_epoch


def test_a_second_broker_with_the_same_id_is_refused() -> None:
    world = World()
    first, _ = world.member()
    world.time.wait(first.start())
    second, _ = world.member(BrokerAddress(1, "127.0.0.1", 20099))
    with pytest.raises(BrokerIdTakenError):
        world.time.wait(second.start())
    assert parse_broker(1, world.server.tree.node(broker_path(1)).data) == ADDRESS
    assert first.registered


def test_a_registration_whose_answer_was_lost_is_recognised() -> None:
    world = World()
    member, zookeeper = world.member()
    started = member.start()
    world.time.until(lambda: world.server.tree.find(broker_path(1)) is not None)
    zookeeper.suspend()
    world.time.run(0.5)
    assert not started.done
    zookeeper.resume()
    world.time.wait(started)
    assert member.broker_epoch == world.server.tree.node(broker_path(1)).czxid
