"""What idempotent producers have written to one log: the check that makes a retry harmless.

A producer numbers its records per partition; a batch carries the first number (`baseSequence`). The leader accepts
the number that follows the last one, answers one of the last five batches with the offset it already has (a retry),
and refuses the rest. Sequences go from 2^31 - 1 to 0. A larger producer epoch starts again at 0; a smaller one is a
zombie's.

State is changed when a batch is staged, so that two batches of one turn see each other. When a log is opened or cut it
comes from a snapshot (`snapshots`) and the batch headers behind that. A producer nobody remembers may start at any
number (KIP-360: its state expired).

State expires some time after the last batch *came*. (Kafka takes the batch's own timestamp, which the client chose: who
writes of the past would be forgotten while retrying, one that writes of the future never.) Ids cost their sender nothing, so a
log remembers a bounded number of producers, those that wrote last. Of those before, as many again and more are known by
fingerprints of their batches, which cost eight bytes each and say one thing: this very batch is in the log. Its offset is
not known any more, so the answer is DUPLICATE_SEQUENCE_NUMBER, which clients take for success. Fingerprints are not in
snapshots: after a restart a retry of a producer that had to go is new.

A producer whose transaction is open (`transactions`) neither expires nor has to go: the last stable offset hangs on it. Its
coordinator sees to it that it ends. It does not count among those that a log remembers, or where very many are open each newcomer
would look through them for the few that may go.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.records.control import Marker, read_marker
from dataplane.records.header import CONTROL, TRANSACTIONAL, CorruptBatchError
from dataplane.storage.checkpoints.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dataplane.records.header import BatchHeader, Buffer
    from dataplane.storage.checkpoints.transactions import AbortedTransaction, Ended

REMEMBERED = 5
MAX_PRODUCERS = 5_000
MOST_PAGES = 20
"""Of fingerprints, each of a tenth of so many producers: at most 400 kB."""
PRODUCER_BYTES = 1_100
"""What is remembered of one takes so much memory, with five batches; measured."""
_SEQUENCE_MASK = 2**31 - 1
NO_COORDINATOR = -1
"""Instead of a coordinator's epoch: none has ended a transaction here."""
NO_TRANSACTION = -1
_OF_TRANSACTIONS = TRANSACTIONAL | CONTROL


class Duplicate(NamedTuple):
    """The batch is in the log already, at this offset."""

    base_offset: int


class Written(NamedTuple):
    """A batch of a producer that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int


class ProducerState(NamedTuple):
    """What a snapshot holds of a producer."""

    producer_id: int
    epoch: int
    batches: list[Written]  # oldest first
    last_offset: int
    seen_ms: int
    coordinator_epoch: int = NO_COORDINATOR
    first_offset: int = NO_TRANSACTION  # of the transaction that is open


class _Producer:
    """Its epoch, and its last batches in that epoch, oldest first. None yet when a marker raised the epoch."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_offset", "seen_ms")

    def __init__(self, epoch: int, coordinator_epoch: int = NO_COORDINATOR) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch  # of the last marker
        self.batches: list[Written] = []
        self.last_offset = -1
        self.seen_ms: int | None = None  # None: since the last look


class _Page:
    """What producers that had to go had written: sorted, and nothing of it at or after `end`."""

    __slots__ = ("_fingerprints", "end")

    def __init__(self, gone: Iterable[tuple[int, _Producer]]) -> None:
        self.end, found = 0, []
        for producer_id, producer in gone:
            self.end = max(self.end, producer.last_offset + 1)
            found += [hash((producer_id, producer.epoch, b.first_sequence, b.last_sequence)) for b in producer.batches]
        self._fingerprints = array("q", sorted(found))

    @property
    def size_bytes(self) -> int:
        return self._fingerprints.itemsize * len(self._fingerprints)

    def has(self, fingerprint: int) -> bool:
        at = bisect_left(self._fingerprints, fingerprint)
        return at < len(self._fingerprints) and self._fingerprints[at] == fingerprint


class Producers:
    """All producers of one log. `newcomers` is told how many it has got to know (see `producer_budget`)."""

    __slots__ = ("_by_id", "_gone", "_newcomers", "transactions")

    def __init__(
        self, newcomers: Callable[[int], None] | None = None, transactions: Transactions | None = None
    ) -> None:
        self._newcomers = newcomers
        self.transactions = transactions or Transactions()
        self._by_id: dict[int, _Producer] = {}
        self._gone: list[_Page] = []  # the oldest first

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def size_bytes(self) -> int:
        """Memory that it holds, about."""
        known = PRODUCER_BYTES * len(self._by_id)
        return known + self._fingerprint_bytes if self._gone else known

    @property
    def _fingerprint_bytes(self) -> int:
        return sum(page.size_bytes for page in self._gone)

    def last_batches(self) -> dict[int, int]:
        """Where each producer's last batch is: it has the sequence that the next one is compared with, or else the epoch."""
        return {
            producer_id: p.batches[-1].base_offset if p.batches else p.last_offset
            for producer_id, p in self._by_id.items()
        }

    def check(self, header: BatchHeader) -> ErrorCode | Duplicate | None:
        """May this batch be appended now? None: yes."""
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            return self._verdict_on_stranger(header) if self._gone else None
        epoch, first = header.producer_epoch, header.base_sequence
        if epoch != producer.epoch:
            if epoch < producer.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if first > 0 else None
        if first < 0:
            return None  # a coordinator's, which numbers nothing
        batches = producer.batches
        if first == ((batches[-1].last_sequence + 1) & _SEQUENCE_MASK if batches else 0):
            return None
        last = (first + header.last_offset_delta) & _SEQUENCE_MASK
        for batch in batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return Duplicate(batch.base_offset)
        verdict = self._verdict_on_stranger(header) if self._gone else None  # it may have had to go, and come again
        return verdict or ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def check_transaction(
        self, header: BatchHeader, *, verifies: bool, begins_with_0: bool = False
    ) -> ErrorCode | None:
        """The same where one of the two is true: the batch is transactional, or transactions are open in this log.

        `verifies`: the first batch of a transaction is taken only if its coordinator knows of it (KIP-890). Of a producer that
        nothing is known of no batch is taken before one that was told to come again (`checkpoints.transactions`).
        `begins_with_0`: it has an epoch for each transaction, so that its first batch has the sequence 0.
        """
        first = self.transactions.open.get(header.producer_id)
        if not header.is_transactional:
            return None if first is None else ErrorCode.INVALID_TXN_STATE
        if header.base_sequence > 0 and header.producer_id not in self._by_id:
            who = header.producer_id, header.producer_epoch
            if begins_with_0 or self.transactions.awaits_before(*who, header.base_sequence):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if not verifies or self.may_continue(header.producer_id, header.producer_epoch):
            return None
        is_verified = self.transactions.is_verified(header.producer_id, header.producer_epoch)
        return None if is_verified else ErrorCode.INVALID_TXN_STATE

    def coordinator_epoch(self, producer_id: int) -> int:
        """Of the last marker of a producer; -1: there is none, or no such producer."""
        producer = self._by_id.get(producer_id)
        return -1 if producer is None else producer.coordinator_epoch

    def may_continue(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of the producer is open in which it writes with this epoch."""
        producer = self._by_id.get(producer_id)
        return producer is not None and producer.epoch == epoch and producer_id in self.transactions.open

    def check_marker(self, header: BatchHeader, coordinator_epoch: int, *, is_above: bool = False) -> ErrorCode | None:
        """May this marker be appended now? None: yes. It may be there already.

        `is_above`: what it ends was written in a lower epoch. In its own the transaction after that may be open, and is not to
        be ended by a marker that comes again, and late.
        """
        producer = self._by_id.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if is_above and self.may_continue(header.producer_id, header.producer_epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < producer.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    def _verdict_on_stranger(self, header: BatchHeader) -> ErrorCode | None:
        if header.base_sequence < 0:
            return None
        first = header.base_sequence
        last = (first + header.last_offset_delta) & _SEQUENCE_MASK
        fingerprint = hash((header.producer_id, header.producer_epoch, first, last))
        is_known = any(page.has(fingerprint) for page in self._gone)
        return ErrorCode.DUPLICATE_SEQUENCE_NUMBER if is_known else None

    def update(self, header: BatchHeader, base_offset: int, batch: Buffer | None = None) -> AbortedTransaction | None:
        """A batch with a producer id was staged or replayed, at `base_offset`; of a control batch the bytes are needed.

        Returns what it aborts.
        """
        producer = self._by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            if producer is None:
                self._newcomer()
                producer = _Producer(header.producer_epoch)
            else:
                producer = _Producer(header.producer_epoch, producer.coordinator_epoch)
            self._by_id[header.producer_id] = producer
        producer.last_offset = base_offset
        producer.seen_ms = None
        first = header.base_sequence
        if first >= 0:  # else a marker, which may raise the epoch, or a coordinator's
            batches = producer.batches
            batches.append(Written(first, (first + header.last_offset_delta) & _SEQUENCE_MASK, base_offset))
            if len(batches) > REMEMBERED:
                del batches[0]
        if header.attributes & _OF_TRANSACTIONS:
            return self._transact(producer, header, base_offset, batch)
        return None

    def _transact(
        self, producer: _Producer, header: BatchHeader, base_offset: int, batch: Buffer | None
    ) -> AbortedTransaction | None:
        if not header.is_control:
            self.transactions.continued(header.producer_id, base_offset)
            return None
        try:
            marker, producer.coordinator_epoch = read_marker(batch or b"")
        except CorruptBatchError:
            return None  # whatever it says, it ends nothing
        return self.transactions.ends(header.producer_id, base_offset, aborted=marker is Marker.ABORT)

    def _newcomer(self) -> None:
        if len(self._by_id) - len(self.transactions.open) >= MAX_PRODUCERS:
            self._forget_oldest()
        if self._newcomers is not None:
            self._newcomers(1)

    def make_room(self) -> int:
        """Less is to be remembered: how many producers are forgotten for it. Old fingerprints go before too few are known."""
        if 2 * self._fingerprint_bytes > self.size_bytes:
            del self._gone[0]
            return 0
        return self._forget_oldest()

    def _forget_oldest(self) -> int:
        """A tenth at a time: looking for them takes long."""
        kept = self.transactions.open
        by_offset = sorted(self._by_id.keys() - kept, key=lambda producer_id: self._by_id[producer_id].last_offset)
        gone = [
            (producer_id, self._by_id.pop(producer_id)) for producer_id in by_offset[: max(1, len(by_offset) // 10)]
        ]
        if not gone:
            return 0
        self._gone = [*self._gone, _Page(gone)][-MOST_PAGES:]
        return len(gone)

    def cut(self, end: int) -> None:
        """The log ends here now: a batch behind is none of its own any more, and may come again."""
        self._gone = [page for page in self._gone if page.end <= end]

    def holds_any_from(self, offset: int) -> bool:
        """Does any producer's state stem from records at or after `offset`? Then cutting there needs a replay."""
        if self.transactions.has_marker_from(offset):  # whose producer may have had to go
            return True
        return any(producer.last_offset >= offset for producer in self._by_id.values())

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that have written nothing for so long. What came since the last call counts as now."""
        for producer_id, producer in list(self._by_id.items()):
            if producer.seen_ms is None:
                producer.seen_ms = now_ms
            elif producer.seen_ms < now_ms - expiration_ms and producer_id not in self.transactions.open:
                del self._by_id[producer_id]

    def clear(self) -> None:
        self._by_id.clear()
        self._gone = []
        self.transactions.clear()

    def states(self, now_ms: int) -> Iterator[ProducerState]:
        """All of them, for a snapshot. Who has written since the last look has done so now."""
        for producer_id, producer in list(self._by_id.items()):  # the caller may pause, and others come meanwhile
            seen_ms = now_ms if producer.seen_ms is None else producer.seen_ms
            yield ProducerState(
                producer_id,
                producer.epoch,
                list(producer.batches),
                producer.last_offset,
                seen_ms,
                producer.coordinator_epoch,
                self.transactions.open.get(producer_id, NO_TRANSACTION),
            )

    def restore(self, states: Iterable[ProducerState], ended: Iterable[Ended] = ()) -> None:
        """Know these, and no others; `ended` are transactions that may not be committed."""
        self.clear()
        states = list(states)
        opened = [(s.producer_id, s.first_offset) for s in states if s.first_offset != NO_TRANSACTION]
        self.transactions.restore(opened, ended)
        for state in states:
            producer = self._by_id[state.producer_id] = _Producer(state.epoch, state.coordinator_epoch)
            producer.batches = state.batches
            producer.last_offset = state.last_offset
            producer.seen_ms = state.seen_ms
        if self._newcomers is not None:
            self._newcomers(len(self._by_id))
