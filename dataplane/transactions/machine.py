"""Transactional ids as the runtime of coordinators sees them: topic, state machine, records."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC
from dataplane.coordination import errors
from dataplane.slices import INTERNAL
from dataplane.transactions.events import AddPartitions
from dataplane.transactions.records import write_transaction
from dataplane.transactions.shard import Entry, Transactions
from dataplane.transactions.state import handle
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.coordination.effects import KeyValue
    from dataplane.protocol.errors import ErrorCode
    from dataplane.protocol.messages.transaction_records import TransactionLogValue
    from dataplane.transactions.counts import Counts
    from dataplane.transactions.events import Effect, Event
    from dataplane.transactions.limits import Limits
    from dataplane.transactions.settings import TransactionSettings


class TransactionMachine:
    """See `coordination.machine.Machine`."""

    topic = TRANSACTIONS_TOPIC

    def __init__(
        self, settings: TransactionSettings, now_ms: Callable[[], int], counts: Counts, limits: Limits
    ) -> None:
        self._settings, self._now_ms = settings, now_ms
        self._counts, self._limits = counts, limits

    def new_contents(self, new_timers: Callable[[], Deadlines]) -> Transactions:
        """See Machine."""
        return Transactions(new_timers, self._settings, self._now_ms, self._counts)

    def name_of(self, entry: Entry) -> str:
        """See Machine."""
        return entry.transaction.transactional_id

    def owner_of(self, entry: Entry) -> str:
        """See Machine."""
        owner = split_physical(entry.transaction.transactional_id)
        return INTERNAL if owner is None else owner[0]

    def handle(self, entry: Entry, event: Event, now_ms: int) -> Sequence[Effect]:
        """See Machine. Whether a transaction may begin is asked when its turn comes: others may have begun meanwhile."""
        before = entry.transaction
        if isinstance(event, AddPartitions) and not before.is_open:
            event = replace(event, may_begin=self._limits.may_begin(before.transactional_id))
        transaction, effects = handle(entry.transaction, event, self._settings, now_ms)
        entry.put(transaction)
        return effects

    def records(self, entry: Entry, value: TransactionLogValue | None) -> list[KeyValue]:
        """See Machine."""
        return [write_transaction(entry.transaction.transactional_id, value)]

    def told(self, error: ErrorCode) -> ErrorCode:
        """See Machine."""
        return errors.told(error)
