"""Fetches that wait for bytes, produces that wait for the high watermark."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.waiting import TICK_S
from dataplane.storage.errors import OffsetOutOfRangeError
from tests.dataplane.replication.cluster import ReplicatedCluster


class Wakes:
    def __init__(self, cluster: ReplicatedCluster) -> None:
        self.cluster = cluster
        self.times: list[float] = []

    def __call__(self) -> None:
        self.times.append(self.cluster.network.clock.seconds)


def _wait(
    cluster: ReplicatedCluster, min_bytes: int = 1, timeout_s: float = 5.0, *indexes: int, as_replica: bool = False
):
    replicas = cluster[1].replicas
    wakes = Wakes(cluster)
    partitions = [cluster[1].partition(index) for index in indexes or (0,)]
    found = [
        partition.queues.replica_waiters if as_replica else partition.queues.read_waiters for partition in partitions
    ]
    cancel = replicas.waiting.for_bytes(found, min_bytes, timeout_s, wakes).cancel
    return wakes, cancel


def _single() -> ReplicatedCluster:
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    return cluster


def test_a_consumer_is_woken_when_the_high_watermark_moves_and_not_before():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    wakes, _ = _wait(cluster)
    cluster.produce(1, "x", acks=1)
    cluster.run(1)
    assert cluster[1].partition().log.end_offset == 1
    assert wakes.times == []
    cluster.network.heal("b1", "b2")
    cluster.run(1)
    assert len(wakes.times) == 1


def test_a_replica_is_woken_by_the_commit():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.network.cut("b1", "b2")
    wakes, _ = _wait(cluster, as_replica=True)
    cluster.produce(1, "x", acks=1)
    cluster.run(0.001)
    assert len(wakes.times) == 1
    assert cluster[1].partition().state.high_watermark == 0


def test_bytes_of_several_partitions_count_together():
    cluster = _single()
    cluster.create((1,), index=1)
    wakes, _ = _wait(cluster, 150, 5.0, 0, 1)
    cluster.produce(1, "x" * 20)  # a batch of about 90 bytes
    cluster.run(1)
    assert wakes.times == []
    cluster.produce(1, "x" * 20, index=1)
    cluster.run(1)
    assert len(wakes.times) == 1


def test_at_the_deadline_a_fetch_is_woken_with_what_there_is():
    cluster = _single()
    start = cluster.network.clock.seconds
    wakes, _ = _wait(cluster, 10**6, 0.5)
    cluster.produce(1, "x")
    cluster.run(2)
    assert len(wakes.times) == 1
    assert 0.5 <= wakes.times[0] - start <= 0.5 + 2 * TICK_S


def test_a_fetch_that_gave_up_is_not_woken():
    cluster = _single()
    wakes, cancel = _wait(cluster, 1, 0.5)
    cancel()
    cluster.produce(1, "x")
    cluster.run(2)
    assert wakes.times == []
    assert not cluster[1].partition().queues.read_waiters


def test_a_fetch_looks_again_when_leadership_is_lost():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    wakes, _ = _wait(cluster)
    cluster.elect(2, (1, 2))
    assert len(wakes.times) == 1


def test_a_produce_that_is_not_committed_in_time_is_told_so_once():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    start = cluster.network.clock.seconds
    hasty = cluster.produce(1, "x", timeout_s=0.3)
    patient = cluster.produce(1, "y", timeout_s=30)
    cluster.run(1)
    assert hasty.code == ErrorCode.REQUEST_TIMED_OUT
    assert 0.3 <= hasty.at - start <= 0.33
    assert patient.code is None
    cluster.network.heal("b1", "b2")
    cluster.run(1)
    assert patient.code == ErrorCode.NONE
    assert hasty.codes == [ErrorCode.REQUEST_TIMED_OUT]


def test_what_was_answered_leaves_no_deadline_behind():
    cluster = _single()
    for number in range(100):
        cluster.produce(1, str(number))
        cluster.run(0.001)
    waiting = cluster[1].replicas.waiting
    assert sum(len(waiters) for waiters, _ in waiting._ticks.values()) == 0
    assert len(waiting._ticks) <= 20


def test_consumers_read_up_to_the_high_watermark_and_replicas_to_the_end():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.produce(1, "a")
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    cluster.produce(1, "b", acks=1)
    cluster.run(0.1)
    partition = cluster[1].partition()

    def size(offset: int, *, as_replica: bool) -> int:
        limit = partition.log.end_offset if as_replica else partition.readable_end(stable_only=False)
        found = partition.read(offset, 10**6, limit, at_least_one=True, wait=True)
        return 0 if found is None else found.size

    assert 0 < size(0, as_replica=False) < size(0, as_replica=True)
    assert size(1, as_replica=False) == 0
    assert size(2, as_replica=True) == 0
    with pytest.raises(OffsetOutOfRangeError):
        size(3, as_replica=False)
