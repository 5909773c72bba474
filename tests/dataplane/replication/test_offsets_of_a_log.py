"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import pytest

from dataplane.handlers.records.log_offsets import list_offsets, offsets_for_leader_epochs
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster
from tests.support.virtual_loop import WALL_CLOCK_START_MS


def _filled() -> ReplicatedCluster:
    """Offsets 0 to 4, a second apart; 0 to 2 in epoch 0, the rest in epoch 1. Only 0 to 3 are committed."""
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    for number in range(3):
        cluster.produce(1, str(number))
        cluster.run(1)
    cluster.elect(1, (1, 2))
    cluster.produce(1, "3")
    cluster.run(1)
    cluster.network.cut("b1", "b2")
    cluster.produce(1, "4", acks=1)
    cluster.run(0.1)
    return cluster


def _list(
    cluster: ReplicatedCluster, timestamp: int, version: int = 7, *, replica_id: int = -1, epoch: int = -1, **more
):
    row = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=9)
    request = ListOffsetsRequest(replica_id=replica_id, topics=(ListOffsetsTopic(name=TOPIC, partitions=(row,)),))
    more.setdefault("is_internal", False)
    response = list_offsets(cluster[1].replicas, request, version, **more)
    response = decode(ListOffsetsResponse, version, encode(response, version))
    return response.topics[0].partitions[0]


def test_latest_is_the_high_watermark_for_consumers_and_the_end_for_replicas():
    cluster = _filled()
    assert _list(cluster, -1).offset == 4
    assert _list(cluster, -1, replica_id=2, is_internal=True).offset == 5
    assert _list(cluster, -1, replica_id=2).offset == 4  # a tenant cannot call itself a replica
    assert _list(cluster, -1).leader_epoch == 1


def test_earliest_is_where_the_log_starts():
    cluster = _filled()
    assert (_list(cluster, -2).offset, _list(cluster, -2).leader_epoch) == (0, 0)


def test_a_timestamp_finds_the_first_record_that_is_not_older():
    cluster = _filled()
    answer = _list(cluster, WALL_CLOCK_START_MS + 500)
    assert answer.offset == 1
    assert answer.timestamp >= WALL_CLOCK_START_MS + 500
    beyond = _list(cluster, WALL_CLOCK_START_MS + 10**6)
    assert (beyond.error_code, beyond.offset) == (ErrorCode.NONE, -1)


def test_the_youngest_record_is_known_since_version_7():
    cluster = _filled()
    cluster.network.heal("b1", "b2")
    cluster.run(1)
    assert _list(cluster, -3).offset == 4
    assert _list(cluster, -3, 6).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_version_0_answers_with_a_list():
    cluster = _filled()
    assert _list(cluster, -1, 0).old_style_offsets == (4, 0)
    assert _list(cluster, -2, 0).old_style_offsets == (0,)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_who_believes_in_another_epoch_is_told(epoch: int, code: ErrorCode):
    assert _list(_filled(), -1, epoch=epoch).error_code == code


def test_a_new_leader_does_not_say_what_is_latest_before_it_knows():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.produce(1, "a")
    cluster.network.run_until(lambda: cluster[2].partition().log.end_offset == 1)
    cluster.kill(1)
    cluster.elect(2, (1, 2), told=(2,))
    cluster.brokers[1] = cluster[2]
    assert _list(cluster, -1, 5).error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert _list(cluster, -1, 4).error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert _list(cluster, -2).offset == 0


def test_a_follower_does_not_answer():
    cluster = _filled()
    cluster.elect(2, (1, 2))
    assert _list(cluster, -1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_topic_that_is_denied_is_denied():
    assert (
        _list(_filled(), -1, refusal=lambda _: ErrorCode.TOPIC_AUTHORIZATION_FAILED).error_code
        == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


def _epoch_end(cluster: ReplicatedCluster, epoch: int, current: int = -1):
    row = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic=TOPIC, partitions=(row,)),))
    answer = offsets_for_leader_epochs(cluster[1].replicas, request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def test_an_epoch_ends_where_the_next_began_and_the_present_one_at_the_end():
    cluster = _filled()
    assert _epoch_end(cluster, 0) == (ErrorCode.NONE, 0, 3)
    assert _epoch_end(cluster, 1) == (ErrorCode.NONE, 1, 5)
    assert _epoch_end(cluster, 2) == (ErrorCode.NONE, -1, -1)
    assert _epoch_end(cluster, 0, current=0)[0] == ErrorCode.FENCED_LEADER_EPOCH
