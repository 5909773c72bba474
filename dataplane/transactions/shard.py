"""All transactional ids of one partition of ``__transaction_state``: what its records add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.coordination.effects import SetTimer
from dataplane.coordination.shard import Shard
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
    """What an instance has in this partition. `partitions` are those of its transactions that are open, or are being ended."""

    __slots__ = ("entries", "partitions")

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.partitions = 0


class Entry:
    """One transactional id and its timers. `transaction` is a value; what it has counts for its instance."""

    __slots__ = ("_owned", "timers", "transaction")

    def __init__(self, transaction: Transaction, timers: Deadlines, owned: Owned | None) -> None:
        self.transaction = transaction
        self.timers = timers
        self._owned = owned

    def put(self, transaction: Transaction) -> None:
        """As it is now."""
        if self._owned is not None:
            self._owned.partitions += len(transaction.partitions) - len(self.transaction.partitions)
        self.transaction = transaction


class Transactions:
    """By transactional id."""

    def __init__(
        self, new_timers: Callable[[], Deadlines], settings: TransactionSettings, now_ms: Callable[[], int]
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self.owned: dict[str, Owned] = {}  # by instance key
        self._new_timers, self._settings, self._now_ms = new_timers, settings, now_ms

    def clear(self) -> None:
        """Know nothing again."""
        self.entries, self.owned = {}, {}

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
            owned = None if owner is None else self.owned.setdefault(owner[0], Owned())
            entry = self.entries[name] = Entry(Transaction(name), self._new_timers(), owned)
            if owned is not None:
                owned.entries[name] = entry
        return entry

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
            if not owned.entries:
                del self.owned[owner[0]]


TransactionShard = Shard[Transactions]
