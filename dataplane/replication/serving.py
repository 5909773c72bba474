"""The leader's side of replication: answering a follower's Fetch.

For each partition, in this order: do both believe in the same epoch; is the follower's log a prefix of ours, or where
do they part; is its end inside of our log. Only then does its position count as progress, which may move the high
watermark. Then comes what lies behind it, up to our end: followers read what is not committed yet.

A request that finds nothing waits for bytes, as long as it says. It stops waiting when the same follower asks again:
a partition has come that it wants to hear of, and answers go out in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from dataplane.replication.truncation import divergence
from dataplane.storage.errors import OffsetOutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.replication.manager import Replicas
    from dataplane.replication.partition import Partition


class ReplicaFetches:
    """Serves followers. One per broker: it knows whose request is waiting."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._waiting: dict[int, Callable[[], None]] = {}  # by follower: answer it now

    def serve(self, request: FetchRequest, done: Callable[[FetchResponse], None]) -> None:
        """Answer a Fetch with `replica_id` >= 0, which came by the internal listener; at once or later."""
        replica_id = follower_of(request)
        waiting = self._waiting.pop(replica_id, None)
        if waiting is not None:
            waiting()
        response, found = self._answer(request, count_progress=True)
        if found or request.max_wait_ms <= 0:
            done(response)
            return
        places = self._places(request)

        def finish() -> None:
            if self._waiting.get(replica_id) is give_up:
                del self._waiting[replica_id]
            done(self._answer(request, count_progress=False)[0])

        def give_up() -> None:
            cancel()
            finish()

        cancel = self._replicas.when_readable(
            places, request.min_bytes, request.max_wait_ms / 1000, finish, as_replica=True
        )
        self._waiting[replica_id] = give_up

    def _answer(self, request: FetchRequest, *, count_progress: bool) -> tuple[FetchResponse, bool]:
        """The answer, and whether there is anything in it that a follower should hear at once."""
        left = request.max_bytes
        found = False
        topics = []
        for topic in request.topics:
            rows = []
            for wanted in topic.partitions:
                name = topic.topic
                row = self._partition(request, name, wanted, left, at_least_one=not found, progress=count_progress)
                size = getattr(row.records, "size", 0)
                left = max(0, left - size)
                found = found or size > 0 or row.error_code != ErrorCode.NONE or row.diverging_epoch.epoch >= 0
                rows.append(row)
            topics.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=tuple(rows)))
        return FetchResponse(responses=tuple(topics)), found

    def _partition(
        self,
        request: FetchRequest,
        topic: str,
        wanted: FetchPartition,
        left: int,
        *,
        at_least_one: bool,
        progress: bool,
    ) -> FetchResponsePartitionData:
        replicas, replica_id = self._replicas, follower_of(request)
        partition = replicas.leader(topic, wanted.partition, wanted.current_leader_epoch)
        if isinstance(partition, ErrorCode):
            return _error(wanted, partition, replicas.get(topic, wanted.partition))
        if partition.remote(replica_id) is None:
            return _error(wanted, ErrorCode.UNKNOWN_LEADER_EPOCH, partition)  # our list of replicas is older than its
        parted = divergence(partition.log, wanted.last_fetched_epoch, wanted.fetch_offset)
        if parted is not None:
            return _parted(partition, *parted)
        try:
            size = min(left, wanted.partition_max_bytes)
            records = replicas.read(partition, wanted.fetch_offset, size, at_least_one=at_least_one, as_replica=True)
        except OffsetOutOfRangeError:
            return _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
        except OSError:
            replicas.failed(partition)
            return _error(wanted, ErrorCode.KAFKA_STORAGE_ERROR, partition)
        if progress:
            now = replicas.loop.clock.monotonic()
            replicas.fetched_by_replica(
                replica_id,
                request.replica_state.replica_epoch,
                partition,
                wanted.fetch_offset,
                now,
                wanted.log_start_offset,
            )
        return FetchResponsePartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.high_watermark,
            log_start_offset=partition.log.start_offset,
            records=b"" if records is None else records,
        )

    def _places(self, request: FetchRequest) -> list[tuple[Partition, int]]:
        places = []
        for topic in request.topics:
            for wanted in topic.partitions:
                partition = self._replicas.leader(topic.topic, wanted.partition, wanted.current_leader_epoch)
                if not isinstance(partition, ErrorCode):
                    places.append((partition, wanted.fetch_offset))
        return places


def follower_of(request: FetchRequest) -> int:
    """Who asks; -1: not a follower. Since version 15 it stands elsewhere."""
    return request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id


def _parted(partition: Partition, epoch: int, end_offset: int) -> FetchResponsePartitionData:
    if epoch < 0:
        wanted = FetchPartition(partition=partition.index)
        return _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
    return FetchResponsePartitionData(
        partition_index=partition.index,
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log.start_offset,
        diverging_epoch=FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset),
        records=b"",
    )


def _error(wanted: FetchPartition, code: ErrorCode, partition: Partition | None) -> FetchResponsePartitionData:
    """With the leader as we know it, where that may help the follower."""
    leader = FetchResponseLeaderIdAndEpoch()
    if partition is not None and code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
        leader = FetchResponseLeaderIdAndEpoch(leader_id=partition.leader_id, leader_epoch=partition.leader_epoch)
    return FetchResponsePartitionData(
        partition_index=wanted.partition,
        error_code=code,
        high_watermark=-1,
        log_start_offset=-1,
        current_leader=leader,
        records=b"",
    )
