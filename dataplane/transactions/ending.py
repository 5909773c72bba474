"""EndTxn: a transaction is decided, and in what epoch its producer goes on.

`EndTransaction` leaves the epoch as it is. `EndAndRaise` (KIP-890, part 2) raises it with the decision: markers bear the epoch
that the producer goes on with, and it may abort what it believes to have begun, though no partition was added. Its last
epoch ends with another producer id. An end that comes again is told the same, until somebody has used it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.draft import problem
from dataplane.transactions.model import LAST_EPOCH, NO_ID, RAISING, TransactionState, is_last_epoch

if TYPE_CHECKING:
    from dataplane.transactions.draft import Draft
    from dataplane.transactions.events import EndAndRaise, EndTransaction
    from dataplane.transactions.model import Transaction

S = TransactionState

_END_AGAIN = {
    (S.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (S.COMPLETE_ABORT, False): ErrorCode.NONE,
}
"""What is told of an end that has come already; every other is INVALID_TXN_STATE."""


def on_end(draft: Draft, ask: EndTransaction) -> None:
    """In the epoch that its producer keeps."""
    transaction = draft.transaction
    error = problem(transaction, ask.producer_id, ask.producer_epoch)
    if error != ErrorCode.NONE:
        draft.tell(ask, error)
    elif transaction.state is not S.ONGOING:
        draft.tell(ask, _END_AGAIN.get((transaction.state, ask.is_commit), ErrorCode.INVALID_TXN_STATE))
    else:
        state = S.PREPARE_COMMIT if ask.is_commit else S.PREPARE_ABORT
        draft.propose(replace(transaction, state=state, updated_ms=draft.now_ms, version=0), ask)


def needs_producer_id_to_go_on(transaction: Transaction) -> bool:
    """Whether the next `EndAndRaise` may have to give a new producer id."""
    return transaction.pending is None and transaction.is_exhausted


def on_end_and_raise(draft: Draft, ask: EndAndRaise) -> None:
    """With the epoch that its producer goes on with."""
    transaction = draft.transaction
    is_again = _has_raised(transaction, ask)
    error = ErrorCode.NONE
    if not is_again:
        error = problem(transaction, ask.producer_id, ask.producer_epoch)
    elif transaction.pending is not None:
        error = ErrorCode.CONCURRENT_TRANSACTIONS
    elif transaction.state is S.ONGOING:
        error = ErrorCode.PRODUCER_FENCED  # it is late, and must not end the transaction that has begun since
    else:
        error = _END_AGAIN.get((transaction.state, ask.is_commit), ErrorCode.INVALID_TXN_STATE)
    if is_again or error != ErrorCode.NONE:
        draft.tell(ask, error)
    elif transaction.state is S.ONGOING or not ask.is_commit:
        _end_and_raise(draft, ask)
    else:
        draft.tell(ask, ErrorCode.INVALID_TXN_STATE)


def _has_raised(transaction: Transaction, ask: EndAndRaise) -> bool:
    """Whether what ends has ended with this very epoch: the answer was lost, or the transaction's time was over."""
    if transaction.version != RAISING:
        return False
    if ask.producer_id == transaction.producer_id:
        may_be_told = transaction.pending is not None or transaction.producer_epoch <= LAST_EPOCH
        return transaction.producer_epoch == ask.producer_epoch + 1 and may_be_told
    was_exhausted = ask.producer_id == transaction.last_producer_id and is_last_epoch(ask.producer_epoch)
    return was_exhausted and transaction.producer_epoch == 0


def _end_and_raise(draft: Draft, ask: EndAndRaise) -> None:
    transaction = draft.transaction
    next_id = ask.new_producer_id if transaction.is_exhausted else NO_ID
    if next_id is None:  # it was exhausted while the request came here
        draft.tell(ask, ErrorCode.CONCURRENT_TRANSACTIONS)
        return
    to = replace(
        transaction,
        state=S.PREPARE_COMMIT if ask.is_commit else S.PREPARE_ABORT,
        producer_epoch=transaction.producer_epoch + 1,
        last_producer_epoch=transaction.producer_epoch,
        next_producer_id=next_id,
        started_ms=transaction.started_ms if transaction.state is S.ONGOING else draft.now_ms,
        updated_ms=draft.now_ms,
        version=RAISING,
    )
    draft.propose(to, ask)
