"""A replica whose disk refuses, and what instances are charged for."""

from __future__ import annotations

from dataplane.protocol.errors import ErrorCode
from dataplane.storage.log import Log, appending
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster


def test_what_could_not_be_written_is_answered_with_an_error_and_the_partition_is_offline():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.run(0.5)

    def refuse(operation: str, path: str) -> None:
        if operation == "append":
            raise OSError(5, "Input/output error", path)

    cluster[1].files.fault = refuse
    produced = [cluster.produce(1, "x"), cluster.produce(1, "y", acks=1)]
    cluster.run(0.5)
    assert [p.code for p in produced] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert cluster[1].replicas.registry.leader(TOPIC, 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert cluster[1].leadership[-1] == (TOPIC, 0, None)
    cluster.elect(2, (2, 3), told=(2, 3))
    again = cluster.produce(2, "x")
    cluster.run(1)
    assert again.code == ErrorCode.NONE


def test_a_follower_whose_disk_refuses_leaves_the_isr():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.run(0.5)

    def refuse(operation: str, path: str) -> None:
        if operation == "append":
            raise OSError(5, "Input/output error", path)

    cluster[3].files.fault = refuse
    produced = cluster.produce(1, "x")
    cluster.run(5)
    assert produced.code == ErrorCode.NONE
    assert cluster[1].partition().state.isr == (1, 2)


def test_storage_and_leaders_are_counted_by_instance_as_they_change():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.create((2, 1), index=1)
    assert cluster[1].replicas.accounting.leaders_by_instance() == {"aaaabbbb": 1}
    cluster.produce(1, "x" * 100)
    cluster.run(1)
    size = cluster[1].partition().log.size_bytes
    assert size > 100
    assert cluster[1].replicas.accounting.storage_by_instance() == {"aaaabbbb": size}
    assert cluster[2].replicas.accounting.storage_by_instance() == {"aaaabbbb": size}
    cluster.elect(2, (1, 2))
    assert cluster[1].replicas.accounting.leaders_by_instance() == {}
    assert cluster[2].replicas.accounting.leaders_by_instance() == {"aaaabbbb": 2}


def test_what_is_cut_is_not_counted_any_more():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(0.5)
    cluster.network.cut("b1", "b2")
    cluster.produce(1, "x" * 100, acks=1)
    cluster.run(0.1)
    cluster.elect(2, (2,), told=(2,))
    cluster.network.heal("b1", "b2")
    cluster.tell(told=(1,))
    cluster.run(3)
    assert cluster[1].partition().log.end_offset == 0
    assert cluster[1].replicas.accounting.storage_by_instance() == {}


def test_retention_frees_what_is_committed_only_and_the_account_follows():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), retention_bytes="300", segment_bytes="200")
    for _ in range(10):
        cluster.produce(1, "x" * 100, acks=1)
        cluster.run(0.01)
    cluster[1].replicas.housekeeping.apply_retention()
    partition = cluster[1].partition()
    assert partition.log.start_offset > 0
    assert cluster[1].replicas.accounting.storage_by_instance() == {"aaaabbbb": partition.log.size_bytes}


def test_a_batch_above_the_topics_limit_is_refused():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), max_message_bytes="100")
    produced = cluster.produce(1, "x" * 200)
    cluster.run(0.1)
    assert produced.code == ErrorCode.MESSAGE_TOO_LARGE
    assert cluster[1].values() == []


def test_a_partition_that_cannot_be_copied_does_not_hold_up_the_others(monkeypatch):
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.create((1, 2), index=1)
    cluster.run(0.5)
    bad = cluster[2].replicas.registry.get(TOPIC, 0)

    stage_replica = appending.stage_replica

    def with_a_bug(log: Log, batches: memoryview) -> bool:
        if log is bad.log:
            raise ValueError("a bug")
        return stage_replica(log, batches)

    monkeypatch.setattr(appending, "stage_replica", with_a_bug)
    cluster.produce(1, "x", acks=1)
    cluster.run(0.2)
    other = cluster.produce(1, "y", index=1)
    cluster.run(0.5)
    assert other.code == ErrorCode.NONE
    monkeypatch.undo()
    cluster.run(3)
    assert cluster[2].values() == [b"x"]
