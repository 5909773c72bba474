"""Producer ids: each is given out once in the cluster, and nobody waits for a block that could have been claimed before."""

from __future__ import annotations

import pytest

from dataplane.tasks import Task
from dataplane.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from tests.simulation.virtual_time import VirtualTime
from tests.simulation.zookeeper import ZooKeeperServer


class World:
    def __init__(self) -> None:
        self.time = VirtualTime()
        self.server = ZooKeeperServer(self.time.call_later, lambda: 0.001)
        self.zookeepers = [self.server.connect() for _ in range(2)]
        self.ids = [ProducerIds(zookeeper, number) for number, zookeeper in enumerate(self.zookeepers, 1)]
        self.time.run(1.0)

    def asked(self, broker: int, count: int) -> list[Task[int]]:
        return [Task(self.ids[broker].next(), "next") for _ in range(count)]

    def given(self, broker: int, count: int) -> list[int]:
        tasks = self.asked(broker, count)
        self.time.run(1.0)
        return [task.result() for task in tasks]


@pytest.fixture
def world() -> World:
    return World()


def test_no_id_is_given_twice_by_whichever_broker(world: World) -> None:
    rounds = [world.given(broker, count) for count in (1, BLOCK_SIZE, 3, 2 * BLOCK_SIZE + 7) for broker in (0, 1)]
    given = [each for some in rounds for each in some]
    assert len(set(given)) == len(given)


def test_the_next_block_is_claimed_before_one_is_used_up(world: World) -> None:
    world.given(0, BLOCK_SIZE - 10)
    tasks = world.asked(0, 20)
    assert all(task.done for task in tasks), "ten of them are of the next block, which is there"


def test_more_than_a_block_holds_may_wait_at_once(world: World) -> None:
    assert sorted(world.given(0, 3 * BLOCK_SIZE)) == list(range(3 * BLOCK_SIZE))


def test_a_block_that_could_not_be_claimed_ahead_is_claimed_when_it_is_needed(world: World) -> None:
    world.given(0, BLOCK_SIZE // 2)
    world.zookeepers[0].suspend()
    here = world.asked(0, BLOCK_SIZE // 2)
    assert all(task.done for task in here)
    world.time.run(1.0)
    world.zookeepers[0].resume()
    assert world.given(0, 1) == [BLOCK_SIZE]
