"""A transactional id while an event is handled: what it becomes, what is proposed to the log, who is answered, its timers.

The moves that every part of the state machine (`state`, `ending`) shares.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.coordination.effects import CancelTimer, Reply, SetTimer, Store
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.events import EndAndRaise, Expired, Initialise, ProducerResult, Stored, TimedOut
from dataplane.transactions.model import FOLLOWS, IDLE, NO_ID, Transaction, TransactionState, durable_value

if TYPE_CHECKING:
    from dataplane.transactions.events import Effect, Request
    from dataplane.transactions.settings import TransactionSettings

S = TransactionState

TIMEOUT_TIMER, EXPIRY_TIMER, RETRY_TIMER = "time-out", "expiry", "again"
RETRY_MS = 1_000
"""After the log has refused what nobody repeats: an abort, a completion, the end of an id."""


class Draft:
    """A transactional id while an event is handled, and what must follow."""

    def __init__(self, transaction: Transaction, settings: TransactionSettings, now_ms: int) -> None:
        self.transaction = transaction
        self.settings = settings
        self.now_ms = now_ms
        self.effects: list[Effect] = []

    def tell(self, ask: Request | None, error: ErrorCode) -> None:
        """Answer a request with an error, or that all is done; nobody where nobody has asked."""
        if isinstance(ask, EndAndRaise) and error == ErrorCode.NONE:
            self.effects.append(Reply(ask.token, ProducerResult(error, *self.transaction.to_go_on_with)))
        elif ask is not None:
            has_producer = isinstance(ask, Initialise | EndAndRaise)
            self.effects.append(Reply(ask.token, ProducerResult(error) if has_producer else error))

    def propose(self, to: Transaction, ask: Request | None = None) -> None:
        """Store it; `Stored` says what has become of that."""
        before = self.transaction
        assert before.pending in (None, to.state), "two things on their way"
        assert to.state in FOLLOWS[before.state], f"{to.state} after {before.state}"
        self.transaction = replace(before, pending=to.state)
        value = None if to.state is S.DEAD else durable_value(to)
        self.effects.append(Store(value, Stored(to, ask)))

    def set_timers(self, at_least_ms: int = 0) -> None:
        """Those of the state that holds."""
        transaction, effects = self.transaction, self.effects
        if transaction.state is S.ONGOING:
            delay_ms = max(transaction.time_left_ms(self.now_ms), at_least_ms)
            effects += [CancelTimer(EXPIRY_TIMER), SetTimer(TIMEOUT_TIMER, delay_ms, TimedOut())]
        elif transaction.state in IDLE and not transaction.is_blank():
            delay_ms = max(transaction.updated_ms + self.settings.id_expiration_ms - self.now_ms, at_least_ms)
            effects += [CancelTimer(TIMEOUT_TIMER), SetTimer(EXPIRY_TIMER, delay_ms, Expired())]
        else:
            effects += [CancelTimer(EXPIRY_TIMER), CancelTimer(TIMEOUT_TIMER)]


def problem(transaction: Transaction, producer_id: int, epoch: int) -> ErrorCode:
    """Why somebody may not speak for the transactional id.

    Whoever goes on with another producer id has heard of it with the end of the transaction before, and may begin while
    markers still bear the old one.
    """
    if producer_id != transaction.producer_id:
        is_next = transaction.next_producer_id != NO_ID and (producer_id, epoch) == transaction.to_go_on_with
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_next else ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if epoch != transaction.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE if transaction.pending is None else ErrorCode.CONCURRENT_TRANSACTIONS
