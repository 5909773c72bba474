"""Metadata keeps count of what each instance has while updates come, and takes long updates over in steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from dataplane.cluster.in_order import at_once
from dataplane.cluster.metadata import FULL_UPDATE, INCREMENTAL_UPDATE, Metadata
from dataplane.cluster.paths import LEADER_DURING_DELETE, NO_LEADER
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import control
from dataplane.records.steps import Steps
from dataplane.tasks import Future
from quota.contracts.namespace import split_physical

MINE, THEIRS = "k3v9x2qa", "zzzzzzzz"
Said = tuple[str, int, int, int] | tuple[str, int, int, int, tuple[int, ...]]
"""Topic, its id, partition, leader; and which of the replicas 1 and 2 are in sync, where it is not both."""


def update(*partitions: Said, kind: int = INCREMENTAL_UPDATE, epoch: int = 1) -> control.UpdateMetadataRequest:
    topics: dict[tuple[str, int], list[control.UpdateMetadataPartitionState]] = {}
    for name, topic_id, index, leader, *isr in partitions:
        state = control.UpdateMetadataPartitionState(
            partition_index=index, leader=leader, replicas=(1, 2), isr=isr[0] if isr else (1, 2)
        )
        topics.setdefault((name, topic_id), []).append(state)
    return control.UpdateMetadataRequest(
        controller_id=1,
        controller_epoch=epoch,
        type=kind,
        topic_states=tuple(
            control.UpdateMetadataTopicState(name, UUID(int=topic_id), tuple(states))
            for (name, topic_id), states in topics.items()
        ),
        live_brokers=(
            control.UpdateMetadataBroker(id=1, endpoints=(control.UpdateMetadataEndpoint(9001, "h", "INTERNAL", 2),)),
        ),
    )


# --- by owner ---------------------------------------------------------------------------------------------------------


def test_what_happens_to_other_instances_costs_an_instances_list_nothing() -> None:
    metadata = Metadata()
    metadata.apply(update((f"{MINE}.b", 1, 0, 1), (f"{MINE}.a", 2, 0, 1), (f"{THEIRS}.x", 3, 0, 1)))
    mine = metadata.topics_of(MINE)
    assert mine == [f"{MINE}.a", f"{MINE}.b"]
    metadata.apply(update((f"{THEIRS}.x", 3, 0, 2), (f"{THEIRS}.y", 4, 0, 1)))
    metadata.apply(update((f"{THEIRS}.x", 3, 0, LEADER_DURING_DELETE)))
    metadata.apply(update((f"{MINE}.a", 2, 0, 2)))  # nor does a new leader of its own
    assert metadata.topics_of(MINE) is mine
    metadata.apply(update((f"{MINE}.c", 5, 0, 1)))
    assert metadata.topics_of(MINE) == [f"{MINE}.a", f"{MINE}.b", f"{MINE}.c"]
    assert mine == [f"{MINE}.a", f"{MINE}.b"]  # whoever reads it in several turns reads one list


_NAMES = [f"{MINE}.a", f"{MINE}.b", f"{THEIRS}.a", "__consumer_offsets"]
_SAID = st.builds(
    lambda topic, life, index, leader, isr: (_NAMES[topic], 10 * topic + life, index, leader, isr),
    st.integers(0, 3),
    st.integers(1, 2),
    st.integers(0, 2),
    st.sampled_from([1, 2, NO_LEADER, LEADER_DURING_DELETE]),
    st.sampled_from([(1,), (1, 2)]),
)
_UPDATES = st.lists(
    st.builds(
        lambda said, full: update(*said, kind=FULL_UPDATE if full else INCREMENTAL_UPDATE),
        st.lists(_SAID, max_size=5, unique_by=lambda each: (each[0], each[2])),
        st.integers(0, 4).map(lambda chance: chance == 0),
    ),
    max_size=8,
)


@given(_UPDATES)
def test_lists_and_counts_are_those_of_the_partitions_after_any_updates(
    updates: list[control.UpdateMetadataRequest],
) -> None:
    metadata = Metadata()
    for each in updates:
        metadata.topics_of(MINE)
        assert metadata.apply(each) is ErrorCode.NONE
    for key in (MINE, THEIRS):
        topics = [topic for topic in metadata.topics() if (owner := split_physical(topic)) and owner[0] == key]
        led = [p for topic in topics for p in metadata.partitions(topic).values() if p.has_leader]
        assert metadata.topics_of(key) == topics
        assert metadata.leaders_of(key) == len(led)
        every = [p for topic in topics for p in metadata.partitions(topic).values()]
        behind = [p for p in led if p.isr == (1,)]
        assert metadata.trouble_of(key) == (len(every) - len(led), len(behind))
    absent: dict[int, list[int]] = {}
    for topic in metadata.topics():
        for p in metadata.partitions(topic).values():
            for broker in p.replicas:
                row = absent.setdefault(broker, [0, 0, 0])
                row[0] += p.has_leader and broker not in p.isr
                row[1] += not p.has_leader
                row[2] += not p.has_leader and topic == "__consumer_offsets"
    assert metadata.absent() == {broker: tuple(row) for broker, row in sorted(absent.items()) if any(row)}
    for topic in metadata.topics():
        topic_id = metadata.topic_id(topic)
        assert topic_id is not None
        assert metadata.topic_of_id(topic_id) in metadata.topics()


# --- in steps ---------------------------------------------------------------------------------------------------------


class Runner:
    """Makes a step when it is told to."""

    def __init__(self) -> None:
        self.under_way: list[tuple[Steps[Any], Future[Any]]] = []

    def __call__(self, steps: Steps[Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.under_way.append((steps, future))
        return future

    def step(self) -> bool:
        if not self.under_way:
            return False
        steps, future = self.under_way[0]
        try:
            next(steps)
        except StopIteration as stop:
            self.under_way.pop(0)
            future.resolve(stop.value)
        return True

    def until(self, condition: Callable[[], object]) -> int:
        steps = 0
        while not condition():
            assert self.step(), "the work is over"
            steps += 1
        return steps


def many(count: int, leader: int, **how: Any) -> control.UpdateMetadataRequest:
    return update(*((f"{MINE}.t{n:04d}", n + 1, index, leader) for n in range(count) for index in (0, 1)), **how)


def leaders(metadata: Metadata) -> dict[str, list[int]]:
    return {topic: [p.leader for p in metadata.partitions(topic).values()] for topic in metadata.topics()}


def test_a_short_update_is_taken_over_at_once() -> None:
    metadata, runner = Metadata(), Runner()
    answer = metadata.take(many(2, 1), runner)
    assert (answer.done, runner.under_way) == (True, [])
    assert len(metadata.topics()) == 2


def test_a_long_update_is_taken_over_topic_by_topic() -> None:
    metadata, runner = Metadata(), Runner()
    metadata.apply(many(500, 1))
    answer = metadata.take(many(500, 2), runner)
    half = runner.until(lambda: [2, 2] in leaders(metadata).values())
    assert [1, 1] in leaders(metadata).values()
    assert not answer.done
    assert half + runner.until(lambda: answer.done) > 10
    assert answer.result() is ErrorCode.NONE
    assert set(map(tuple, leaders(metadata).values())) == {(2, 2)}


def test_a_topic_of_very_many_partitions_is_taken_over_in_steps_and_whole() -> None:
    metadata, runner = Metadata(), Runner()
    metadata.apply(update(*((f"{MINE}.t", 1, index, 1) for index in range(2000))))
    answer = metadata.take(update(*((f"{MINE}.t", 1, index, 2) for index in range(2000))), runner)
    seen = set()
    steps = 0
    while not answer.done:
        seen.add(tuple({p.leader for p in metadata.partitions(f"{MINE}.t").values()}))
        runner.step()
        steps += 1
    assert seen == {(1,), (2,)}  # and never some of both
    assert steps > 20
    assert {p.leader for p in metadata.partitions(f"{MINE}.t").values()} == {2}


def test_a_long_full_update_replaces_everything_in_one_go() -> None:
    metadata, runner = Metadata(), Runner()
    deleted: list[tuple[str, int]] = []
    metadata.on_deleted(deleted.extend)
    metadata.apply(update((f"{MINE}.gone", 9999, 0, 1)))
    before = leaders(metadata)
    answer = metadata.take(many(500, 2, kind=FULL_UPDATE), runner)
    runner.until(lambda: leaders(metadata) != before)
    assert len(metadata.topics()) == 500
    assert not metadata.has_topic(f"{MINE}.gone")
    runner.until(lambda: answer.done)
    assert deleted == [(f"{MINE}.gone", 0)]


def test_what_comes_while_an_update_is_being_taken_over_waits_for_it() -> None:
    metadata, runner = Metadata(), Runner()
    first = metadata.take(many(500, 1), runner)
    short = metadata.take(update((f"{MINE}.t0499", 500, 0, 2)), runner)
    newer = metadata.take(update((f"{MINE}.t0000", 1, 0, 5), epoch=2), runner)
    stale = metadata.take(update((f"{MINE}.t0000", 1, 0, 7)), runner)
    assert not any(each.done for each in (first, short, newer, stale))
    runner.until(lambda: stale.done)
    assert [each.result() for each in (first, short, newer)] == [ErrorCode.NONE] * 3
    assert stale.result() is ErrorCode.STALE_CONTROLLER_EPOCH
    assert leaders(metadata)[f"{MINE}.t0499"] == [2, 1]
    assert leaders(metadata)[f"{MINE}.t0000"] == [5, 1]


def test_a_thousand_updates_that_wait_do_not_stand_on_each_others_stack() -> None:
    metadata, runner = Metadata(), Runner()
    first = metadata.take(many(100, 1), runner)
    answers = [metadata.take(update((f"{MINE}.t0000", 1, 0, 2)), runner) for _ in range(2000)]
    runner.until(lambda: first.done)
    assert all(answer.result() is ErrorCode.NONE for answer in answers)


def test_an_update_that_fails_does_not_hold_up_those_behind_it() -> None:
    metadata, runner = Metadata(), Runner()

    def fail(_: object) -> None:
        raise OSError("planted")

    metadata.on_deleted(fail)
    metadata.apply(update((f"{MINE}.gone", 9999, 0, 1)))
    first = metadata.take(many(100, 1, kind=FULL_UPDATE), at_once)
    second = metadata.take(update((f"{MINE}.t0000", 1, 0, 2)), runner)
    assert isinstance(first.error, OSError)
    assert second.result() is ErrorCode.NONE
