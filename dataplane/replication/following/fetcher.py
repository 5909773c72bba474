"""Copying from one leader: all partitions of it that we follow, in one Fetch after the other.

A round: ask for what comes after our end of each log (`fetch_requests`), take what comes (staged, and written at the end of the
turn with everything else), ask again once it is written. The leader holds a request that finds nothing until there is
something.

An answer is thrown away if the partition's epoch has changed meanwhile. Where it says that our logs part, ours is cut, and
where our end is outside of the leader's log, ours is cut to its end or begins anew at its start; where that lies within a batch,
at the beginning of the batch. The high watermark is taken over only from answers that do not ask us to cut.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dataplane.peers.outbound import PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    FetchResponse,
    FetchResponsePartitionData,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from dataplane.records.batch import CorruptBatchError
from dataplane.replication.following.fetch_requests import (
    CALL_TIMEOUT_S,
    NOT_TOLD,
    Copying,
    FetchRequests,
)
from dataplane.replication.truncation import truncation_point
from dataplane.storage.log import appending, cutting, removing
from dataplane.tasks import Task

if TYPE_CHECKING:
    from dataplane.replication.replica.partition import Partition

LIST_OFFSETS_VERSION = 7
LATEST, EARLIEST = -1, -2

_log = logging.getLogger(__name__)


class Fetcher(FetchRequests):
    """Copies from the broker `leader_id` until `stop`."""

    def _take_all(self, number: int, response: FetchResponse) -> None:
        for topic in response.responses:
            for data in topic.partitions:
                partition = self._by_id.get((topic.topic_id, data.partition_index))
                copying = None if partition is None else self._copying[partition]
                if partition is None or copying is None or not NOT_TOLD < copying.told <= number:
                    continue  # another epoch by now, or no longer ours to copy
                if data.error_code == ErrorCode.NONE:
                    self._take_or_fail(partition, copying, data)
                elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._forget(partition, copying)  # until we know more
                    Task(self._find_range(partition, copying), "where a leader's log begins and ends")
                else:
                    self._pause_one(partition, copying)

    def _take_or_fail(self, partition: Partition, copying: Copying, data: FetchResponsePartitionData) -> None:
        """Nothing of one partition may keep the others from being copied."""
        try:
            self._take(partition, copying, data)
        except OSError:
            self._replicas.roles.failed(partition)
        except Exception as error:  # noqa: BLE001 - a bug
            if partition.log.is_staging:  # perhaps half of what came: nothing may be written of it
                self._replicas.roles.broken(partition, error)
                return
            _log.exception("%s-%d cannot be copied", partition.topic, partition.index)
            self._pause_one(partition, copying)

    def _take(self, partition: Partition, copying: Copying, data: FetchResponsePartitionData) -> None:
        if data.diverging_epoch.epoch >= 0:
            epoch, end_offset = data.diverging_epoch.epoch, data.diverging_epoch.end_offset
            self._cut(partition, copying, truncation_point(partition.log, epoch, end_offset))
            return
        copying.pause_s = 0.0
        partition.state.hear_high_watermark(data.high_watermark)
        records, size, is_news = data.records, 0, False
        if isinstance(records, memoryview) and records:
            try:
                base = appending.base_across_end(partition.log, records)
                if base is not None and not self._begin_at(partition, base):
                    return
                is_news, size = appending.stage_replica(partition.log, records), len(records)
            except (CorruptBatchError, OSError) as error:
                if isinstance(error, OSError):
                    self._replicas.roles.failed(partition)
                else:
                    self._pause_one(partition, copying)
                return
            self._wishes[partition] = None
        if is_news:
            if partition.state.settings.is_durable:
                self._forget(partition, copying)  # until it is on disk: to ask for more is to say that we have this
                self._wishes[partition] = None
            if not partition.queues.dirty:
                self._replicas.appending.mark_dirty(partition)
            if partition.state.settings.throttles_copying:
                delay_s = self._replicas.throttles.copied(partition, size)
                if delay_s:
                    self._hold_back(partition, copying, delay_s)
        else:
            before = partition.state.high_watermark
            if partition.follow_high_watermark():
                self._replicas.progress.followed(partition, before)
        if partition.log.start_offset < data.log_start_offset <= partition.state.high_watermark:
            removing.set_start_offset(partition.log, data.log_start_offset)
            self._replicas.accounting.measure(partition)
            self._replicas.progress.start_moved(partition)

    def _cut(self, partition: Partition, copying: Copying, offset: int) -> None:
        """Remove what our leader does not have, and go on when that is on disk: nothing may be written behind it before.

        Also at the end of the log: an epoch that began there, and in which nothing was written, has to go from the
        epochs, or it is asked about for ever (KAFKA-10706).
        """
        self._forget(partition, copying)
        Task(self._cut_off(partition, copying, offset), "what a leader does not have")

    async def _cut_off(self, partition: Partition, copying: Copying, offset: int) -> None:
        log, background = partition.log, self._replicas.background
        try:
            mark = cutting.mark_of_cut(log, offset)
            if mark is not None:
                await background.run(mark.write)
                if self._copying.get(partition) is not copying or partition.log is not log:
                    return
            cutting.cut(log, min(offset, log.end_offset), mark)
            partition.truncated()
            self._replicas.accounting.measure(partition)
            work = log.cut_work
            if work is not None:
                await background.run(work)
                cutting.cut_settled(log, work)
        except OSError as error:
            log.fail(error)
            self._replicas.roles.failed(partition)
        except Exception as error:  # noqa: BLE001 - a bug, and half of it may be done
            self._replicas.roles.broken(partition, error)
        else:
            if self._copying.get(partition) is copying:
                self._wish_again(partition)

    # --- out of range -------------------------------------------------------------------------------------------------

    async def _find_range(self, partition: Partition, copying: Copying) -> None:
        """Our end is outside of the leader's log: cut to its end, or begin anew at its start."""
        try:
            end = await self._leader_offset(partition, copying, LATEST)
            start = await self._leader_offset(partition, copying, EARLIEST)
        except PeerError:
            end = start = -1
        except Exception:  # noqa: BLE001 - a bug, or an answer that says nothing
            _log.exception("%s-%d: its leader's log has no range", partition.topic, partition.index)
            end = start = -1
        if self._copying.get(partition) is not copying:
            return
        if end < 0 or start < 0 or start <= partition.log.end_offset <= end:
            self._pause_one(partition, copying)
            return
        if end < partition.log.end_offset:
            self._cut(partition, copying, end)
        else:
            self._begin_at(partition, start)
            self._wish_again(partition)

    def _begin_at(self, partition: Partition, offset: int) -> bool:
        """Throw away what the log holds; whether that went well."""
        try:
            cutting.reset(partition.log, offset)
        except OSError:
            self._replicas.roles.failed(partition)
            return False
        except Exception as error:  # noqa: BLE001 - a bug, and half of it may be done
            self._replicas.roles.broken(partition, error)
            return False
        partition.truncated()
        self._replicas.accounting.measure(partition)
        return True

    async def _leader_offset(self, partition: Partition, copying: Copying, timestamp: int) -> int:
        """-1: it does not say."""
        row = ListOffsetsPartition(
            partition_index=partition.index, current_leader_epoch=copying.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._replicas.broker_id, topics=(ListOffsetsTopic(name=partition.topic, partitions=(row,)),)
        )
        response: ListOffsetsResponse = await self._replicas.peers.call(
            self._leader_id, request, LIST_OFFSETS_VERSION, CALL_TIMEOUT_S
        )
        answer = response.topics[0].partitions[0]
        return answer.offset if answer.error_code == ErrorCode.NONE else -1
