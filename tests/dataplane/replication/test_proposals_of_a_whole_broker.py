"""A broker dies, and another has thousands of ISRs to shrink: it asks for some at a time, and for all in the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from dataplane.replication.isr import MOST_TOGETHER, IsrChanges
from dataplane.tasks import Future
from tests.support.virtual_loop import VirtualNetwork

TOPIC_ID = UUID(int=7)
ISR = (1, 2)


class State:
    """As much of a partition's state as a proposal needs."""

    def __init__(self) -> None:
        self.leader_epoch, self.partition_epoch = 1, 3
        self.proposed_isr: tuple[int, ...] | None = None
        self.is_odd = False  # neither yes nor no is said to it
        self.raises: Exception | None = None

    def propose(self, isr: tuple[int, ...]) -> None:
        self.proposed_isr = isr

    def isr_answered(self, _data: object, _now: float) -> bool:
        if self.raises is not None:
            raise self.raises
        if not self.is_odd:
            self.proposed_isr = None
        return self.is_odd

    def remote(self, _broker: int) -> None:
        return None


class World:
    """A leader of many partitions, and a controller that agrees after ten milliseconds."""

    def __init__(self) -> None:
        self.network = VirtualNetwork(1)
        self.loop = self.network.loop("10.0.0.1")
        self.asked: list[int] = []
        self.asked_of: list[int] = []
        self.confirmed: list[int] = []
        self.changes = IsrChanges(1, self.loop, lambda: 9, self.decide)
        self.changes.on_confirmed(lambda partition: self.confirmed.append(partition.index))

    def decide(self, request: AlterPartitionRequest) -> Future[AlterPartitionResponse]:
        [topic] = request.topics
        self.asked.append(len(topic.partitions))
        self.asked_of += [row.partition_index for row in topic.partitions]
        rows = tuple(
            AlterPartitionResponsePartitionData(partition_index=row.partition_index, leader_id=1, isr=row.new_isr)
            for row in topic.partitions
        )
        answer: Future[AlterPartitionResponse] = Future()
        response = AlterPartitionResponse(topics=(AlterPartitionResponseTopicData(topic_id=TOPIC_ID, partitions=rows),))
        self.loop.call_later(0.01, lambda: answer.resolve(response))
        return answer

    def propose(self, count: int, first: int = 0) -> list[Any]:
        partitions = [
            SimpleNamespace(topic="t", topic_id=TOPIC_ID, index=index, state=State())
            for index in range(first, first + count)
        ]
        for partition in partitions:
            self.changes.propose(partition, ISR)  # type: ignore[arg-type]
        return partitions


def test_one_request_holds_no_more_than_a_turn_can_bear() -> None:
    world = World()
    world.loop.call_soon(lambda: world.propose(2_000))
    world.network.run_for(1)
    assert world.asked == [MOST_TOGETHER] * (2_000 // MOST_TOGETHER)
    assert world.confirmed == list(range(2_000))


def test_many_that_were_overtaken_meanwhile_do_not_keep_those_behind_them_from_being_asked() -> None:
    world = World()

    def propose() -> None:
        for partition in world.propose(1_000)[:600]:
            partition.state.leader_epoch = 2

    world.loop.call_soon(propose)
    world.network.run_for(1)
    assert sorted(world.confirmed) == list(range(600, 1_000))
    assert max(world.asked) <= MOST_TOGETHER


def test_those_that_are_answered_neither_yes_nor_no_stand_in_nobodys_way() -> None:
    world = World()
    made: list[Any] = []

    def propose() -> None:
        made.extend(world.propose(1_000))
        for partition in made[:300]:
            partition.state.is_odd = True

    world.loop.call_soon(propose)
    world.network.run_for(0.2)
    assert sorted(world.confirmed) == list(range(300, 1_000))
    world.network.run_for(10)
    assert len(world.asked) < 60, "they are asked again now and then"
    for partition in made[:300]:
        partition.state.is_odd = False
    world.network.run_for(3)
    assert sorted(world.confirmed) == list(range(1_000))


def test_a_bug_in_taking_one_answer_leaves_the_others_theirs(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    made: list[Any] = []

    def propose() -> None:
        made.extend(world.propose(600))
        made[3].state.raises = LookupError("a bug")

    world.loop.call_soon(propose)
    world.network.run_for(0.2)
    assert sorted(world.confirmed) == [index for index in range(600) if index != 3]
    assert "was not taken" in caplog.text
    made[3].state.raises = None
    world.network.run_for(3)
    assert sorted(world.confirmed) == list(range(600))


def test_one_whose_answer_cannot_be_taken_is_asked_again_once_a_second_however_well_it_goes_with_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    [broken] = world.propose(1)
    broken.state.raises = LookupError("a bug")
    for number in range(1, 51):
        world.loop.call_later(number / 10, lambda number=number: world.propose(1, number))  # type: ignore[misc]
    world.network.run_for(5.5)
    assert sorted(world.confirmed) == list(range(1, 51))
    assert 5 <= world.asked_of.count(0) <= 6
    assert caplog.text.count("was not taken") == world.asked_of.count(0)
