"""The state machine of a transactional id: one pure function, `handle`.

It proposes: what it wants to be stored is believed when `Stored` comes back, and until then every request is told
CONCURRENT_TRANSACTIONS, upon which clients come again after a pause. One thing holds from the moment it is proposed: the epoch
by which a producer is fenced. Nobody is told of that epoch, and the fenced one must not commit any more.

    Empty, Complete  -- AddPartitions -->  Ongoing  -- EndTransaction, EndAndRaise -->  Prepare  -- MarkersWritten -->  Complete
                     <-- Initialise --               -- TimedOut, Initialise: fence and abort --^

How a transaction ends: `ending`.

What each request is told, and in which order it is looked at, is Kafka's (3.9). Where Kafka's coordinator fails on a state that
it thinks impossible (a producer whose epoch is exhausted repeats the request that exhausted it), the answer is the one that
it gives in the states before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.coordination.effects import Begin, Reply, SetTimer
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.draft import RETRY_MS, RETRY_TIMER, Draft, problem
from dataplane.transactions.ending import on_end, on_end_and_raise
from dataplane.transactions.events import (
    AddPartitions,
    EndAndRaise,
    EndTransaction,
    Event,
    Expired,
    Initialise,
    MarkersWritten,
    ProducerResult,
    Resume,
    Stored,
    TimedOut,
    WriteMarkers,
)
from dataplane.transactions.model import (
    COMPLETE_AFTER,
    IDLE,
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    PREPARED,
    RAISING,
    Transaction,
    TransactionState,
    is_last_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.transactions.events import Effect
    from dataplane.transactions.model import Partition
    from dataplane.transactions.settings import TransactionSettings

S = TransactionState


def handle(
    transaction: Transaction, event: Event, settings: TransactionSettings, now_ms: int
) -> tuple[Transaction, Sequence[Effect]]:
    """The transactional id after an event, and what must follow, in order."""
    draft = Draft(transaction, settings, now_ms)
    _HANDLERS[type(event)](draft, event)
    return draft.transaction, draft.effects


# --- InitProducerId ---------------------------------------------------------------------------------------------------


def needs_producer_id(transaction: Transaction) -> bool:
    """Whether the next `Initialise` may have to give a new producer id."""
    if transaction.pending is not None:
        return False
    return transaction.is_blank() or (transaction.state in IDLE and transaction.is_exhausted)


def _on_initialise(draft: Draft, ask: Initialise) -> None:
    transaction = draft.transaction
    if transaction.pending is not None:
        draft.tell(ask, ErrorCode.CONCURRENT_TRANSACTIONS)
    elif ask.known is not None and not _may_go_on(transaction, *ask.known):
        draft.tell(ask, ErrorCode.PRODUCER_FENCED)
    elif transaction.state is S.ONGOING:
        _fence(draft, ask)
    else:
        _give_epoch(draft, ask)


def _may_go_on(transaction: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether a producer that says which id it had may have another epoch.

    It has the present id, whose epoch is judged when it is raised; or it exhausted the one before, and has not heard of the
    present one.
    """
    if transaction.producer_epoch == NO_EPOCH or producer_id == transaction.producer_id:
        return True
    return producer_id == transaction.last_producer_id and is_last_epoch(epoch)


def _give_epoch(draft: Draft, ask: Initialise) -> None:
    transaction = draft.transaction
    known = None if ask.known is None else ask.known[1]
    repeated = transaction.last_producer_epoch if known is not None else NO_EPOCH
    if transaction.is_blank():
        found: tuple[int | None, int, int] = ask.new_producer_id, 0, NO_EPOCH
    elif known not in (None, transaction.producer_epoch):
        if known != repeated:
            draft.tell(ask, ErrorCode.PRODUCER_FENCED)
            return
        found = transaction.producer_id, transaction.producer_epoch, repeated  # its answer was lost
    elif transaction.is_exhausted:
        found = ask.new_producer_id, 0, NO_EPOCH if known is None else known
    else:
        found = transaction.producer_id, transaction.producer_epoch + 1, NO_EPOCH if known is None else known
    producer_id, epoch, last_epoch = found
    if producer_id is None:  # it was exhausted while the request came here
        draft.tell(ask, ErrorCode.CONCURRENT_TRANSACTIONS)
        return
    to = Transaction(
        transaction.transactional_id,
        producer_id,
        epoch,
        ask.timeout_ms,
        updated_ms=draft.now_ms,
        last_producer_id=transaction.producer_id,
        last_producer_epoch=last_epoch,
    )
    draft.propose(to, ask)


def _fence(draft: Draft, ask: Initialise | None) -> None:
    """Abort an open transaction with an epoch that its producer does not have.

    Whoever asks for an epoch is to ask again, and gets a higher one. If the log has not taken the abort, the epoch need not be
    raised again for the next. A producer with an epoch for each transaction may go on with this one, if nobody has come
    meanwhile.
    """
    transaction = draft.transaction
    raised, last = transaction.producer_epoch, transaction.last_producer_epoch
    if not transaction.has_failed_fence:
        raised, last = raised + 1, raised
    if transaction.version != RAISING or raised > LAST_EPOCH:
        last = NO_EPOCH
    draft.transaction = replace(transaction, producer_epoch=raised, last_producer_epoch=last, has_failed_fence=True)
    draft.propose(replace(draft.transaction, state=S.PREPARE_ABORT, updated_ms=draft.now_ms), ask)


# --- AddPartitionsToTxn, EndTxn ---------------------------------------------------------------------------------------


def _on_add_partitions(draft: Draft, ask: AddPartitions) -> None:
    transaction = draft.transaction
    error = problem(transaction, ask.producer_id, ask.producer_epoch)
    if error != ErrorCode.NONE:
        draft.tell(ask, error)
        return
    is_open = transaction.state is S.ONGOING
    if is_open and all(partition in transaction.partitions for partition in ask.partitions):
        draft.tell(ask, ErrorCode.NONE)
        return
    if not (is_open or ask.may_begin):
        draft.tell(ask, ErrorCode.POLICY_VIOLATION)
        return
    partitions = {**transaction.partitions, **dict.fromkeys(ask.partitions)}
    are_too_many = len(partitions) > draft.settings.max_partitions
    if (are_too_many or len(partitions) - len(transaction.partitions) > ask.room) and not ask.is_of_group:
        draft.tell(ask, ErrorCode.POLICY_VIOLATION)
        return
    started_ms = transaction.started_ms if is_open else draft.now_ms
    to = replace(
        transaction,
        state=S.ONGOING,
        partitions=partitions,
        started_ms=started_ms,
        updated_ms=draft.now_ms,
        version=transaction.version if is_open else ask.version,
    )
    draft.propose(to, ask)


def verified(
    transaction: Transaction, producer_id: int, epoch: int, partitions: Sequence[Partition]
) -> dict[Partition, ErrorCode]:
    """Whether a producer may append to partitions (KIP-890), as it is now.

    What is on its way is not asked: the log looks once more when it appends.
    """
    error = problem(replace(transaction, pending=None), producer_id, epoch)
    if error == ErrorCode.NONE and transaction.state in PREPARED:
        error = ErrorCode.CONCURRENT_TRANSACTIONS
    if error != ErrorCode.NONE:
        return dict.fromkeys(partitions, error)
    within = transaction.partitions
    return {p: ErrorCode.NONE if p in within else ErrorCode.TRANSACTION_ABORTABLE for p in partitions}


# --- time and markers -------------------------------------------------------------------------------------------------


def _on_timed_out(draft: Draft, event: TimedOut) -> None:
    del event
    if draft.transaction.state is S.ONGOING and draft.transaction.pending is None:
        _fence(draft, None)  # else `Stored` sets the timer again, where it still matters


def _on_expired(draft: Draft, event: Expired) -> None:
    del event
    transaction = draft.transaction
    if transaction.pending is not None or transaction.state not in IDLE:
        return
    if draft.now_ms - transaction.updated_ms < draft.settings.id_expiration_ms:
        draft.set_timers()  # the clock was put back
    else:
        draft.propose(replace(transaction, state=S.DEAD))


def _on_resume(draft: Draft, event: Resume) -> None:
    del event
    if draft.transaction.state in PREPARED:
        draft.effects.append(Begin(WriteMarkers(draft.transaction)))


def _on_markers_written(draft: Draft, event: MarkersWritten) -> None:
    transaction = draft.transaction
    is_this = (event.producer_id, event.producer_epoch) == (transaction.producer_id, transaction.producer_epoch)
    if is_this and transaction.state in PREPARED:
        producer_id, epoch = transaction.to_go_on_with
        to = replace(
            transaction,
            state=COMPLETE_AFTER[transaction.state],
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_id=transaction.producer_id
            if transaction.version == RAISING
            else transaction.last_producer_id,
            next_producer_id=NO_ID,
            partitions={},
            updated_ms=draft.now_ms,
        )
        draft.propose(to)


# --- the log ----------------------------------------------------------------------------------------------------------


def _on_stored(draft: Draft, stored: Stored) -> None:
    if draft.transaction.pending is not stored.to.state:
        return  # said twice
    if stored.error != ErrorCode.NONE:
        _on_not_stored(draft, stored)
        return
    to = stored.to
    draft.transaction = (
        Transaction(to.transactional_id)
        if to.state is S.DEAD
        else replace(to, pending=COMPLETE_AFTER.get(to.state), has_failed_fence=False)
    )
    draft.set_timers()
    if isinstance(stored.ask, Initialise):
        _tell_epoch(draft, stored.ask)
    else:
        draft.tell(stored.ask, ErrorCode.NONE)
    if to.state in PREPARED:
        draft.effects.append(Begin(WriteMarkers(draft.transaction)))


def _tell_epoch(draft: Draft, ask: Initialise) -> None:
    transaction = draft.transaction
    if transaction.state in PREPARED:  # the producer before has been fenced: now its transaction has to end
        draft.tell(ask, ErrorCode.CONCURRENT_TRANSACTIONS)
    else:
        result = ProducerResult(ErrorCode.NONE, transaction.producer_id, transaction.producer_epoch)
        draft.effects.append(Reply(ask.token, result))


def _on_not_stored(draft: Draft, stored: Stored) -> None:
    """It is as it was before. A successor may find what was appended in the log, and then it is so: nobody was told otherwise."""
    transaction = draft.transaction
    draft.tell(stored.ask, stored.error)
    if transaction.state in PREPARED:  # the completion: the markers are written, and the state goes on being "pending"
        event = MarkersWritten(transaction.producer_id, transaction.producer_epoch)
        draft.effects.append(SetTimer(RETRY_TIMER, RETRY_MS, event))
        return
    draft.transaction = replace(transaction, pending=None)
    draft.set_timers(at_least_ms=RETRY_MS)


_HANDLERS: dict[type, Callable[[Draft, Any], None]] = {
    Initialise: _on_initialise,
    AddPartitions: _on_add_partitions,
    EndTransaction: on_end,
    EndAndRaise: on_end_and_raise,
    TimedOut: _on_timed_out,
    Expired: _on_expired,
    Resume: _on_resume,
    MarkersWritten: _on_markers_written,
    Stored: _on_stored,
}
