"""Connections of many instances are closed: one piece of work, of which no instance has more than its part."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.slices import INTERNAL, Slices
from dataplane.tenancy.closings import Closings
from dataplane.tenancy.instance import Instance, UnclosedError
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork

NEAR, FAR = "10.0.0.1", "192.0.2.1"
ROUTE = Route("default", {1: Endpoint(("10.0.0.1", 9100), ("203.0.113.9", 9100))})
WIDE = InstanceSpec("ins-aaaabbbb", 1, InstanceState.RUNNING, Limits(None, None, None, None), ("0.0.0.0/0",), (ROUTE,))
NARROW = replace(WIDE, whitelist=("10.0.0.0/8",))


class Connection:
    def __init__(self, peer):
        self.session = SimpleNamespace(peer=peer, route="default", user=None, issuer=None)
        self.is_open = True
        self.closes = 0

    def close(self):
        self.closes += 1
        self.is_open = False


class Stuck(Connection):
    def close(self):
        raise LookupError("a bug")


def connect(instance, kind=Connection, peer=FAR):
    connection = kind(peer)
    instance.connected(connection)
    return connection


class World:
    def __init__(self, *, sliced=True):
        self.network = VirtualNetwork(1)
        self.slices = Slices(self.network.loop("10.0.0.1"), ImmediateBackground())
        self.over = []
        self.closings = Closings(self.slices if sliced else None, lambda *told: self.over.append(told))

    def instance(self, connections):
        instance = Instance(WIDE)
        instance.all_that_came = [connect(instance) for _ in range(connections)]
        return instance

    def close(self, instance):
        self.closings.begin(instance, instance.close_connections())

    def told(self):
        return [instance for instance, _ in self.over]


@pytest.fixture
def world():
    return World()


def test_however_many_instances_end_together_other_work_of_the_clusters_own_finds_its_places(world):
    instances = [world.instance(300) for _ in range(12)]
    for instance in instances:
        world.close(instance)
    begun = [world.slices.run(INTERNAL, iter_of(100)).has_begun for _ in range(7)]
    assert begun == [True] * 7
    world.network.run_for(1)
    assert not any(each.is_open for instance in instances for each in instance.all_that_came)
    assert world.over == [(instance, None) for instance in instances]


def iter_of(steps):
    for _ in range(steps):
        yield


def test_a_small_instance_does_not_wait_for_a_large_one(world):
    large, small = world.instance(1_000), world.instance(3)
    world.close(large)
    world.close(small)
    assert (large in world.closings, small in world.closings) == (True, True)
    world.network.run_for(1)
    assert world.told() == [small, large]
    assert large not in world.closings


def test_one_without_connections_is_over_at_once_however_busy_the_broker_is(world):
    for _ in range(8):
        world.slices.run(INTERNAL, iter_of(1_000))
    instance = world.instance(0)
    world.close(instance)
    assert world.told() == [instance]


def test_without_slices_all_are_closed_at_once():
    world = World(sliced=False)
    instance = world.instance(300)
    world.close(instance)
    assert not any(each.is_open for each in instance.all_that_came)
    assert world.told() == [instance]


def test_changes_of_an_instance_whose_connections_are_being_closed_do_not_pile_up(world, monkeypatch):
    """A tenant may change its whitelist as often as it likes."""
    looks, real = [], Instance.ends
    monkeypatch.setattr(Instance, "ends", lambda *of: looks.append(1) or real(*of))
    instance = world.instance(1_000)
    for _ in range(50):
        world.closings.begin(instance, instance.apply(NARROW))
        world.closings.begin(instance, instance.apply(WIDE))
    world.closings.begin(instance, instance.apply(NARROW))
    world.network.run_for(1)
    assert not any(each.is_open for each in instance.all_that_came)
    assert len(looks) <= 2_000
    assert world.told() == [instance]


def test_what_changes_meanwhile_is_seen_to_and_only_then_it_is_over(world):
    instance = world.instance(300)
    near = connect(instance, peer=NEAR)
    world.closings.begin(instance, instance.apply(NARROW))
    world.closings.begin(instance, instance.apply(replace(NARROW, whitelist=())))
    world.network.run_for(1)
    assert not near.is_open
    assert world.told() == [instance]


def test_one_that_cannot_be_closed_keeps_no_other_from_it_and_is_served_no_more(world, caplog):
    instance = Instance(WIDE)
    before, stuck, behind = connect(instance), connect(instance, Stuck), connect(instance)
    world.close(instance)
    world.network.run_for(1)
    assert (before.is_open, stuck.is_open, behind.is_open) == (False, True, False)
    assert instance.ends(stuck.session)
    assert "could not be closed" in caplog.text
    assert [(whose, type(error)) for whose, error in world.over] == [(instance, UnclosedError)], (
        "it is not as if all were closed"
    )


def test_when_one_that_could_not_be_closed_has_gone_by_itself_nobody_waits_for_it(world):
    """An instance that is deleted then would be leaving for ever: no pass would be begun, and none is under way."""
    instance = Instance(WIDE)
    stuck = connect(instance, Stuck)
    world.closings.begin(instance, instance.apply(NARROW))
    world.network.run_for(1)
    instance.disconnected(stuck)
    world.close(instance)
    world.network.run_for(1)
    assert [type(error) for _, error in world.over] == [UnclosedError, type(None)]
    assert not instance.has_endings


def test_one_that_is_closed_at_the_second_attempt_is_no_failure(world):
    """Something changes while its instance's connections are looked at, so it is looked at again."""
    instance = Instance(WIDE)
    stuck = connect(instance, Stuck)
    for _ in range(300):
        connect(instance)
    world.closings.begin(instance, instance.apply(NARROW))
    assert instance in world.closings
    stuck.close = lambda: instance.disconnected(stuck)
    world.closings.begin(instance, instance.apply(replace(NARROW, whitelist=())))
    world.network.run_for(1)
    assert world.over == [(instance, None)]
    assert not instance.has_endings


def test_a_bug_in_the_pass_of_one_is_told_and_keeps_no_other_from_its_end(world, caplog):
    broken, sound = world.instance(3), world.instance(300)

    def steps():
        yield
        raise LookupError("a bug")

    broken.close_connections()
    world.closings.begin(broken, steps())
    world.close(sound)
    world.network.run_for(1)
    assert [(instance, type(error)) for instance, error in world.over] == [(broken, LookupError), (sound, type(None))]
    assert "were not closed" in caplog.text


def test_a_bug_of_whoever_is_told_keeps_no_other_from_its_end(caplog):
    world = World()
    real = world.closings._over
    world.closings._over = lambda *told: (real(*told), 1 // (len(world.over) - 1))
    instances = [world.instance(300) for _ in range(3)]
    for instance in instances:
        world.close(instance)
    world.network.run_for(1)
    assert world.told() == instances
    assert "ZeroDivisionError" in caplog.text
