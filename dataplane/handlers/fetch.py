"""Fetch: batches as they lie in the log, for consumers up to the high watermark, for followers up to the end.

Answers are small headers around file ranges. A fetch that finds less than `min_bytes` waits on its partitions until there
is more or its time is up. Sessions (KIP-227) are not kept: every answer says session 0, which is a full fetch each time.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataplane.doors import Callback
from dataplane.handlers.context import Reply, RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Encoded
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import encode_frame
from dataplane.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
)
from dataplane.replication.partition import Partition
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.tasks import Future
from dataplane.throttle.gate import throttle_ms

_API = APIS[ApiKey.FETCH]
_THROTTLE_WINDOW_S = 1.0


def handle_fetch(ctx: RequestContext, request: FetchRequest) -> Reply:
    """A consumer's fetch, or on the internal listener a follower's."""
    if request.replica_id >= 0 and not ctx.session.is_internal:
        raise CloseConnectionError("a replica's fetch on a tenant's listener")
    if request.session_epoch > 0:  # a session that we never gave out
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    if request.replica_id >= 0:
        answer: Future[FetchResponse] = Future()
        ctx.broker.replica_fetches.serve(request, answer.resolve)
        return answer
    fetch = _Fetch(ctx, request)
    fetch.start()
    return fetch.answer


class _Answer(Future[Encoded]):
    """Of a fetch that may wait long; `give_up` ends that when the connection is gone."""

    __slots__ = ("give_up",)

    def __init__(self) -> None:
        super().__init__()
        self.give_up: Callback | None = None


@dataclass(slots=True)
class _Round:
    """One pass over the partitions."""

    topics: list[FetchableTopicResponse]
    readable: list[tuple[Partition, int]]
    size: int
    must_answer: bool  # there is an error to tell


class _Fetch:
    """A consumer's fetch until it is answered."""

    def __init__(self, ctx: RequestContext, request: FetchRequest) -> None:
        self._ctx, self._request = ctx, request
        self.answer = _Answer()

    def start(self) -> None:
        """Answer at once if there is enough, else wait."""
        request = self._request
        found = self._read()
        if found.must_answer or found.size >= request.min_bytes or request.max_wait_ms <= 0 or not found.readable:
            self._finish(found)
            return
        missing = request.min_bytes - found.size
        replicas = self._ctx.broker.replicas
        self.answer.give_up = replicas.when_readable(found.readable, missing, request.max_wait_ms / 1000, self._woken)

    def _woken(self) -> None:
        self._finish(self._read())

    def _read(self) -> _Round:
        left = min(self._request.max_bytes, self._budget())
        round_ = _Round([], [], 0, must_answer=False)
        for topic in self._request.topics:
            denied = self._ctx.topic_denied(topic.topic)
            partitions = []
            for wanted in topic.partitions:
                if denied:
                    data = _error(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    round_.must_answer = True
                else:
                    data = self._partition(topic.topic, wanted, max(0, left - round_.size), round_)
                partitions.append(data)
            round_.topics.append(FetchableTopicResponse(topic=topic.topic, partitions=tuple(partitions)))
        return round_

    def _budget(self) -> int:
        """What an answer may hold: the broker's limit, and for a limited instance about a second of its allocation."""
        limit = self._ctx.broker.config.settings.fetch_max_bytes
        allowed = self._ctx.broker.gate.fetch_bytes(self._ctx.session.instance, _THROTTLE_WINDOW_S)
        return limit if allowed is None else min(limit, max(allowed, 1))

    def _partition(self, topic: str, wanted: FetchPartition, left: int, round_: _Round) -> FetchResponsePartitionData:
        replicas = self._ctx.broker.replicas
        partition = replicas.leader(topic, wanted.partition, wanted.current_leader_epoch)
        if isinstance(partition, ErrorCode):
            round_.must_answer = True
            return _error(wanted, partition)
        at_least_one = round_.size == 0  # a batch larger than every limit must still be deliverable
        data = self._records(partition, wanted, left, at_least_one=at_least_one)
        if data.error_code:
            round_.must_answer = True
            return data
        size = _size(data)
        round_.size += size
        round_.readable.append((partition, wanted.fetch_offset))
        return data

    def _records(
        self, partition: Partition, wanted: FetchPartition, left: int, *, at_least_one: bool
    ) -> FetchResponsePartitionData:
        max_bytes = min(wanted.partition_max_bytes, left)
        try:
            records = self._ctx.broker.replicas.read(
                partition, wanted.fetch_offset, max_bytes, at_least_one=at_least_one, as_replica=False
            )
        except OffsetOutOfRangeError:
            return _error(wanted, ErrorCode.OFFSET_OUT_OF_RANGE, partition)
        except OSError:
            return _error(wanted, ErrorCode.KAFKA_STORAGE_ERROR, partition)
        if records is not None and partition.usage is not None and not self._ctx.session.is_internal:
            records.sent = partition.usage.consumed
        return FetchResponsePartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.high_watermark,
            log_start_offset=partition.log.start_offset,
            aborted_transactions=() if self._request.isolation_level else None,
            records=records if records is not None else b"",
        )

    def _finish(self, found: _Round) -> None:
        ctx = self._ctx
        response = FetchResponse(responses=tuple(found.topics))
        parts = encode_frame(_API, ctx.version, ctx.correlation_id, response, ctx.session.names)
        size = sum(len(part) if isinstance(part, bytes) else part.size for part in parts)
        delay_s = ctx.broker.gate.charge_consume(ctx.session.instance, size)
        if delay_s:
            # The size of the answer decides the delay that it reports: the field is the first of the body.
            at = 9 if ctx.version in _API.flexible else 8
            head = bytearray(parts[0])  # type: ignore[arg-type]
            head[at : at + 4] = throttle_ms(delay_s).to_bytes(4)
            parts[0] = bytes(head)
        self.answer.resolve(Encoded(parts, delay_s))


def _size(data: FetchResponsePartitionData) -> int:
    records = data.records
    if records is None:
        return 0
    return len(records) if isinstance(records, (bytes, bytearray, memoryview)) else records.size


def _error(wanted: FetchPartition, code: ErrorCode, partition: Partition | None = None) -> FetchResponsePartitionData:
    return FetchResponsePartitionData(
        partition_index=wanted.partition,
        error_code=code,
        high_watermark=partition.high_watermark if partition is not None and code != 1 else -1,
        log_start_offset=partition.log.start_offset if partition is not None and code != 1 else -1,
        records=b"",
    )
