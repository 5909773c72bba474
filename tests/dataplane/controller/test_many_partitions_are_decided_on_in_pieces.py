"""A broker's death concerns many partitions at once: the controller decides, writes and tells in pieces."""

from __future__ import annotations

from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future, sleep
from tests.dataplane.controller.cluster import ControlledCluster

COUNT = 700


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
