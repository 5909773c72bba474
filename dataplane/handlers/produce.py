"""Produce: append batches to the partitions that this broker leads.

Every batch is staged at once and written at the end of the turn with all the others of its partition (group commit); the
answer goes out when the last of the request's partitions is as safe as `acks` asks. `dataplane.handlers.produce_shapes`
is the short cut for the request that clients send nearly always: one partition, the same header bytes as last time.
"""

from __future__ import annotations

from dataplane.handlers.context import Reply, RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Encoded
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from dataplane.records.batch import HEADER_SIZE, read_header
from dataplane.replication.manager import Appended
from dataplane.replication.partition import Partition
from dataplane.tasks import Future
from dataplane.throttle.gate import throttle_ms

_REFUSED = Appended(ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)


def handle_produce(ctx: RequestContext, request: ProduceRequest) -> Reply:
    """All partitions of a request, answered together."""
    delay_s = ctx.broker.gate.charge_produce(ctx.session.instance, ctx.size)
    if request.acks not in (-1, 0, 1):
        pending = _refuse_all(ctx, request, ErrorCode.INVALID_REQUIRED_ACKS)
    elif request.transactional_id is not None:
        pending = _refuse_all(ctx, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    else:
        pending = _Pending(ctx, request, throttle_ms(delay_s))
        pending.start()
    if request.acks == 0:
        if pending.has_errors():  # no answer says so: Kafka ends the connection, and the client asks for metadata
            raise CloseConnectionError("an error on a produce request with acks=0")
        return Encoded([], delay_s)
    return pending.answer


class _Pending:
    """A request whose partitions are being made safe."""

    def __init__(self, ctx: RequestContext, request: ProduceRequest, throttle_time_ms: int) -> None:
        self._ctx, self._request = ctx, request
        self._topics = [topic.name for topic in request.topic_data]
        self._throttle_time_ms = throttle_time_ms
        self._results: list[list[PartitionProduceResponse]] = []
        self._open = 1  # one for `start` itself
        self.answer: Future[ProduceResponse] = Future()

    def start(self) -> None:
        """Stage every batch, and wait for those that were taken."""
        for topic in self._request.topic_data:
            results: list[PartitionProduceResponse] = []
            self._results.append(results)
            refusal, text = self._topic_refusal(topic)
            for data in topic.partition_data:
                if refusal:
                    results.append(_result(data, refusal, text=text))
                else:
                    self._append(topic.name, data, results)
        del self._request  # what waits for its acknowledgement holds no records
        self._close_one()

    def refuse(self, code: ErrorCode) -> None:
        """The same error for every partition."""
        for topic in self._request.topic_data:
            self._results.append([_result(data, code) for data in topic.partition_data])
        self._close_one()

    def has_errors(self) -> bool:
        """Whether a partition has been refused so far."""
        return any(result.error_code for results in self._results for result in results)

    def _topic_refusal(self, topic: TopicProduceData) -> tuple[ErrorCode, str | None]:
        if self._ctx.topic_denied(topic.name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED, None
        blocked = self._ctx.broker.gate.produce_refusal(self._ctx.session.instance)
        return (ErrorCode.POLICY_VIOLATION, blocked) if blocked else (ErrorCode.NONE, None)

    def _append(self, topic: str, data: PartitionProduceData, results: list[PartitionProduceResponse]) -> None:
        replicas = self._ctx.broker.replicas
        partition = replicas.leader(topic, data.index)
        if isinstance(partition, ErrorCode):
            results.append(_result(data, partition))
            return
        batch = _single_batch(data)
        if isinstance(batch, ErrorCode):
            results.append(_result(data, batch))
            return
        acks = self._request.acks
        appended = replicas.append(partition, batch, acks)
        if appended.error:
            results.append(_result(data, appended.error, partition=partition))
            return
        place = len(results)
        results.append(_result(data, ErrorCode.NONE, appended, partition))
        self._open += 1

        def done(error: ErrorCode) -> None:
            if error:
                results[place] = _result(data, error)
            self._close_one()

        replicas.after_commit(partition, appended.last_offset, acks, self._request.timeout_ms / 1000, done)

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            topics = zip(self._topics, self._results, strict=True)
            responses = tuple(TopicProduceResponse(topic, tuple(results)) for topic, results in topics)
            self.answer.resolve(ProduceResponse(responses=responses, throttle_time_ms=self._throttle_time_ms))


def _refuse_all(ctx: RequestContext, request: ProduceRequest, code: ErrorCode) -> _Pending:
    pending = _Pending(ctx, request, 0)
    pending.refuse(code)
    return pending


def _single_batch(data: PartitionProduceData) -> memoryview | ErrorCode:
    """The one batch that a request may carry per partition; what it must be is checked by `Replicas.append`."""
    records = data.records
    if records is None or not isinstance(records, memoryview) or len(records) <= 16:
        return ErrorCode.INVALID_RECORD
    if records[16] != 2:  # the magic byte has the same place in every format
        return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT if records[16] < 2 else ErrorCode.CORRUPT_MESSAGE
    if len(records) < HEADER_SIZE:
        return ErrorCode.CORRUPT_MESSAGE
    header = read_header(records)
    if 0 < header.size < len(records):
        return ErrorCode.INVALID_RECORD  # more than one batch
    return records


def _result(
    data: PartitionProduceData,
    error: ErrorCode,
    appended: Appended = _REFUSED,
    partition: Partition | None = None,
    text: str | None = None,
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=data.index,
        error_code=error,
        base_offset=appended.base_offset,
        log_append_time_ms=-1,
        log_start_offset=partition.log.start_offset if partition is not None else -1,
        error_message=text,
    )
