"""Copying from one leader: all partitions of it that we follow, in one Fetch after the other.

A round: ask for what comes after our end of each log, take what comes (staged, and written at the end of the turn with
everything else), ask again once it is written. The leader holds a request that finds nothing until there is something.
A partition that comes while such a request waits is asked for in another one, at once.

Every request says in which leader epoch we believe and which epoch our log ends with. So the leader refuses us if one
of us is out of date, and tells us where our logs part (`truncation`); an answer is thrown away if the epoch has changed
meanwhile. The high watermark is taken over only from answers that do not ask us to cut.

A partition with an error pauses on its own; a leader that cannot be reached pauses all. What cures most errors, a
LeaderAndIsr, puts the partition in anew.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dataplane.network.outbound import Peer, PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from dataplane.records.batch import CorruptBatchError
from dataplane.replication.truncation import truncation_point
from dataplane.tasks import Future, Task

if TYPE_CHECKING:
    from dataplane.doors import Timer
    from dataplane.replication.manager import Replicas
    from dataplane.replication.partition import Partition

FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 7
CALL_TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 1.0
LATEST, EARLIEST = -1, -2

_log = logging.getLogger(__name__)


class _Copying:
    """Where one partition is."""

    __slots__ = ("asked", "leader_epoch", "not_before", "pause_s")

    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self.asked = False  # in a request that is under way
        self.not_before = 0.0
        self.pause_s = 0.0


class Fetcher:
    """Copies from the broker `leader_id` until `stop`."""

    def __init__(self, replicas: Replicas, leader_id: int) -> None:
        self._replicas = replicas
        self._leader_id = leader_id
        self._loop = replicas.loop
        self._copying: dict[Partition, _Copying] = {}  # in the order of the next request
        self._peer: Peer | None = None
        self._under_way = 0
        self._scheduled = False
        self._pause: Timer | None = None
        self._stopped = False

    def add(self, partition: Partition) -> None:
        """Copy this one as well, from now on."""
        self._copying[partition] = _Copying(partition.leader_epoch)
        self._schedule()

    def remove(self, partition: Partition) -> bool:
        """Copy it no more. Returns whether it was copied here."""
        return self._copying.pop(partition, None) is not None

    def is_idle(self) -> bool:
        """Nothing to copy."""
        return not self._copying

    def stop(self) -> None:
        """Give up."""
        self._stopped = True
        self._copying.clear()
        if self._pause is not None:
            self._pause.cancel()
        if self._peer is not None:
            self._peer.close()

    # --- asking -------------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Ask at the end of the turn, behind the commit of what was staged in it."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.at_turn_end(self._ask)

    def _ask(self) -> None:
        self._scheduled = False
        if self._stopped:
            return
        now = self._loop.clock.monotonic()
        wanted: list[tuple[Partition, _Copying]] = []
        paused_until = None
        for partition, copying in self._copying.items():
            if copying.asked:
                continue
            if copying.not_before > now:
                paused_until = min(copying.not_before, paused_until or copying.not_before)
            elif partition.dirty:
                self._schedule()  # its commit comes later in this turn
            else:
                wanted.append((partition, copying))
        if paused_until is not None:
            self._wake_at(paused_until)
        if wanted:
            self._send(wanted)

    def _wake_at(self, when: float) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._pause = self._loop.call_later(when - self._loop.clock.monotonic(), self._schedule)

    def _send(self, wanted: list[tuple[Partition, _Copying]]) -> None:
        peer = self._connection()
        if peer is None:
            self._pause_all(wanted)
            self._schedule()
            return
        request = self._request(wanted)
        for _, copying in wanted:
            copying.asked = True
        self._under_way += 1
        timeout_s = CALL_TIMEOUT_S + request.max_wait_ms / 1000
        peer.call(request, FETCH_VERSION, timeout_s).then(lambda answer: self._answered(wanted, answer))

    def _connection(self) -> Peer | None:
        """Our own connection to the leader, where the leader is now."""
        peers = self._replicas.peers
        peer = self._peer
        if peer is not None and peer.address != peers.address(self._leader_id):
            self._peer = None
            peer.close()
        if self._peer is None:
            self._peer = peers.dedicated(self._leader_id)
        return self._peer

    def _request(self, wanted: list[tuple[Partition, _Copying]]) -> FetchRequest:
        settings = self._replicas.config.settings
        topics: dict[str, list[FetchPartition]] = {}
        for partition, copying in wanted:
            log = partition.log
            topics.setdefault(partition.topic, []).append(
                FetchPartition(
                    partition=partition.index,
                    current_leader_epoch=copying.leader_epoch,
                    fetch_offset=log.end_offset,
                    last_fetched_epoch=log.epochs.latest(),
                    log_start_offset=log.start_offset,
                    partition_max_bytes=settings.replica_fetch_max_bytes,
                )
            )
        return FetchRequest(
            replica_id=self._replicas.config.id,
            max_wait_ms=0 if self._under_way else settings.replica_fetch_wait_max_ms,
            min_bytes=1,
            max_bytes=settings.replica_fetch_response_max_bytes,
            topics=tuple(FetchTopic(topic=name, partitions=tuple(rows)) for name, rows in topics.items()),
        )

    # --- taking -------------------------------------------------------------------------------------------------------

    def _answered(self, asked: list[tuple[Partition, _Copying]], answer: Future[Any]) -> None:
        self._under_way -= 1
        for _, copying in asked:
            copying.asked = False
        if self._stopped:
            return
        if answer.error is not None or answer.result().error_code != ErrorCode.NONE:
            self._pause_all(asked)
        else:
            self._take_all(asked, answer.result())
        self._schedule()

    def _take_all(self, asked: list[tuple[Partition, _Copying]], response: FetchResponse) -> None:
        answers = {
            (topic.topic, data.partition_index): data for topic in response.responses for data in topic.partitions
        }
        for partition, copying in asked:
            if self._copying.get(partition) is not copying:
                continue  # another epoch by now, or no longer ours to copy
            data = answers.get((partition.topic, partition.index))
            if data is None:
                self._pause_one(copying)
            elif data.error_code == ErrorCode.NONE:
                self._take_or_fail(partition, copying, data)
            elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                copying.asked = True  # not before we know more
                Task(self._find_range(partition, copying), "where a leader's log begins and ends")
            else:
                self._pause_one(copying)

    def _take_or_fail(self, partition: Partition, copying: _Copying, data: FetchResponsePartitionData) -> None:
        """Nothing of one partition may keep the others from being copied."""
        try:
            self._take(partition, copying, data)
        except OSError:
            self._replicas.failed(partition)
        except Exception:  # noqa: BLE001 - a bug
            _log.exception("%s-%d cannot be copied", partition.topic, partition.index)
            self._pause_one(copying)

    def _take(self, partition: Partition, copying: _Copying, data: FetchResponsePartitionData) -> None:
        if data.diverging_epoch.epoch >= 0:
            epoch, end_offset = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
            self._cut(partition, truncation_point(partition.log, epoch, end_offset))
            return
        copying.pause_s = 0.0
        partition.leader_high_watermark = data.high_watermark
        if isinstance(data.records, memoryview) and data.records:
            try:
                partition.log.stage_replica(data.records)
            except (CorruptBatchError, OSError) as error:
                if isinstance(error, OSError):
                    self._replicas.failed(partition)
                else:
                    self._pause_one(copying)
                return
            self._copying[partition] = self._copying.pop(partition)  # others first next time
            if not partition.dirty:
                self._replicas.mark_dirty(partition)
        else:
            partition.follow_high_watermark()
        if partition.log.start_offset < data.log_start_offset <= partition.high_watermark:
            partition.log.set_start_offset(data.log_start_offset)
            self._replicas.accounting.measure(partition)

    def _cut(self, partition: Partition, offset: int) -> None:
        """Remove what our leader does not have.

        Also at the end of the log: an epoch that began there, and in which nothing was written, has to go from the
        epochs, or it is asked about for ever (KAFKA-10706).
        """
        log = partition.log
        try:
            log.truncate(offset)
            log.epochs.truncate_from_end(log.end_offset)
        except OSError:
            self._replicas.failed(partition)
            return
        partition.truncated()
        self._replicas.accounting.measure(partition)

    # --- out of range -------------------------------------------------------------------------------------------------

    async def _find_range(self, partition: Partition, copying: _Copying) -> None:
        """Our end is outside of the leader's log: cut to its end, or begin anew at its start."""
        try:
            end = await self._leader_offset(partition, copying, LATEST)
            start = await self._leader_offset(partition, copying, EARLIEST)
        except PeerError:
            end = start = -1
        copying.asked = False
        if self._copying.get(partition) is not copying:
            return
        if end < 0 or start < 0:
            self._pause_one(copying)
        elif end < partition.log.end_offset:
            self._cut(partition, end)
        elif start > partition.log.end_offset:
            self._begin_at(partition, start)
        else:
            self._pause_one(copying)
        self._schedule()

    def _begin_at(self, partition: Partition, offset: int) -> None:
        try:
            partition.log.reset(offset)
        except OSError:
            self._replicas.failed(partition)
            return
        partition.truncated()
        self._replicas.accounting.measure(partition)

    async def _leader_offset(self, partition: Partition, copying: _Copying, timestamp: int) -> int:
        """-1: it does not say."""
        row = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=copying.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._replicas.config.id, topics=(ListOffsetsTopic(name=partition.topic, partitions=(row,)),)
        )
        response: ListOffsetsResponse = await self._replicas.peers.call(
            self._leader_id, request, LIST_OFFSETS_VERSION, CALL_TIMEOUT_S
        )
        answer = response.topics[0].partitions[0]
        return answer.offset if answer.error_code == ErrorCode.NONE else -1

    # --- pauses -------------------------------------------------------------------------------------------------------

    def _pause_all(self, wanted: list[tuple[Partition, _Copying]]) -> None:
        for _, copying in wanted:
            self._pause_one(copying)

    def _pause_one(self, copying: _Copying) -> None:
        copying.pause_s = min(max(FIRST_PAUSE_S, copying.pause_s * 2), LAST_PAUSE_S)
        copying.not_before = self._loop.clock.monotonic() + copying.pause_s
