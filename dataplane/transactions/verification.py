"""Before the first batch of a transaction is appended, its coordinator is asked whether the partition is in it (KIP-890).

Else a batch that was long on its way could come when its transaction has ended, and open one that nobody ever ends: readers of
what is stable would stop there for good.

    guard      taken in the partition's log (`checkpoints.transactions`) before the question
    question   AddPartitionsToTxn with `verify_only`, to the coordinator
    answer     the guard is verified, unless a marker has spoiled it: then the answer may be of the transaction that has ended

Questions for one broker travel together: one request at a time, and in the next what came up meanwhile, though no more
than is written, and appended upon the answer, within a few milliseconds. A transactional id occurs once in a request: who asks
the same at the same time shares a row, of two epochs of its producer the older one is fenced, and another producer (an id's
epochs were exhausted) is to come again.

Producers that know the second part of KIP-890 do not add partitions themselves: their question is "add these", and yes means
that they are in the transaction now. Such a producer may begin while the markers of its transaction before are on their way. Then
the coordinator says CONCURRENT_TRANSACTIONS, or a marker comes after the guard: it is asked again for a moment before the
producer is told so, whose own pause is longer than markers take.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.cluster.metadata import COORDINATORS_TOPICS, TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from dataplane.storage.log import producing
from dataplane.tasks import Future
from dataplane.transactions.model import Partition, partitions_by_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dataplane.cluster.metadata import Metadata
    from dataplane.config import Settings
    from dataplane.doors import Loop
    from dataplane.replication.replica_registry import ReplicaRegistry
    from dataplane.storage.checkpoints.transactions import Guard, Transactions

VERSION = 4
"""Of AddPartitionsToTxn: the lowest that brokers ask. In 5 nothing is another, and one of before would not know it."""
TIMEOUT_S = 10.0
PARTITIONS_PER_REQUEST = 200
ADDED_WITHIN_S, PAUSE_S = 0.5, 0.01
"""How long it is tried to add partitions to the transaction after one that is being ended."""

Errors = dict[Partition, ErrorCode]

_ADDS_SINCE, _KNOWS_ABORTABLE_SINCE = 12, 11
"""Versions of Produce."""
_RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_AS_TOLD = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,  # what producers expect of a log
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,  # ours, and no business of a client's
}


def told_to_producers(code: ErrorCode, version: int) -> ErrorCode:
    """An error of `Verifier` as this version of Produce says it, as Kafka 4 does.

    Whatever passes is told as one that every client sends again after; clients that have their partitions added know what it
    means that the transaction before is being ended. That a partition is not in the transaction is told to those that know
    TRANSACTION_ABORTABLE: they abort and go on.
    """
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and version >= _ADDS_SINCE:
        return code
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _KNOWS_ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in _RETRIABLE else code


class Call(Protocol):
    """`Peers.call`."""

    def __call__(self, broker_id: int, request: Any, version: int, timeout_s: float) -> Future[Any]:
        """Ask a broker."""
        ...


class _Question:
    """About one producer's transaction."""

    __slots__ = ("adds", "answer", "epoch", "errors", "guards", "joined", "producer_id", "transactional_id")

    def __init__(self, transactional_id: str, producer_id: int, epoch: int, *, adds: bool) -> None:
        self.transactional_id, self.producer_id, self.epoch = transactional_id, producer_id, epoch
        self.adds = adds
        self.guards: dict[Partition, tuple[Transactions, Guard]] = {}
        self.errors: Errors = {}
        self.answer: Future[Errors] = Future()
        self.joined: list[_Question] = []  # of the same producer, answered with this one

    def is_of_the_same(self, other: _Question) -> bool:
        """Whether both are about one transaction."""
        return (self.producer_id, self.epoch, self.adds) == (other.producer_id, other.epoch, other.adds)

    def partitions(self) -> dict[Partition, None]:
        """All that is asked about."""
        return dict.fromkeys(key for question in (self, *self.joined) for key in question.guards)

    def size(self) -> int:
        """How many partitions that are, those twice that are asked about twice."""
        return len(self.guards) + sum(len(question.guards) for question in self.joined)

    def close(self, said: Callable[[Partition], ErrorCode]) -> None:
        """The coordinator has said this of each partition, or nobody has."""
        for partition, (transactions, guard) in self.guards.items():
            code = said(partition)
            is_verified = transactions.answered(self.producer_id, guard, is_verified=code is ErrorCode.NONE)
            if not is_verified and code is ErrorCode.NONE:
                code = ErrorCode.CONCURRENT_TRANSACTIONS if self.adds else ErrorCode.INVALID_TXN_STATE
            self.errors[partition] = code
        self.answer.resolve(self.errors)
        for question in self.joined:
            question.close(said)


class _Line:
    """Questions for one broker."""

    __slots__ = ("is_asking", "waiting")

    def __init__(self) -> None:
        self.is_asking = False
        self.waiting: dict[str, _Question] = {}  # by transactional id

    def take(self) -> dict[str, _Question]:
        """Those of the next request: one at least."""
        taken: dict[str, _Question] = {}
        room = PARTITIONS_PER_REQUEST
        for name, question in self.waiting.items():
            room -= question.size()
            if taken and room < 0:
                break
            taken[name] = question
        for name in taken:
            del self.waiting[name]
        return taken


class Verifier:
    """Asks for all partitions that this broker leads."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        loop: Loop,
        registry: ReplicaRegistry,
        metadata: Metadata,
        call: Call,
    ) -> None:
        self._settings, self._loop, self._call = settings, loop, call
        self._registry, self._metadata = registry, metadata
        self._lines: dict[int, _Line] = {}

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Sequence[Partition]
    ) -> Future[Errors] | None:
        """May the producer append to these partitions (topic, index), which this broker leads, in its transaction?

        None: to all of them, now. The future never fails, and has a row for each partition; see `told_to_producers`.
        Whether it is asked can be set, but for the partitions of coordinators: each is of many instances, and without the
        question anybody could open a transaction there for somebody else's producer, which then could not end its own.
        """
        is_shared = any(topic in COORDINATORS_TOPICS for topic, _ in partitions)
        if not (is_shared or self._settings().transaction_partition_verification_enable):
            return None
        return self._question(_Question(transactional_id, producer_id, producer_epoch, adds=False), partitions)

    def add(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Sequence[Partition]
    ) -> Future[Errors] | None:
        """As `verify`, but they become part of the producer's transaction, if they are not."""

        def ask() -> Future[Errors] | None:
            return self._question(_Question(transactional_id, producer_id, producer_epoch, adds=True), partitions)

        first = ask()
        if first is None:
            return None
        added: Future[Errors] = Future()
        first.then(partial(self._tried, ask, self._loop.clock.monotonic() + ADDED_WITHIN_S, added))
        return added

    def _tried(
        self, ask: Callable[[], Future[Errors] | None], until: float, added: Future[Errors], future: Future[Errors]
    ) -> None:
        errors = future.result()
        is_early = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if not is_early or self._loop.clock.monotonic() >= until:
            added.resolve(errors)
            return

        def try_again() -> None:
            asked = ask()
            if asked is None:
                added.resolve(dict.fromkeys(errors, ErrorCode.NONE))
            else:
                asked.then(partial(self._tried, ask, until, added))

        self._loop.call_later(PAUSE_S, try_again)

    def _question(self, question: _Question, partitions: Sequence[Partition]) -> Future[Errors] | None:
        for partition in partitions:
            question.errors[partition] = self._prepare(question, partition)
        if question.guards:
            self._ask(question)
        elif any(question.errors.values()):
            question.answer.resolve(question.errors)
        else:
            return None
        return question.answer

    def _prepare(self, question: _Question, key: Partition) -> ErrorCode:
        """Take a guard, if the coordinator is to be asked about this partition."""
        partition = self._registry.leader(*key)
        if isinstance(partition, ErrorCode):
            return partition
        log, name, producer_id, epoch = partition.log, question.transactional_id, question.producer_id, question.epoch
        try:
            producers = producing.producers_of(log)
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        transactions = log.transactions
        if not (producers.may_continue(producer_id, epoch) or transactions.is_verified(producer_id, epoch, name)):
            question.guards[key] = (transactions, transactions.guard(name, producer_id, epoch))
        return ErrorCode.NONE

    # --- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, question: _Question) -> None:
        coordinator = self._coordinator_of(question.transactional_id)
        if coordinator is None:
            question.close(lambda _: ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        line = self._lines.setdefault(coordinator, _Line())
        earlier = line.waiting.get(question.transactional_id)
        if earlier is None:
            line.waiting[question.transactional_id] = question
        elif earlier.is_of_the_same(question):
            earlier.joined.append(question)
        elif question.producer_id != earlier.producer_id or question.epoch == earlier.epoch:
            # whose epochs say nothing of each other, or which ask for different things: one after the other
            question.close(lambda _: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        elif question.epoch < earlier.epoch:
            question.close(lambda _: ErrorCode.INVALID_PRODUCER_EPOCH)
        else:
            line.waiting[question.transactional_id] = question
            earlier.close(lambda _: ErrorCode.INVALID_PRODUCER_EPOCH)
        if not line.is_asking:
            line.is_asking = True
            self._loop.call_soon(partial(self._send, coordinator, line))

    def _coordinator_of(self, transactional_id: str) -> int | None:
        partitions = self._metadata.partitions(TRANSACTIONS_TOPIC)
        if not partitions:
            return None  # then there has never been a transaction
        found = partitions.get(partition_of(transactional_id, len(partitions)))
        return found.leader if found is not None and found.has_leader else None

    def _send(self, coordinator: int, line: _Line) -> None:
        questions = line.take()
        request = AddPartitionsToTxnRequest(transactions=tuple(_row(question) for question in questions.values()))
        answered = partial(self._answered, coordinator, line, questions)
        self._call(coordinator, request, VERSION, TIMEOUT_S).then(answered)

    def _answered(
        self,
        coordinator: int,
        line: _Line,
        questions: dict[str, _Question],
        future: Future[AddPartitionsToTxnResponse],
    ) -> None:
        if line.waiting:
            self._loop.call_soon(partial(self._send, coordinator, line))
        else:
            line.is_asking = False
        if future.error is not None:
            _close_all(questions.values(), ErrorCode.NETWORK_EXCEPTION)
            return
        response = future.result()
        if response.error_code:
            _close_all(questions.values(), _code(response.error_code))
            return
        for row in response.results_by_transaction:
            question = questions.pop(row.transactional_id, None)
            if question is not None:
                codes = {
                    (topic.name, result.partition_index): _code(result.partition_error_code)
                    for topic in row.topic_results
                    for result in topic.results_by_partition
                }
                question.close(partial(_said, codes))
        _close_all(questions.values(), ErrorCode.INVALID_TXN_STATE)


def _said(codes: Errors, partition: Partition) -> ErrorCode:
    return codes.get(partition, ErrorCode.INVALID_TXN_STATE)


def _code(number: int) -> ErrorCode:
    code = ErrorCode(number)
    return _AS_TOLD.get(code, code)


def _close_all(questions: Iterable[_Question], code: ErrorCode) -> None:
    for question in questions:
        question.close(lambda _: code)


def _row(question: _Question) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.epoch,
        verify_only=not question.adds,
        topics=tuple(
            AddPartitionsToTxnTopic(name, tuple(indexes))
            for name, indexes in partitions_by_topic(question.partitions())
        ),
    )
