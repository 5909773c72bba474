"""All transactional ids of one partition of ``__transaction_state``: what its records add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.coordination.effects import SetTimer
from dataplane.coordination.shard import Shard
from dataplane.transactions.events import Expired, Resume, TimedOut
from dataplane.transactions.model import PREPARED, Transaction, TransactionState, loaded
from dataplane.transactions.records import read_record
from dataplane.transactions.state import EXPIRY_TIMER, TIMEOUT_TIMER
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.transactions.settings import TransactionSettings

RESUME_TIMER = "resume"


class Entry:
    """One transactional id and its timers. `transaction` is replaced, never changed."""

    __slots__ = ("timers", "transaction")

    def __init__(self, transaction: Transaction, timers: Deadlines) -> None:
        self.transaction = transaction
        self.timers = timers


class Transactions:
    """By transactional id."""

    def __init__(
        self, new_timers: Callable[[], Deadlines], settings: TransactionSettings, now_ms: Callable[[], int]
    ) -> None:
        self.entries: dict[str, Entry] = {}
        self._owned: dict[str, dict[str, Entry]] = {}  # by instance key
        self._new_timers, self._settings, self._now_ms = new_timers, settings, now_ms

    def clear(self) -> None:
        """Know nothing again."""
        self.entries, self._owned = {}, {}

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
                yield entry, SetTimer(TIMEOUT_TIMER, max(transaction.times_out_at_ms() - now_ms, 0), TimedOut())
            else:
                expires_ms = transaction.updated_ms + self._settings.id_expiration_ms
                yield entry, SetTimer(EXPIRY_TIMER, max(expires_ms - now_ms, 0), Expired())

    def open(self, name: str) -> Entry:
        """The entry of a transactional id, made if there is none."""
        entry = self.entries.get(name)
        if entry is None:
            entry = self.entries[name] = Entry(Transaction(name), self._new_timers())
            owner = split_physical(name)
            if owner is not None:
                self._owned.setdefault(owner[0], {})[name] = entry
        return entry

    def apply(self, key: bytes, value: bytes | None) -> None:
        """What the log says. Raises DecodeError or ValueError for a record that cannot be read."""
        record = read_record(key, value)
        if record is None:
            return
        name = record.transactional_id
        if record.value is not None:
            transaction = loaded(name, record.value)
            self.open(name).transaction = transaction
        elif name in self.entries:
            self._forget(name)

    def drop_blank(self, name: str) -> None:
        """Forget a transactional id of which nothing is left."""
        entry = self.entries.get(name)
        if entry is not None and entry.transaction.is_blank():
            self._forget(name)

    def ids_of_owner(self, name: str) -> int:
        """How many there are of the instance that this one belongs to."""
        owner = split_physical(name)
        return 0 if owner is None else len(self._owned.get(owner[0], ()))

    def of_instance(self, key: str) -> Iterable[Entry]:
        """Those of one instance. Costs nothing for the ids of all the others."""
        return self._owned.get(key, {}).values()

    def _forget(self, name: str) -> None:
        self.entries.pop(name).timers.cancel_all()
        owner = split_physical(name)
        if owner is not None:
            owned = self._owned[owner[0]]
            del owned[name]
            if not owned:
                del self._owned[owner[0]]


TransactionShard = Shard[Transactions]
