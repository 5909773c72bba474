"""What a transactional id is: a value, never changed in place.

A *transactional id* outlives the producers that use it. The coordinator has given it a *producer id* and an *epoch*; each
producer that begins raises the epoch, and so fences the one before. A *transaction* is open from the first partition that is
added to it until a *marker* that says committed or aborted stands in every one of its partitions.

Where the producer knows the second part of KIP-890 (`version`), an epoch is good for one transaction: its markers bear the
next one, which the producer hears of with the answer to its EndTxn. So nothing that is late can reach into the transaction
that follows.

Only part of it is durable (`durable_value`, Kafka's). The rest dies with the coordinator: what is on its way to the log
(`pending`), and the epoch before the present one, by which a repeated InitProducerId is recognised (KIP-360).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from dataplane.protocol.messages.transaction_records import PartitionsSchema, TransactionLogValue

Partition = tuple[str, int]
"""Topic, by its physical name, and index."""

NO_ID = NO_EPOCH = -1
LAST_EPOCH = 2**15 - 2
"""That a producer may have: the coordinator keeps one more for fencing it."""


RAISING = 2
"""The transaction version (KIP-890, part 2) in which an epoch is good for one transaction."""


class TransactionState(Enum):
    """Where a transactional id is. The values are the names that Kafka's tools show."""

    EMPTY = "Empty"  # a producer has its id and epoch, and has begun nothing
    ONGOING = "Ongoing"  # partitions have been added
    PREPARE_COMMIT = "PrepareCommit"  # it is decided; markers are on their way
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"  # every partition has its marker
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"  # being removed, since nobody has used it for long
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"  # its producer is fenced; that turns into PREPARE_ABORT at once


S = TransactionState

STATUS: Mapping[TransactionState, int] = {state: status for status, state in enumerate(TransactionState)}
"""As records say it."""
_BY_STATUS = {status: state for state, status in STATUS.items()}

FOLLOWS: Mapping[TransactionState, frozenset[TransactionState]] = {
    S.EMPTY: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD}),
    S.ONGOING: frozenset({S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.PREPARE_EPOCH_FENCE}),
    S.PREPARE_COMMIT: frozenset({S.COMPLETE_COMMIT}),
    S.PREPARE_ABORT: frozenset({S.COMPLETE_ABORT}),
    S.COMPLETE_COMMIT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD}),
    S.COMPLETE_ABORT: frozenset({S.EMPTY, S.ONGOING, S.PREPARE_ABORT, S.DEAD}),
    S.DEAD: frozenset(),
    S.PREPARE_EPOCH_FENCE: frozenset({S.PREPARE_ABORT}),
}
"""What may come after each state. A move that is not here is a bug. An abort of nothing raises the epoch (RAISING)."""

PREPARED = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})
IDLE = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
"""Nothing is open: a producer may begin, and the id may expire."""
OPEN = frozenset({S.ONGOING, *PREPARED})
"""Something is open: readers of what is stable wait somewhere for its markers."""
COMPLETE_AFTER: Mapping[TransactionState, TransactionState] = {
    S.PREPARE_COMMIT: S.COMPLETE_COMMIT,
    S.PREPARE_ABORT: S.COMPLETE_ABORT,
}


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id. `partitions` is in order of adding and is copied, never changed."""

    transactional_id: str
    producer_id: int = NO_ID
    producer_epoch: int = NO_EPOCH
    timeout_ms: int = -1
    state: TransactionState = S.EMPTY
    partitions: Mapping[Partition, None] = field(default_factory=dict)
    started_ms: int = -1  # of the transaction that is open, or was last
    updated_ms: int = -1
    last_producer_id: int = NO_ID
    last_producer_epoch: int = NO_EPOCH
    pending: TransactionState | None = None  # where it will be when what is on its way has come to pass
    has_failed_fence: bool = False  # the epoch was raised for a fence that the log did not take
    next_producer_id: int = (
        NO_ID  # that the producer goes on with when the markers are written: the present one is exhausted
    )
    version: int = 0  # RAISING: its producer gets another epoch with each end

    @property
    def to_go_on_with(self) -> tuple[int, int]:
        """Producer id and epoch of the next transaction, where the end of this one raises the epoch."""
        if self.next_producer_id != NO_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun, or is about to, whose markers are not all written."""
        return self.state in OPEN or self.pending in OPEN

    @property
    def is_exhausted(self) -> bool:
        """Whether no producer can be given a higher epoch of this id."""
        return is_last_epoch(self.producer_epoch)

    def is_blank(self) -> bool:
        """As if it did not exist."""
        return self.producer_id == NO_ID and self.pending is None

    def time_left_ms(self, now_ms: int) -> int:
        """Until an open transaction is aborted: no more than it had, though the clock was put back since it began."""
        return min(max(self.started_ms + self.timeout_ms - now_ms, 0), self.timeout_ms)


def is_last_epoch(epoch: int) -> bool:
    """Whether a producer that has it gets another producer id next."""
    return epoch >= LAST_EPOCH


def durable_value(transaction: Transaction) -> TransactionLogValue:
    """What the log shall know of it."""
    partitions = partitions_by_topic(transaction.partitions) if transaction.state is not S.EMPTY else None
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=STATUS[transaction.state],
        transaction_partitions=None
        if partitions is None
        else tuple(PartitionsSchema(topic, indexes) for topic, indexes in partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        previous_producer_id=transaction.last_producer_id if transaction.version == RAISING else NO_ID,
        next_producer_id=transaction.next_producer_id,
        client_transaction_version=transaction.version,
    )


def loaded(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """What the log says of it. Raises ValueError for a state that is not known."""
    state = _BY_STATUS.get(value.transaction_status)
    if state is None or state in (S.DEAD, S.PREPARE_EPOCH_FENCE):
        raise ValueError(f"a transactional id in the state {value.transaction_status}")
    topics = value.transaction_partitions or ()
    return Transaction(
        transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        {(topic.topic, index): None for topic in topics for index in topic.partition_ids},
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        last_producer_id=value.previous_producer_id,
        pending=COMPLETE_AFTER.get(state),
        next_producer_id=value.next_producer_id,
        version=value.client_transaction_version,
    )


def partitions_by_topic(partitions: Iterable[Partition]) -> list[tuple[str, tuple[int, ...]]]:
    """Sorted, each topic once."""
    by_topic = groupby(sorted(partitions), key=lambda partition: partition[0])
    return [(topic, tuple(index for _, index in group)) for topic, group in by_topic]
