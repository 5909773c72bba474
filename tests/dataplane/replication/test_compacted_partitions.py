"""Each replica compacts on its own; offsets may be missing anywhere, and followers, new leaders and readers go on."""

from __future__ import annotations

from dataclasses import replace

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch, read_records
from dataplane.storage.log import lookup
from tests.dataplane.replication.cluster import SETTINGS, ReplicatedCluster
from tests.support.memory_files import MemoryFiles

QUICK = replace(SETTINGS, log_cleaner_backoff_ms=1_000)


def cluster_with_table(**overrides: str) -> ReplicatedCluster:
    cluster = ReplicatedCluster(settings=QUICK)
    config = {"cleanup_policy": "compact", "segment_bytes": "800", "min_cleanable_dirty_ratio": "0.1", **overrides}
    cluster.create(**config)
    return cluster


def put(cluster: ReplicatedCluster, broker: int, key: str, value: str | None) -> None:
    records = [Record(key.encode(), None if value is None else value.encode())]
    batch = build_batch(records, now_ms=cluster.network.clock.now_ms())

    def handle() -> None:
        partition = cluster[broker].replicas.registry.leader("aaaabbbb.orders", 0)
        assert not isinstance(partition, ErrorCode)
        assert cluster[broker].replicas.appending.append(partition, memoryview(batch), -1).error == ErrorCode.NONE

    cluster[broker].loop.post(handle)
    cluster.run(0.002)


def fill(cluster: ReplicatedCluster, broker: int, rounds: int, keys: int = 5) -> None:
    for number in range(rounds):
        for key in range(keys):
            put(cluster, broker, f"k{key}", f"{number}")


def table(cluster: ReplicatedCluster, broker: int) -> list[tuple[int, bytes | None, bytes | None]]:
    log = cluster[broker].partition().log
    found = [read_records(bytes(batch)) for _, batch in lookup.batches(log, log.start_offset, log.end_offset)]
    return [(record.offset, record.key, record.value) for records in found for record in records]


def latest(cluster: ReplicatedCluster, broker: int) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in table(cluster, broker)}


def test_every_replica_is_compacted_and_goes_on():
    cluster = cluster_with_table()
    fill(cluster, 1, 40)
    cluster.run(5)
    sizes = [cluster[b].partition().log.size_bytes for b in (1, 2, 3)]
    assert max(sizes) < 3_000
    fill(cluster, 1, 3)
    cluster.run(5)
    for broker in (1, 2, 3):
        assert latest(cluster, broker) == {f"k{key}".encode(): b"2" for key in range(5)}
        partition = cluster[broker].partition()
        assert (partition.state.high_watermark, partition.log.end_offset) == (215, 215)
    assert cluster[1].replicas.accounting.storage_by_instance()["aaaabbbb"] == cluster[1].partition().log.size_bytes


def test_a_replica_that_comes_new_copies_what_is_left_and_joins():
    cluster = cluster_with_table()
    fill(cluster, 1, 40)
    cluster.run(5)
    cluster.kill(3)
    cluster.forget(3)
    put(cluster, 1, "k1", "newest")
    cluster.run(5)
    assert cluster.controller.states["aaaabbbb.orders", 0].isr == (1, 2)
    cluster.start(3, MemoryFiles())
    cluster.tell()
    cluster.run(8)
    assert cluster.controller.states["aaaabbbb.orders", 0].isr == (1, 2, 3)
    assert latest(cluster, 3) == latest(cluster, 1)
    assert cluster[3].partition().log.end_offset == 201
    assert cluster[3].partition().state.high_watermark == 201


def test_a_new_leader_and_a_follower_that_were_compacted_differently_agree():
    cluster = cluster_with_table()
    cluster[2].replicas.cleaner.stop()
    fill(cluster, 1, 40)
    cluster.run(5)
    assert cluster[2].partition().log.size_bytes > 2 * cluster[1].partition().log.size_bytes
    cluster.elect(2, (1, 2, 3))
    cluster.run(2)
    put(cluster, 2, "k3", "by the new leader")
    cluster.run(2)
    for broker in (1, 2, 3):
        assert latest(cluster, broker)[b"k3"] == b"by the new leader"
        assert cluster[broker].partition().state.high_watermark == 201


def test_nothing_above_the_high_watermark_is_compacted():
    cluster = cluster_with_table()
    cluster.run(0.5)
    cluster.network.cut("b1", "b3")
    cluster.network.cut("b1", "b2")
    for number in range(100):
        put(cluster, 1, "k", str(number))
    partition = cluster[1].partition()
    assert partition.state.high_watermark < 100
    cluster[1].replicas.cleaner.look()
    cluster.run(0.2)
    assert len(table(cluster, 1)) == 100


def test_a_broker_that_stops_in_order_knows_how_far_it_was():
    cluster = cluster_with_table()
    fill(cluster, 1, 40)
    cluster.run(7)
    cleaned_to = cluster[1].partition().log.cleaned_to
    assert cleaned_to > 150
    cluster[1].logs.close()
    checkpoint = cluster[1].files.content("/data/1/cleaner-offset-checkpoint").decode()
    assert checkpoint.splitlines()[2] == f"aaaabbbb.orders 0 {cleaned_to}"
    cluster.kill(1)
    cluster.start(1)
    log = cluster[1].logs.get("aaaabbbb.orders", 0)
    assert log is not None
    assert log.cleaned_to == cleaned_to


def test_what_is_also_deleted_by_age_goes_by_age():
    cluster = cluster_with_table(cleanup_policy="compact,delete", retention_ms="20000")
    fill(cluster, 1, 40)
    cluster.run(5)
    assert latest(cluster, 1)
    cluster.run(30)
    cluster[1].replicas.housekeeping.apply_retention()
    cluster.run(5)
    assert table(cluster, 1) == []
    put(cluster, 1, "k", "again")
    cluster.run(3)
    assert table(cluster, 3) == [(200, b"k", b"again")]
