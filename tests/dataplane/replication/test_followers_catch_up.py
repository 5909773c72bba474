"""Followers pull what the leader has; the high watermark follows the slowest of the ISR."""

from __future__ import annotations

from dataplane.protocol.errors import ErrorCode
from tests.dataplane.replication.cluster import ReplicatedCluster


def test_every_replica_ends_up_with_the_same_log():
    cluster = ReplicatedCluster()
    cluster.create()
    for number in range(50):
        cluster.produce(1, f"a{number}", f"b{number}", acks=1)
        cluster.run(0.003)
    cluster.run(1)
    assert len(cluster[1].values()) == 100
    assert cluster[1].values() == cluster[2].values() == cluster[3].values()
    assert [cluster[b].partition().state.high_watermark for b in (1, 2, 3)] == [100, 100, 100]


def test_acks_all_waits_for_both_followers_and_costs_no_poll_interval():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.run(1)
    produced = cluster.produce(1, "x")
    before = cluster.network.clock.seconds
    cluster.run(1)
    assert produced.code == ErrorCode.NONE
    assert produced.at - before < 0.01
    assert cluster[2].values() == cluster[3].values() == [b"x"]


def test_acks_one_is_answered_in_the_turn_of_the_append():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.network.cut("b1", "b2")
    cluster.network.cut("b1", "b3")
    produced = cluster.produce(1, "x", acks=1)
    cluster.run(0.0001)
    assert produced.code == ErrorCode.NONE
    assert cluster[1].partition().state.high_watermark == 0


def test_the_high_watermark_stays_while_one_of_the_isr_does_not_fetch():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.run(0.5)
    cluster.network.cut("b1", "b3")
    produced = cluster.produce(1, "x")
    cluster.run(0.5)
    assert cluster[2].values() == [b"x"]
    assert cluster[1].partition().state.high_watermark == 0
    assert produced.code is None


def test_appends_of_one_turn_are_written_at_once():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    writes: list[str] = []
    cluster[1].files.fault = lambda operation, path: writes.append(operation) if operation == "append" else None
    produced = [cluster.produce(1, f"v{number}") for number in range(10)]
    cluster.run(0.01)
    assert [p.code for p in produced] == [ErrorCode.NONE] * 10
    assert [p.appended.base_offset for p in produced] == list(range(10))
    assert writes == ["append"]


def test_a_follower_that_was_down_gets_what_it_missed():
    cluster = ReplicatedCluster()
    cluster.create()
    cluster.produce(1, "a")
    cluster.run(0.5)
    cluster.kill(3)
    cluster.produce(1, "b", acks=1)
    cluster.run(0.5)
    cluster.start(3)
    cluster.tell(told=(3,))
    cluster.run(2)
    assert cluster[3].values() == [b"a", b"b"]
    assert cluster[1].partition().state.high_watermark == 2


def test_a_partition_that_comes_later_is_fetched_while_another_request_waits():
    cluster = ReplicatedCluster(settings=_patient())
    cluster.create()
    cluster.run(1)
    cluster.create(index=1)
    produced = cluster.produce(1, "x", index=1)
    cluster.run(0.05)
    assert produced.code == ErrorCode.NONE


def _patient():
    from dataplane.config import Settings

    return Settings(replica_lag_time_max_ms=20_000, replica_fetch_wait_max_ms=5_000)


def test_an_answer_that_brings_a_batch_again_holds_nothing_up():
    """A request for another partition is on its way while the leader answers: both answers bring the batch."""
    for partitions_after in range(1, 8):  # how the messages meet differs
        cluster = ReplicatedCluster(size=2, seed=partitions_after, settings=_patient())
        cluster.create((1, 2))
        cluster.run(1)
        worst = 0.0
        for index in range(1, 1 + partitions_after):
            produced = cluster.produce(1, "x")
            before = cluster.network.clock.seconds
            cluster.create((1, 2), index=index)
            cluster.run(0.5)
            assert produced.code == ErrorCode.NONE
            worst = max(worst, produced.at - before)
        assert worst < 0.02
        assert cluster[2].values() == [b"x"] * partitions_after


def test_an_idle_follower_asks_once_per_wait():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(1)
    before = cluster[1].fetch_requests
    cluster.run(2)
    assert 8 <= cluster[1].fetch_requests - before <= 11  # of 200 ms each


def test_partitions_of_a_leader_share_one_request():
    cluster = ReplicatedCluster(size=2)
    for index in range(20):
        cluster.create((1, 2), index=index)
    cluster.run(1)
    before = cluster[1].fetch_requests
    cluster.run(1)
    assert cluster[1].fetch_requests - before <= 6
    produced = [cluster.produce(1, "x", index=index) for index in range(20)]
    cluster.run(0.1)
    assert [p.code for p in produced] == [ErrorCode.NONE] * 20


def test_the_same_seed_gives_the_same_run():
    def run(seed: int) -> tuple[int, int]:
        cluster = ReplicatedCluster(seed=seed)
        cluster.create()
        for number in range(20):
            cluster.produce(1, str(number))
            cluster.run(0.01)
        return cluster.network.digest, cluster.network.deliveries

    assert run(5) == run(5)
    assert run(5) != run(6)
