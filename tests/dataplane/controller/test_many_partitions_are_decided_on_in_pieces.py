"""A broker's death concerns many partitions at once: the controller decides, writes and tells in pieces."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest

from dataplane.controller import channel
from dataplane.controller.controller import NewTopic
from dataplane.controller.store import Store
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future, Task, sleep
from tests.dataplane.controller.cluster import ControlledCluster

COUNT = 700
TOPICS, PARTITIONS_EACH = 400, 5
AT_MOST_IN_ONE_TURN = 200
"""Topics that are asked for, or partitions that are told of."""


def _pauses(cluster: ControlledCluster, part: str = "_leaders") -> list[float]:
    """When this part of the controller that is in office lets the loop turn, from now on."""
    term = cluster.controller().controller._term
    assert term is not None
    pauses: list[float] = []

    def pause() -> Future[None]:
        pauses.append(cluster.time.monotonic())
        return sleep(cluster.time, 0.0)

    getattr(term, part)._pause = pause
    return pauses


def test_a_brokers_death_is_decided_in_pieces_and_wholly() -> None:
    cluster = ControlledCluster(4, rebalance_s=1000)
    others = [broker.id for broker in cluster.others(cluster.controller().id)]
    dies, first, second = others
    replicas = dict.fromkeys(range(COUNT), (dies, first, second))
    assert cluster.create("t", assignment=replicas).error is ErrorCode.NONE
    pauses = _pauses(cluster)
    cluster.kill(dies)
    cluster.run(6)
    assert len(pauses) >= COUNT / 100 + 2
    for index in range(COUNT):
        state = cluster.state("t", index)
        assert (state.leader, state.isr) == (first, (first, second))
        assert cluster.brokers[first].leaderships["t", index].leader == first
        known = cluster.brokers[second].metadata.partition("t", index)
        assert known is not None
        assert known.leader == first


def test_a_topic_of_many_partitions_is_started_in_pieces_and_shown_whole() -> None:
    cluster = ControlledCluster(3)
    pauses = _pauses(cluster)
    shown = set()
    for broker in cluster.brokers.values():
        broker.metadata.on_updated(lambda broker=broker: shown.add(len(broker.metadata.partitions("t"))))  # type: ignore[misc]
    assert cluster.create("t", partitions=COUNT).error is ErrorCode.NONE
    assert len(pauses) >= COUNT / 200
    assert shown <= {0, COUNT}
    assert all(len(broker.leaderships) == COUNT for broker in cluster.brokers.values())


def test_where_the_partitions_of_one_topic_go_is_decided_in_pieces() -> None:
    cluster = ControlledCluster(3)
    pauses = _pauses(cluster, "_topics")
    assert cluster.create("placed", partitions=4_000).error is ErrorCode.NONE
    after_placing = len(pauses)
    assert after_placing >= 4_000 / 400
    assert cluster.create("chosen", assignment=dict.fromkeys(range(4_000), (1, 2, 3))).error is ErrorCode.NONE
    assert len(pauses) - after_placing >= 4_000 / 400


def test_a_term_that_ends_between_two_pieces_leaves_the_rest_to_the_next() -> None:
    cluster = ControlledCluster(4, rebalance_s=1000)
    controller = cluster.controller()
    dies, first, second = (broker.id for broker in cluster.others(controller.id))
    cluster.create("t", assignment=dict.fromkeys(range(COUNT), (dies, first, second)))
    pauses = _pauses(cluster)
    cluster.kill(dies)
    cluster.time.until(lambda: len(pauses) >= 9)
    cluster.kill(controller.id)
    cluster.run(10)
    assert {cluster.state("t", index).leader for index in range(COUNT)} == {first}
    assert all(cluster.brokers[first].leaderships["t", index].leader == first for index in range(COUNT))


def test_looking_for_leaders_to_give_back_lets_the_loop_turn() -> None:
    cluster = ControlledCluster(3, rebalance_s=1.0)
    for n in range(3):
        cluster.create(f"t{n}", assignment=dict.fromkeys(range(1000), (1,)))
    pauses = _pauses(cluster)
    cluster.run(1.5)
    assert pauses


def _in_turns(cluster: ControlledCluster, patch: pytest.MonkeyPatch, owner: Any, name: str) -> Counter[int]:
    """How often a function is called in each turn of the loop, from now on."""
    called: Counter[int] = Counter()
    original = getattr(owner, name)

    def counting(*args: Any, **named: Any) -> Any:
        called[cluster.time.turn_number] += 1
        return original(*args, **named)

    patch.setattr(owner, name, counting)
    return called


def _many_topics(brokers: int) -> ControlledCluster:
    cluster = ControlledCluster(brokers, rebalance_s=1000)
    wanted = [NewTopic(f"t{n:03}", PARTITIONS_EACH, 3) for n in range(TOPICS)]
    outcomes = cluster.wait(Task(cluster.controller().controller.create_topics(wanted)))
    assert {outcome.error for outcome in outcomes} == {ErrorCode.NONE}
    return cluster


def test_a_controller_takes_office_in_pieces_and_tells_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _many_topics(4)
    dies = cluster.controller()
    others = cluster.others(dies.id)
    for broker in others:
        broker.leaderships.clear()
    read = _in_turns(cluster, monkeypatch, Store, "_topic")
    seen = _in_turns(cluster, monkeypatch, channel, "_metadata")
    led = _in_turns(cluster, monkeypatch, channel, "_leadership")
    cluster.kill(dies.id)
    cluster.run(10)
    assert read.total() >= TOPICS
    assert seen.total() >= TOPICS * PARTITIONS_EACH
    assert led.total() >= TOPICS * PARTITIONS_EACH
    for called in (read, seen, led):
        assert max(called.values()) <= AT_MOST_IN_ONE_TURN
    hosted: dict[int, set[tuple[str, int]]] = {broker.id: set() for broker in cluster.brokers.values()}
    for topic, index in product([f"t{n:03}" for n in range(TOPICS)], range(PARTITIONS_EACH)):
        state = cluster.state(topic, index)
        for broker in others:
            known = broker.metadata.partition(topic, index)
            assert known is not None
            assert (known.leader, known.isr, dies.id in known.offline) == (
                state.leader,
                state.isr,
                dies.id in known.replicas,
            )
            for replica in known.replicas:
                hosted[replica].add((topic, index))
    for broker in others:
        assert broker.leaderships.keys() == hosted[broker.id]
        for (topic, index), led in broker.leaderships.items():
            assert (led.leader, led.leader_epoch) == (
                cluster.state(topic, index).leader,
                cluster.state(topic, index).leader_epoch,
            )


def test_a_broker_that_comes_is_told_of_everything_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _many_topics(3)
    comes = next(broker for broker in cluster.brokers.values() if broker is not cluster.controller()).id
    cluster.kill(comes)
    cluster.run(6)
    seen = _in_turns(cluster, monkeypatch, channel, "_metadata")
    led = _in_turns(cluster, monkeypatch, channel, "_leadership")
    come = cluster.start(comes)
    cluster.run(6)
    assert max(seen.values()) <= AT_MOST_IN_ONE_TURN
    assert max(led.values()) <= AT_MOST_IN_ONE_TURN
    assert len(come.leaderships) == TOPICS * PARTITIONS_EACH
    assert len(come.metadata.topics()) == TOPICS


def test_topics_are_read_in_the_order_of_their_names_however_late_one_is_answered() -> None:
    cluster = _many_topics(3)
    term = cluster.controller().controller._term
    assert term is not None
    names = [f"t{n:03}" for n in reversed(range(TOPICS))]
    found = cluster.wait(Task(term._store.topics(["gone", *names])))
    assert [topic.name for topic in found] == names
