"""What happens to a transactional id (events), what it answers (results), and what must then be done (effects).

    handle(transaction, event) -> (transaction afterwards, effects in order)

All are plain values, so a test is a list of events and the list of effects expected. Times are milliseconds.
The effects are those of every coordinator (`dataplane.coordination.effects`); here is what they carry.
"""

from __future__ import annotations

from dataclasses import dataclass

from dataplane.coordination.effects import Begin, CancelTimer, Reply, SetTimer, Store
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transaction_records import TransactionLogValue
from dataplane.transactions.model import NO_EPOCH, NO_ID, Partition, Transaction

# --- events: requests -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Initialise:
    """InitProducerId. `known` is the producer id and epoch that the producer had, where it says so (KIP-360)."""

    timeout_ms: int
    known: tuple[int, int] | None = None
    new_producer_id: int | None = None  # to give, where one is needed (`state.needs_producer_id`)
    token: int = -1


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """AddPartitionsToTxn, and AddOffsetsToTxn: the partition that keeps the group's offsets."""

    producer_id: int
    producer_epoch: int
    partitions: tuple[Partition, ...]
    is_of_group: bool = False  # of these there are few, and clients take a refusal for the producer's end
    room: int = 2**31 - 1  # how many more its instance may have in open transactions
    may_begin: bool = True  # whether its instance may have one more transaction open
    version: int = 0  # of the transaction, where it begins with these
    token: int = -1


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """EndTxn."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    token: int = -1


@dataclass(frozen=True, slots=True)
class EndAndRaise:
    """EndTxn of a producer that goes on with another epoch (KIP-890, part 2)."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    new_producer_id: int | None = None  # to go on with, where the present one is exhausted
    token: int = -1


Request = Initialise | AddPartitions | EndTransaction | EndAndRaise

# --- events: timers, markers and the log ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A transaction is open for longer than its producer wanted."""


@dataclass(frozen=True, slots=True)
class Expired:
    """Nobody has used the id for as long as ids are kept."""


@dataclass(frozen=True, slots=True)
class Resume:
    """A transaction was decided when it was loaded: whoever decided it may not have written all markers."""


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """Every partition of the transaction that this epoch has ended has its marker."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What was proposed is committed, or was not appended; then nothing has changed. `ask` is who waits for it."""

    to: Transaction
    ask: Request | None = None
    error: ErrorCode = ErrorCode.NONE


Event = Request | TimedOut | Expired | Resume | MarkersWritten | Stored

# --- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProducerResult:
    """Of `Initialise` and of `EndAndRaise`: what the producer goes on with. The others are answered by an error."""

    error: ErrorCode
    producer_id: int = NO_ID
    producer_epoch: int = NO_EPOCH


# --- effects ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WriteMarkers:
    """Let every partition of a transaction that is decided get its marker; then `MarkersWritten`."""

    transaction: Transaction


Effect = (
    Reply[ProducerResult | ErrorCode]
    | Store[TransactionLogValue | None, Stored]
    | SetTimer[TimedOut | Expired | Resume | MarkersWritten]
    | CancelTimer
    | Begin[WriteMarkers]
)
