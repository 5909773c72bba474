"""DeleteRecords: the log begins later on the leader at once, on every live replica before it is answered, and for ever."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.upkeep.deletion import begin_later, when_on_disk
from tests.dataplane.replication.cluster import ReplicatedCluster


class Deleted:
    """A request and what became of it."""

    def __init__(self, cluster: ReplicatedCluster, offset: int, timeout_s: float = 10.0, broker: int = 1) -> None:
        self.answers: list[tuple[ErrorCode, int]] = []
        self.at = -1.0
        self._clock = cluster.network.clock
        replicas, partition = cluster[broker].replicas, cluster[broker].partition()

        def delete() -> None:
            code, wanted = begin_later(replicas, partition, offset)
            if code:
                self._done(code, wanted)
                return
            settled = replicas.logs.checkpoints.settle()
            settled.then(lambda _: when_on_disk(replicas, partition, wanted, timeout_s, self._done))

        cluster[broker].loop.post(delete)

    def _done(self, code: ErrorCode, low_watermark: int) -> None:
        self.answers.append((code, low_watermark))
        self.at = self._clock.seconds


def cluster_of_ten(**overrides: str) -> ReplicatedCluster:
    cluster = ReplicatedCluster()
    cluster.create(**overrides)
    for number in range(10):
        cluster.produce(1, str(number))
    cluster.run(1)
    assert cluster[1].partition().state.high_watermark == 10
    return cluster


def starts(cluster: ReplicatedCluster) -> list[int]:
    return [cluster[broker].partition().log.start_offset for broker in (1, 2, 3)]


def test_it_is_answered_when_every_replica_begins_there_without_a_poll_interval():
    cluster = cluster_of_ten()
    before = cluster.network.clock.seconds
    deleted = Deleted(cluster, 4)
    cluster.run(1)
    assert deleted.answers == [(ErrorCode.NONE, 4)]
    assert starts(cluster) == [4, 4, 4]
    assert deleted.at - before < 0.01


def test_minus_one_deletes_all_that_is_committed():
    cluster = cluster_of_ten()
    deleted = Deleted(cluster, -1)
    cluster.run(1)
    assert deleted.answers == [(ErrorCode.NONE, 10)]
    assert cluster[1].values() == cluster[3].values() == []
    cluster.produce(1, "next")
    cluster.run(1)
    assert cluster[3].values() == [b"next"]


@pytest.mark.parametrize("offset", [11, -2, 2**62])
def test_beyond_the_high_watermark_is_out_of_range(offset):
    cluster = cluster_of_ten()
    deleted = Deleted(cluster, offset)
    cluster.run(1)
    assert deleted.answers == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert starts(cluster) == [0, 0, 0]


def test_what_is_not_committed_cannot_be_deleted():
    cluster = cluster_of_ten()
    cluster.network.cut("b1", "b3")
    cluster.produce(1, "not yet", acks=1)
    cluster.run(0.1)
    deleted = Deleted(cluster, 11)
    cluster.run(0.1)
    assert deleted.answers == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]


@pytest.mark.parametrize(
    ("policy", "code"),
    [("compact", ErrorCode.POLICY_VIOLATION), ("compact,delete", ErrorCode.NONE), ("delete", ErrorCode.NONE)],
)
def test_a_topic_that_is_only_compacted_refuses(policy, code):
    cluster = cluster_of_ten(cleanup_policy=policy)
    deleted = Deleted(cluster, 3)
    cluster.run(1)
    assert [answer[0] for answer in deleted.answers] == [code]


def test_an_offset_that_is_deleted_already_answers_where_the_log_begins():
    cluster = cluster_of_ten()
    Deleted(cluster, 6)
    cluster.run(1)
    again = Deleted(cluster, 2)
    cluster.run(1)
    assert again.answers == [(ErrorCode.NONE, 6)]


def test_a_replica_that_lags_is_waited_for_until_time_is_up():
    cluster = cluster_of_ten()
    cluster.network.cut("b1", "b3")
    deleted = Deleted(cluster, 4, timeout_s=0.5)
    cluster.run(0.4)
    assert deleted.answers == []
    assert starts(cluster) == [4, 4, 0]
    cluster.run(0.2)
    assert deleted.answers == [(ErrorCode.REQUEST_TIMED_OUT, 0)]
    cluster.network.heal_all()
    cluster.run(20)
    assert starts(cluster) == [4, 4, 4]


def test_a_dead_replica_is_not_waited_for():
    cluster = cluster_of_ten()
    cluster.kill(3)
    deleted = Deleted(cluster, 4)
    cluster.run(0.5)
    assert deleted.answers == []
    cluster.forget(3)
    cluster.run(2)
    assert deleted.answers == [(ErrorCode.NONE, 4)]


def test_who_is_deposed_while_waiting_says_so():
    cluster = cluster_of_ten()
    cluster.network.cut("b1", "b3")
    deleted = Deleted(cluster, 4)
    cluster.run(0.5)
    cluster.elect(2, (2, 3))
    cluster.run(0.5)
    assert deleted.answers == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


def test_an_answer_means_that_it_is_on_disk():
    cluster = cluster_of_ten()
    deleted = Deleted(cluster, 4)
    cluster.network.run_until(lambda: bool(deleted.answers), 5)
    files = cluster[1].files
    cluster.kill(1)
    files.crash()
    cluster.start(1, files)
    log = cluster[1].logs.get("aaaabbbb.orders", 0)
    assert log is not None
    assert files.content("/data/1/log-start-offset-checkpoint").decode().split() == [
        "0",
        "1",
        "aaaabbbb.orders",
        "0",
        "4",
    ]
