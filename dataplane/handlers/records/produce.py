"""Produce: append batches to the partitions that this broker leads.

Every batch is staged at once and written at the end of the turn with all the others of its partition (group commit); the
answer goes out when the last of the request's partitions is as safe as `acks` asks. `dataplane.requests.fastpath.produce`
is the short cut for the request that clients send nearly always: one partition, the same header bytes as last time.

Records that cannot be stored as they came (old formats, topics with rules for records) are prepared first
(`dataplane.handlers.records.conversion`); that may take more than this turn, and until then the connection is not read from.
So may a request of very many partitions (`RequestContext.is_long`): its batches are staged in steps, each with the turn
that it is staged in, and whether the session may write to a topic is asked for each.

Batches of a transaction are verified first, all of a request at once (`transactions.verification`); from version 12 on their
partitions are added to it, if they are not in it (KIP-890, part 2). As in Kafka it is the
batches that make a request transactional: it has to name a transactional id then, and one that names an id without them is like
any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.handlers.context import RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Encoded, Now, Outcome, Reply
from dataplane.handlers.records.conversion import (
    Prepared,
    needs_preparation,
    prepare,
    produce_problem,
)
from dataplane.handlers.records.leader_hints import current_leader, endpoints
from dataplane.handlers.transaction_charges import charge
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    TopicProduceData,
    TopicProduceResponse,
)
from dataplane.protocol.primitives import size_of
from dataplane.records.header import CorruptBatchError, is_in_transaction, read_header
from dataplane.records.preparation import RefusedRecordsError
from dataplane.records.steps import Pace, run_through
from dataplane.replication.appending import Appended, Turn
from dataplane.replication.replica.partition import Partition
from dataplane.tasks import Future, Later
from dataplane.tenancy.access import Operation, of_transactional_id
from dataplane.throttle.debt_queue import throttle_ms
from dataplane.transactions.verification import told_to_producers

if TYPE_CHECKING:
    from dataplane.protocol.primitives import Buffer, Splice
    from dataplane.records.steps import Steps
    from dataplane.transactions.verification import Errors

_log = logging.getLogger(__name__)

_LEADER_HINTS_SINCE, _ADDS_SINCE = 10, 12
_PARTITION_US, _REFUSAL_US, _LOOK_US = 25, 4, 1
BYTES_IN_A_TURN = 2**20
"""Of a long request: they are written at the end of the turn in one go, at about a byte a nanosecond."""
_WITHOUT_START = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE)
"""Errors with which Kafka does not say where the log begins."""
_NOT_VERIFIED = "the partition could not be verified to be in the transaction"
_TOO_MUCH = "the instance has as many transactions open as it may, or as many partitions in them"
_REFUSED = Appended(ErrorCode.UNKNOWN_SERVER_ERROR, -1, -1)


def handle_produce(ctx: RequestContext, request: ProduceRequest) -> Reply:
    """All partitions of a request, answered together."""
    delay_s = ctx.told_s  # it was charged when it began
    instance = ctx.session.instance
    if instance is not None and instance.rules is not None:
        delay_s = max(delay_s, instance.rules.charge_produce(ctx.session, ctx.client_id, ctx.size, _sizes(request)))
    elif ctx.is_on_behalf:
        for topic, size in _sizes(request):
            delay_s = max(delay_s, ctx.broker.gate.charge_produce(ctx.payer(topic), ctx.sender, size))
    refusal = ErrorCode.NONE
    if request.acks not in (-1, 0, 1):
        refusal = ErrorCode.INVALID_REQUIRED_ACKS
    pending = _Pending(ctx, request, 0 if refusal else throttle_ms(delay_s))
    steps = pending.refuse(request, refusal) if refusal else pending.start(request)
    if ctx.is_long:
        return _in_steps(pending, steps, request.acks)
    run_through(steps)
    return pending.unanswered() if request.acks == 0 else pending.answer


def _in_steps(pending: _Pending, steps: Steps[None], acks: int) -> Steps[Outcome]:
    yield from steps
    return pending.unanswered() if acks == 0 else pending.answer


class _Held(Later[Now]):
    """An answer whose connection is read no further until all of its request's batches are staged."""

    __slots__ = ("_staged", "turn", "verified_s")

    def __init__(self, staged: Future[None]) -> None:
        super().__init__()
        self._staged = staged
        self.turn: Turn | None = None  # the last in which a batch was staged
        self.verified_s = 0.0  # so long it took to hear that its transaction is one

    def waited_s(self, began_s: float, now_s: float) -> float:
        """For its in-sync replicas, or the disk: from the end of the turn in which it was written, where that is over."""
        if self.turn is None:
            return now_s - began_s
        ended_s = self.turn.ended_s
        return self.verified_s + (0.0 if ended_s is None else now_s - ended_s)

    @property
    def held_until(self) -> Future[None]:
        """When they are staged."""
        return self._staged


class _Batch(NamedTuple):
    """What is to be appended to one partition, and the place of its answer."""

    partition: Partition
    partition_index: int
    records: memoryview
    results: list[PartitionProduceResponse]
    place: int


_Producer = tuple[int, int]
"""Id and epoch."""


def transactional_producer(records: memoryview) -> _Producer | None:
    """Who writes a batch in a transaction; None where it is in none."""
    if not is_in_transaction(records):
        return None
    header = read_header(records)
    return header.producer_id, header.producer_epoch


def _producers(request: ProduceRequest, pace: Pace) -> Steps[dict[_Producer, None]]:
    """Who writes in transactions."""
    found: dict[_Producer, None] = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            if pace.over(_LOOK_US):
                yield None
            records = data.records
            producer = transactional_producer(records) if isinstance(records, memoryview) else None
            if producer is not None:
                found[producer] = None
    return found


class _Pending:
    """A request whose partitions are being made safe."""

    def __init__(self, ctx: RequestContext, request: ProduceRequest, throttle_time_ms: int) -> None:
        self._ctx = ctx
        self._acks, self._timeout_s = request.acks, request.timeout_ms / 1000
        self._topics = [topic.name for topic in request.topic_data]
        self._throttle_time_ms = throttle_time_ms
        self._results: list[list[PartitionProduceResponse]] = []
        self._open = 1  # one for `start` itself
        self._unprepared = 1  # likewise
        self._is_blocked = False
        self._began_in = ctx.broker.doors.loop.turn_number
        self._turn_bytes = 0
        self._to_verify: list[_Batch] = []
        self._staged: Future[None] = Future()
        self.answer = _Held(self._staged)

    def start(self, request: ProduceRequest) -> Steps[None]:
        """Stage every batch, and wait for those that were taken. What waits then holds no records of the request."""
        pace = Pace()
        producers = yield from _producers(request, pace)
        if producers:
            refused = self._transactional_refusal(request, producers)
            if refused:
                self._throttle_time_ms = 0
                yield from self.refuse(request, refused)
                return
        for topic in request.topic_data:
            results: list[PartitionProduceResponse] = []
            self._results.append(results)
            refusal, text = self._topic_refusal(topic)
            for data in topic.partition_data:
                if self._fills_a_turn(data.records):
                    yield _another_turn
                    refusal, text = self._topic_refusal(topic)
                elif pace.over(_PARTITION_US):
                    yield None
                    refusal, text = self._topic_refusal(topic)
                if refusal:
                    results.append(_result(data.index, refusal, text=text))
                else:
                    self._append(topic.name, data, results)
        if self._to_verify:
            yield from self._verify(request, *next(iter(producers)))
        self._prepared_one()
        self._close_one()

    def _fills_a_turn(self, records: Buffer | Splice | None) -> bool:
        """Whether these would be more than is written at the end of one turn; of a short request they never are."""
        if not self._ctx.is_long:
            return False
        size = size_of(records)
        self._turn_bytes += size
        if self._turn_bytes <= BYTES_IN_A_TURN or self._turn_bytes == size:
            return False
        self._turn_bytes = size
        return True

    def _transactional_refusal(self, request: ProduceRequest, producers: dict[_Producer, None]) -> ErrorCode:
        if request.transactional_id is None:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        refusal = self._ctx.refusal(Operation.WRITE, of_transactional_id(request.transactional_id))
        return refusal or (ErrorCode.INVALID_PRODUCER_ID_MAPPING if len(producers) > 1 else ErrorCode.NONE)

    def _verify(self, request: ProduceRequest, producer_id: int, epoch: int) -> Steps[None]:
        """Have the coordinator say that the transaction's batches may be appended, and go on with them."""
        assert request.transactional_id is not None
        batches, self._to_verify = self._to_verify, []
        keys = [(batch.partition.topic, batch.partition_index) for batch in batches]
        adds, verifier = self._ctx.version >= _ADDS_SINCE, self._ctx.broker.verifier
        waiting = (verifier.add if adds else verifier.verify)(request.transactional_id, producer_id, epoch, keys)
        if adds and waiting is not None:
            charge(self._ctx, request.transactional_id, added=len(keys))
        if waiting is None:
            yield from self._go_on(batches, {})
            return
        self._open += 1
        self._unprepared += 1
        if not self._ctx.is_long:  # the frame's memory is for the next, else it is the request's own
            batches = [batch._replace(records=memoryview(bytearray(batch.records))) for batch in batches]
        clock = self._ctx.broker.doors.clock
        asked_s = clock.monotonic()

        def verified(future: Future[Errors]) -> None:
            self.answer.verified_s = clock.monotonic() - asked_s
            steps = self._verified(batches, future.result())
            if self._ctx.is_long:
                self._ctx.broker.slices.run(self._ctx.owner, steps)
            else:
                run_through(steps)

        waiting.then(verified)

    def _verified(self, batches: list[_Batch], errors: Errors) -> Steps[None]:
        yield from self._go_on(batches, errors)
        self._prepared_one()
        self._close_one()

    def _go_on(self, batches: list[_Batch], errors: Errors) -> Steps[None]:
        pace = Pace()
        for batch in batches:
            if self._fills_a_turn(batch.records):
                yield _another_turn
            elif pace.over(_PARTITION_US):
                yield None
            error = errors.get((batch.partition.topic, batch.partition_index), ErrorCode.NONE)
            if error:
                told = told_to_producers(error, self._ctx.version)
                text = _TOO_MUCH if error is ErrorCode.POLICY_VIOLATION else f"{_NOT_VERIFIED}: {error.name}"
                batch.results[batch.place] = _result(batch.partition_index, told, text=text)
                if told is ErrorCode.NOT_ENOUGH_REPLICAS and self._ctx.version < _ADDS_SINCE:
                    header = read_header(batch.records)
                    who = header.producer_id, header.producer_epoch
                    batch.partition.log.transactions.told_to_come_again(*who, header.base_sequence)
            else:
                self._take_batch(batch)

    def refuse(self, request: ProduceRequest, code: ErrorCode) -> Steps[None]:
        """The same error for every partition."""
        pace = Pace()
        for topic in request.topic_data:
            results: list[PartitionProduceResponse] = []
            self._results.append(results)
            for data in topic.partition_data:
                if pace.over(_REFUSAL_US):
                    yield None
                results.append(_result(data.index, code))
        self._prepared_one()
        self._close_one()

    def has_errors(self) -> bool:
        """Whether a partition has been refused so far."""
        return any(result.error_code for results in self._results for result in results)

    def _topic_refusal(self, topic: TopicProduceData) -> tuple[ErrorCode, str | None]:
        refusal = self._ctx.topic_refusal(Operation.WRITE, topic.name)
        if refusal:
            return refusal, None
        if topic.name in COORDINATORS_TOPICS:  # what anybody else writes their coordinators could not read
            return ErrorCode.INVALID_TOPIC_EXCEPTION, None
        gate, instance = self._ctx.broker.gate, self._ctx.payer(topic.name)
        blocked = gate.produce_refusal(instance)
        if blocked is None:
            return ErrorCode.NONE, None
        if not self._is_blocked:
            self._is_blocked = True
            gate.refused(instance, self._ctx.size)
        return ErrorCode.POLICY_VIOLATION, blocked

    def unanswered(self) -> Outcome:
        """With acks=0 there is no answer; an error ends the connection, and then the client asks for metadata."""
        if self._staged.done and not self.has_errors():
            return Encoded([])
        reply = _Held(self._staged)

        def staged(_: Future[None]) -> None:
            if self.has_errors():
                reply.fail(CloseConnectionError("an error on a produce request with acks=0"))
            else:
                reply.resolve(Encoded([]))

        self._staged.then(staged)
        return reply

    def _append(self, topic: str, data: PartitionProduceData, results: list[PartitionProduceResponse]) -> None:
        version = self._ctx.version
        partition = self._ctx.broker.replicas.registry.leader(topic, data.index)
        if isinstance(partition, ErrorCode):
            results.append(_result(data.index, partition))
            return
        problem = produce_problem(data.records, version)
        if problem:
            results.append(_result(data.index, problem))
            return
        place = len(results)
        results.append(_result(data.index, ErrorCode.UNKNOWN_SERVER_ERROR))
        batch = _Batch(partition, data.index, data.records, results, place)  # type: ignore[arg-type]
        if transactional_producer(batch.records) is not None:
            self._to_verify.append(batch)
        else:
            self._take_batch(batch)

    def _take_batch(self, batch: _Batch) -> None:
        if needs_preparation(batch.partition, self._ctx.version):
            self._prepare(batch)
        else:
            self._stage(batch, batch.records)

    def _prepare(self, batch: _Batch) -> None:
        self._open += 1
        self._unprepared += 1

        def done(future: Future[Prepared]) -> None:
            error = future.error
            if isinstance(error, CorruptBatchError):
                batch.results[batch.place] = _result_of(batch.partition_index, error, batch.partition)
            elif error is not None:
                _log.error("records could not be prepared", exc_info=error)
            else:
                self._take(batch, future.result())
            self._prepared_one()
            self._close_one()

        prepare(self._ctx, batch.partition, batch.records).then(done)

    def _take(self, batch: _Batch, made: Prepared) -> None:
        if made.batch is None:
            batch.results[batch.place] = _result(batch.partition_index, ErrorCode.NONE)
        else:
            self._stage(batch, made.batch, made)

    def _stage(self, batch: _Batch, records: memoryview, made: Prepared | None = None) -> None:
        replicas = self._ctx.broker.replicas
        partition, index, _, results, place = batch
        appended = replicas.appending.append(
            partition,
            records,
            self._acks,
            is_checked=made is not None,
            is_transactional=True,
            begins_with_0=self._ctx.version >= _ADDS_SINCE,
        )

        def done(error: ErrorCode) -> None:
            if error:
                results[place] = _result(index, error)
            self._close_one()

        if appended.error:
            at_fault = None if appended.error in _WITHOUT_START else partition
            results[place] = _result(index, appended.error, partition=at_fault)
            if appended.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                self._open += 1
                replicas.verdicts.wait(partition, done)
            return
        if not appended.duplicate:
            self._ctx.talk(partition.topic).produced += len(records)
            loop = self._ctx.broker.doors.loop
            if (
                self._ctx.is_long or loop.turn_number != self._began_in
            ):  # else it came in this turn, and is counted already
                loop.will_write(self._ctx.session.account, len(records))
        if made is not None and not appended.duplicate:
            appended = appended._replace(log_append_time=made.log_append_time)
        results[place] = _result(index, ErrorCode.NONE, appended, partition)
        self._open += 1
        self.answer.turn = replicas.appending.turn
        replicas.appending.after_commit(partition, appended.last_offset, self._acks, self._timeout_s, done)

    def _prepared_one(self) -> None:
        self._unprepared -= 1
        if self._unprepared == 0:
            self._staged.resolve(None)

    def _close_one(self) -> None:
        self._open -= 1
        if self._open == 0:
            steps = self._complete()
            if self._ctx.is_long:
                self._ctx.broker.slices.run(self._ctx.owner, steps)
            else:
                run_through(steps)

    def _complete(self) -> Steps[None]:
        hinted: dict[int, None] = {}
        if self._ctx.version >= _LEADER_HINTS_SINCE:
            hinted = yield from self._name_leaders()
        topics = zip(self._topics, self._results, strict=True)
        responses = tuple(TopicProduceResponse(topic, tuple(results)) for topic, results in topics)
        nodes = endpoints(self._ctx, hinted, ProduceResponseNodeEndpoint) if hinted else ()
        self.answer.resolve(ProduceResponse(responses, self._throttle_time_ms, nodes))

    def _name_leaders(self) -> Steps[dict[int, None]]:
        """Say with every "not me" who it is (KIP-951); returns whom."""
        pace = Pace()
        hinted: dict[int, None] = {}
        for topic, results in zip(self._topics, self._results, strict=True):
            for place, result in enumerate(results):
                if pace.over(_REFUSAL_US):
                    yield None
                if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    leader = current_leader(self._ctx.broker, topic, result.index)
                    results[place] = replace(result, current_leader=ProduceResponseLeaderIdAndEpoch(*leader))
                    hinted[leader[0]] = None
        return hinted


def _another_turn() -> None:
    """As a step's call: the steps go on when what they have staged is written."""


def _sizes(request: ProduceRequest) -> Iterator[tuple[str, int]]:
    """The bytes of records by topic."""
    for topic in request.topic_data:
        yield topic.name, sum(size_of(data.records) for data in topic.partition_data)


def _result(
    index: int,
    error: ErrorCode,
    appended: Appended = _REFUSED,
    partition: Partition | None = None,
    text: str | None = None,
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=partition.log.start_offset if partition is not None else -1,
        error_message=text,
    )


def _result_of(index: int, error: CorruptBatchError, partition: Partition) -> PartitionProduceResponse:
    """Of records that were refused for what they are."""
    if not isinstance(error, RefusedRecordsError):
        return _result(index, error.code)
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=partition.log.start_offset,
        record_errors=tuple(BatchIndexAndErrorMessage(row, text) for row, text in error.rows),
        error_message=str(error),
    )
