"""flush.messages=1: what is acknowledged is on the disks of the whole ISR; other flush settings work behind the scenes."""

from __future__ import annotations

import errno

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.storage.log import flushing
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster


def hold(cluster: ReplicatedCluster, *brokers: int, held: bool = True) -> None:
    for broker in brokers:
        cluster[broker].background.held = held
        if not held:
            cluster[broker].loop.post(cluster[broker].background.release)
    cluster.run(0.001)


@pytest.mark.parametrize("acks", [1, -1])
def test_the_answer_waits_for_the_leaders_disk(acks):
    cluster = ReplicatedCluster()
    cluster.create(flush_messages="1")
    cluster.run(0.5)
    hold(cluster, 1)
    produced = cluster.produce(1, "x", acks=acks)
    cluster.run(1)
    assert produced.codes == []
    assert cluster[1].partition().state.high_watermark == 0, "nobody reads what is not on disk"
    hold(cluster, 1, held=False)
    cluster.run(1)
    assert produced.code == ErrorCode.NONE
    assert cluster[1].partition().state.high_watermark == 1


def test_with_acks_all_it_waits_for_every_followers_disk():
    cluster = ReplicatedCluster()
    cluster.create(flush_messages="1")
    cluster.run(0.5)
    hold(cluster, 3)
    produced = cluster.produce(1, "x")
    cluster.run(1)
    assert cluster[3].partition().log.end_offset == 1
    assert produced.codes == []
    hold(cluster, 3, held=False)
    cluster.run(1)
    assert produced.code == ErrorCode.NONE


def test_what_was_acknowledged_survives_a_power_cut_of_all_brokers():
    cluster = ReplicatedCluster()
    cluster.create(flush_messages="1")
    cluster.run(0.5)
    produced = [cluster.produce(1, f"{n}") for n in range(10)]
    cluster.run(1)
    assert [p.code for p in produced] == [ErrorCode.NONE] * 10
    for broker in (1, 2, 3):
        cluster.kill(broker)
        cluster[broker].files.crash()
    for broker in (1, 2, 3):
        cluster.start(broker)
    cluster.elect(2, (1, 2, 3))
    cluster.run(2)
    assert [cluster[n].values() for n in (1, 2, 3)] == [[b"%d" % n for n in range(10)]] * 3


def test_all_partitions_of_a_turn_and_all_turns_of_a_sync_share_one_job():
    cluster = ReplicatedCluster(size=1)
    for index in range(3):
        cluster.create((1,), index=index, flush_messages="1")
    cluster.run(0.1)
    hold(cluster, 1)
    produced = [cluster.produce(1, "x", index=index) for index in range(3)]
    cluster.run(0.1)
    assert len(cluster[1].background._waiting) == 1
    produced += [cluster.produce(1, "y", index=index) for index in range(3)]
    cluster.run(0.1)
    assert len(cluster[1].background._waiting) == 1, "the next job waits for the first"
    hold(cluster, 1, held=False)
    cluster.run(0.1)
    assert [p.code for p in produced] == [ErrorCode.NONE] * 6


def test_who_writes_to_many_partitions_holds_up_no_other_instance():
    cluster, many = ReplicatedCluster(size=1), 60
    for index in range(many + 2):
        cluster.create((1,), index=index, flush_messages="1")
    for index, key in ((many, "bbbbcccc"), (many + 1, "ccccdddd")):
        cluster[1].partition(index).instance_key = key
    cluster.run(0.1)
    hold(cluster, 1)
    produced = [cluster.produce(1, "x", index=index) for index in range(many + 2)]
    cluster.run(0.1)
    background = cluster[1].background
    answered = []
    while background._waiting:
        assert len(background._waiting) <= 2, "others need threads, too"
        cluster[1].loop.post(background.release)
        cluster.run(0.01)
        answered.append([index for index, p in enumerate(produced) if p.code == ErrorCode.NONE])
    assert len(answered[0]) < many / 3
    assert set(answered[1]) >= {many, many + 1}, "each in its turn, however many wait before them"
    assert answered[-1] == list(range(many + 2))


def test_one_whose_sync_meets_a_bug_holds_up_no_other(monkeypatch):
    cluster = ReplicatedCluster(size=1)
    for index in range(3):
        cluster.create((1,), index=index, flush_messages="1")
    cluster.run(0.1)
    broken, synced = cluster[1].partition(1).log, flushing.synced

    def fails(log, *rest) -> None:
        if log is broken:
            raise ValueError("a bug")
        synced(log, *rest)

    monkeypatch.setattr(flushing, "synced", fails)
    produced = [cluster.produce(1, "x", index=index) for index in range(3)]
    cluster.run(0.1)
    assert [p.code for p in produced] == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_a_disk_that_cannot_sync_acknowledges_nothing():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), flush_messages="1")
    cluster.run(0.1)

    def refuse(operation: str, path: str) -> None:
        if operation == "sync":
            raise OSError(errno.EIO, "Input/output error", path)

    cluster[1].files.fault = refuse
    produced = [cluster.produce(1, "x"), cluster.produce(1, "y", acks=1)]
    cluster.run(1)
    assert [p.code for p in produced] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert cluster[1].replicas.registry.leader(TOPIC, 0) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_leader_that_is_deposed_before_its_sync_acknowledges_nothing():
    cluster = ReplicatedCluster()
    cluster.create(flush_messages="1")
    cluster.run(0.5)
    hold(cluster, 1)
    produced = cluster.produce(1, "x", acks=1)
    cluster.run(0.1)
    cluster.elect(2, (1, 2, 3))
    cluster.run(0.1)
    assert produced.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("slow", [1, 3])
def test_a_topic_that_is_durable_no_more_lets_go_who_waits_for_a_disk(slow, acks):
    cluster = ReplicatedCluster()
    cluster.create(flush_messages="1")
    cluster.run(0.5)
    hold(cluster, slow)
    produced = cluster.produce(1, "x", acks=acks)
    cluster.run(1)
    cluster[slow].loop.post(lambda: cluster.overrides.set(TOPIC, {}))
    cluster.run(1)
    assert produced.code == ErrorCode.NONE
    assert cluster[1].partition().queues.sync_calls == []
    assert [cluster[n].partition().state.high_watermark for n in (1, 2, 3)] == [1, 1, 1]
    hold(cluster, slow, held=False)
    cluster.run(1)
    assert produced.codes == [ErrorCode.NONE]


def test_after_so_many_messages_a_log_is_synced_and_nobody_waits():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), flush_messages="3")
    cluster.run(0.1)
    log = cluster[1].partition().log
    for expected in (0, 0, 3, 3, 3, 6):
        produced = cluster.produce(1, "x", acks=1)
        cluster.run(0.1)
        assert produced.code == ErrorCode.NONE
        assert log.recovery_point == expected


def test_after_so_long_a_log_is_synced():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), flush_ms="3000")
    cluster.produce(1, "x")
    cluster.run(2)
    log = cluster[1].partition().log
    assert (log.recovery_point, log.end_offset) == (0, 1)
    cluster.run(3)
    assert log.recovery_point == 1


def test_by_default_nothing_is_synced_for_a_produce():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    cluster.produce(1, "x")
    cluster.run(20)
    assert cluster[1].partition().log.recovery_point == 0
