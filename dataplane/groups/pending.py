"""Offsets that are committed within transactions: kept apart until the marker of the transaction says what becomes of them.

What counts between two commits of one offset is which of them is later *in the log*, not which becomes visible later: a
transaction that began before an ordinary commit and ends after it does not put the offset back. So compaction, which keeps
the later record, and a coordinator that loads what is left come to the same offset as the one that was there all the time.

For that no places of visible offsets need be remembered. When something becomes visible, what is pending of the same offset
and earlier in the log is marked as *overtaken*: it goes on to be pending, since its transaction is open, and can not become
visible any more. A tombstone makes it vanish: the offset was removed, and is not to come back.

A transaction may hold very many offsets. It is closed at once, so that the next one of its producer can begin, and settled in
steps (`Transaction.offsets` holds what is left).

What is pending takes memory for as long as a tenant leaves its transactions open, once for each producer: it is counted
(`Held`), for its instance to have no more than its share.
"""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dataplane.protocol.messages.group_records import OffsetCommitValue

Key = tuple[str, int]
"""A topic and a partition."""


OFFSET_BYTES = 700
"""That a pending offset takes beside its metadata: 540 to 570 bytes were measured, without the topic's name."""


class Held:
    """How much is pending of somebody's groups."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


def size_of(metadata: str) -> int:
    """What a pending offset takes that is committed with this."""
    return OFFSET_BYTES + getsizeof(metadata)


class Pending(NamedTuple):
    """An offset, and where in the log the batch begins that commits it. Without a value it has been overtaken."""

    position: int
    value: OffsetCommitValue | None

    def size(self) -> int:
        """What it takes."""
        return size_of("" if self.value is None else self.value.metadata)


class Transaction:
    """What one transaction of a producer has committed to a group and is not settled yet."""

    __slots__ = ("offsets",)

    def __init__(self) -> None:
        self.offsets: dict[Key, Pending] = {}


class PendingTransactions:
    """Of one group: by producer those that are open, and by offset those that hold it, open or being settled."""

    __slots__ = ("_held", "_holders", "_open")

    def __init__(self, held: Held | None = None) -> None:
        self._held = held or Held()
        self._open: dict[int, Transaction] = {}
        self._holders: dict[Key, list[Transaction]] = {}

    def __contains__(self, key: object) -> bool:
        """Whether any transaction holds an offset."""
        return key in self._holders

    def __len__(self) -> int:
        """How many offsets are held."""
        return len(self._holders)

    def keys(self) -> Iterable[Key]:
        """Those that are held, in order of their first commits."""
        return self._holders.keys()

    def add(self, producer_id: int, key: Key, pending: Pending) -> None:
        """A commit was appended, behind all others of the log. In place of the same transaction's commit before."""
        transaction = self._open.get(producer_id)
        if transaction is None:
            transaction = self._open[producer_id] = Transaction()
        if key not in transaction.offsets:
            self._holders.setdefault(key, []).append(transaction)
        else:
            self._held.bytes -= transaction.offsets[key].size()
        self._held.bytes += pending.size()
        transaction.offsets[key] = pending

    def overtake(self, key: Key, position: int) -> None:
        """What was appended at `position` is visible now."""
        for transaction in self._holders.get(key, ()):
            held = transaction.offsets[key]
            if held.position < position:
                overtaken = transaction.offsets[key] = Pending(held.position, None)
                self._held.bytes += overtaken.size() - held.size()

    def forget(self, key: Key, position: int) -> None:
        """The offset was removed by a tombstone that was appended at `position`."""
        for transaction in list(self._holders.get(key, ())):
            if transaction.offsets[key].position < position:
                self._take(transaction, key)

    def close(self, producer_id: int) -> Transaction | None:
        """The marker is in the log: the producer's next commit is of another transaction. None: there is nothing to settle."""
        return self._open.pop(producer_id, None)

    def settle(self, closed: Transaction) -> Iterator[tuple[Key, Pending]]:
        """Take the offsets out of a closed transaction, one after the other, in the order of their first commits."""
        for key in list(closed.offsets):
            if key in closed.offsets:  # else it was removed since
                yield key, self._take(closed, key)

    def _take(self, transaction: Transaction, key: Key) -> Pending:
        holders = self._holders[key]
        holders.remove(transaction)
        if not holders:
            del self._holders[key]
        pending = transaction.offsets.pop(key)
        self._held.bytes -= pending.size()
        return pending
