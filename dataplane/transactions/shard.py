"""All transactional ids of one partition of ``__transaction_state``: what its records add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.coordination.effects import SetTimer
from dataplane.coordination.shard import Shard
from dataplane.transactions.counts import Count, Counts
from dataplane.transactions.draft import EXPIRY_TIMER, TIMEOUT_TIMER
from dataplane.transactions.events import Expired, Resume, TimedOut
from dataplane.transactions.model import PREPARED, Transaction, TransactionState, loaded
from dataplane.transactions.records import read_record
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.transactions.settings import TransactionSettings

RESUME_TIMER = "resume"


class Owned:
    """What an instance has in this partition; it counts for the coordinator's `counts` as well."""

    __slots__ = ("_counts", "_key", "count", "entries")

    def __init__(self, key: str, counts: Counts) -> None:
        self._key, self._counts = key, counts
        self.entries: dict[str, Entry] = {}
        self.count = Count()

    def add(self, ids: int = 0, is_open: int = 0, partitions: int = 0) -> None:
        """More; fewer where a number is negative."""
        self.count.add(ids, is_open, partitions)
        self._counts.add(self._key, ids, is_open, partitions)

    def leave(self) -> None:
        """Nothing of it counts any more, whatever comes of it yet."""
        count = self.count
        self.add(-count.ids, -count.is_open, -count.partitions)
        self._counts = Counts()


class Entry:
    """One transactional id and its timers. `transaction` is a value; what it has counts for its instance."""

    __slots__ = ("_owned", "timers", "transaction")

    def __init__(self, transaction: Transaction, timers: Deadlines, owned: Owned | None) -> None:
        self.transaction = transaction
        self.timers = timers
        self._owned = owned

    def put(self, transaction: Transaction) -> None:
        """As it is now."""
        before, self.transaction = self.transaction, transaction
        if self._owned is not None:
            is_open = transaction.is_open - before.is_open
            partitions = len(transaction.partitions) - len(before.partitions)
            if is_open or partitions:
                self._owned.add(0, is_open, partitions)


class Transactions:
    """By transactional id."""

    def __init__(
        self,
        new_timers: Callable[[], Deadlines],
        settings: TransactionSettings,
        now_ms: Callable[[], int],
        counts: Counts,
    ) -> None:
        self._counts = counts
        self.entries: dict[str, Entry] = {}
        self.owned: dict[str, Owned] = {}  # by instance key
        self._new_timers, self._settings, self._now_ms = new_timers, settings, now_ms

    def clear(self) -> None:
        """Know nothing again."""
        self.leave()
        self.entries, self.owned = {}, {}

    def leave(self) -> None:
        """This broker leads the partition no more: what is in it counts for others."""
        for owned in self.owned.values():
            owned.leave()

    def all_entries(self) -> Iterable[Entry]:
        """In order of their first records."""
        return self.entries.values()

    def loaded(self) -> Iterator[tuple[Entry, SetTimer[TimedOut | Expired | Resume]]]:
        """Whatever was decided goes on; what is open times out when it would have; what nobody has used for long expires."""
        now_ms = self._now_ms()
        for entry in list(self.entries.values()):  # of which some may expire meanwhile
            transaction = entry.transaction
            if transaction.state in PREPARED:
                yield entry, SetTimer(RESUME_TIMER, 0, Resume())
            elif transaction.state is TransactionState.ONGOING:
                yield entry, SetTimer(TIMEOUT_TIMER, transaction.time_left_ms(now_ms), TimedOut())
            else:
                expires_ms = transaction.updated_ms + self._settings.id_expiration_ms
                yield entry, SetTimer(EXPIRY_TIMER, max(expires_ms - now_ms, 0), Expired())

    def open(self, name: str) -> Entry:
        """The entry of a transactional id, made if there is none."""
        entry = self.entries.get(name)
        if entry is None:
            owner = split_physical(name)
            owned = None if owner is None else self._owned_by(owner[0])
            entry = self.entries[name] = Entry(Transaction(name), self._new_timers(), owned)
            if owned is not None:
                owned.entries[name] = entry
                owned.add(ids=1)
        return entry

    def _owned_by(self, key: str) -> Owned:
        owned = self.owned.get(key)
        if owned is None:
            owned = self.owned[key] = Owned(key, self._counts)
        return owned

    def apply(self, key: bytes, value: bytes | None) -> None:
        """What the log says. Raises DecodeError or ValueError for a record that cannot be read."""
        record = read_record(key, value)
        if record is None:
            return
        name = record.transactional_id
        if record.value is not None:
            transaction = loaded(name, record.value)
            self.open(name).put(transaction)
        elif name in self.entries:
            self._forget(name)

    def drop_blank(self, name: str) -> None:
        """Forget a transactional id of which nothing is left."""
        entry = self.entries.get(name)
        if entry is not None and entry.transaction.is_blank():
            self._forget(name)

    def of_instance(self, key: str) -> Iterable[Entry]:
        """Those of one instance. Costs nothing for the ids of all the others."""
        owned = self.owned.get(key)
        return () if owned is None else owned.entries.values()

    def _forget(self, name: str) -> None:
        entry = self.entries.pop(name)
        entry.timers.cancel_all()
        entry.put(Transaction(name))
        owner = split_physical(name)
        if owner is not None:
            owned = self.owned[owner[0]]
            del owned.entries[name]
            owned.add(ids=-1)
            if not owned.entries:
                del self.owned[owner[0]]


TransactionShard = Shard[Transactions]
