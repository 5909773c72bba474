"""All groups of one partition of ``__consumer_offsets``: what its records add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dataplane.coordination.effects import SetTimer
from dataplane.coordination.shard import Shard
from dataplane.groups.classic.events import JoinAgain
from dataplane.groups.classic.model import Group
from dataplane.groups.classic.rebalance import JOIN_TIMER, session_of
from dataplane.groups.classic.state import apply
from dataplane.groups.consumer.ledger import apply as apply_consumer
from dataplane.groups.consumer.model import Group as ConsumerGroup
from dataplane.groups.consumer.state import timers_of
from dataplane.groups.offsets import END_OF_LOG, GroupOffsets
from dataplane.groups.pending import Held
from dataplane.groups.records import ConsumerRecord, GroupRecord, OffsetRecord, read_record
from dataplane.groups.settings import ConsumerRules
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dataplane.coordination.deadlines import Deadlines
    from dataplane.coordination.effects import KeyValue
    from dataplane.groups.offsets import TopicPartition
    from dataplane.groups.pending import Transaction
    from dataplane.protocol.errors import ErrorCode
    from dataplane.records.steps import Pace, Steps
    from dataplane.tasks import Future

_LOOK_US = 1


class Entry:
    """One group, its offsets and its timers. `group` is replaced, never changed.

    A group of the consumer protocol is `consumer`; then `group` is as if there were none. None: it is of the classic one.
    Where both are there, `consumer` without an epoch, `group` is to become that: its records are on their way, or in doubt.
    `matched_with`: the topics that each of its regular expressions was last matched with. `waiting`: events that cannot be
    handled while it is not certain which of the two the group is. `refusal`: why which `group` cannot become a `consumer`, as was
    found out already.
    """

    __slots__ = ("consumer", "group", "matched_with", "offsets", "refusal", "timers", "waiting")

    def __init__(self, group: Group, timers: Deadlines, held: Held | None = None) -> None:
        self.group = group
        self.consumer: ConsumerGroup | None = None
        self.matched_with: dict[str, Sequence[str]] = {}
        self.waiting: list[Any] = []
        self.refusal: tuple[Group, ErrorCode, str] | None = None
        self.offsets = GroupOffsets(held)
        self.timers = timers

    def is_blank(self) -> bool:
        """Nothing would be lost if it were forgotten."""
        is_none = self.consumer is None and self.group.is_blank() and not self.waiting
        return is_none and self.offsets.is_empty()

    def of_consumers(self) -> ConsumerGroup | None:
        """The group, where it is one of the consumer protocol already."""
        consumer = self.consumer
        return consumer if consumer is not None and (consumer.epoch or self.group.is_blank()) else None

    def put(self, consumer: ConsumerGroup) -> None:
        """As it is now."""
        self.consumer = None if consumer.is_blank() else consumer

    def clients(self) -> list[tuple[str, str]]:
        """Client id and host of every member."""
        consumer = self.of_consumers()
        members = self.group.members if consumer is None else consumer.members
        return [(member.client_id, member.client_host) for member in members.values()]


class Forgetting:
    """Partitions of deleted topics, whose offsets are being looked for. What is committed from now on is of new topics."""

    __slots__ = ("_spared", "deleted")

    def __init__(self, deleted: Iterable[TopicPartition]) -> None:
        self.deleted = dict.fromkeys(deleted)
        self._spared: dict[str, dict[TopicPartition, None]] = {}  # by group

    def spare(self, group_id: str, keys: Iterable[TopicPartition]) -> None:
        """A group commits these."""
        spared = [key for key in keys if key in self.deleted]
        if spared:
            self._spared.setdefault(group_id, {}).update(dict.fromkeys(spared))

    def of(self, entry: Entry, pace: Pace) -> Steps[list[TopicPartition]]:
        """Which offsets of a group have to go. Looks at the fewer of the two: there may be many of either."""
        are_fewer = len(self.deleted) < entry.offsets.count()
        found = []
        for key in list(self.deleted if are_fewer else entry.offsets.all_keys()):
            if pace.over(_LOOK_US):
                yield None
            if entry.offsets.has(key) if are_fewer else key in self.deleted:
                found.append(key)
        return found

    def spares(self, entry: Entry, key: TopicPartition) -> bool:
        """Whether it was committed since."""
        return key in self._spared.get(entry.group.group_id, ())


class Owned:
    """What an instance has in this partition: groups, and offsets of theirs that are pending in transactions."""

    __slots__ = ("groups", "held")

    def __init__(self) -> None:
        self.groups, self.held = 0, Held()


class Groups:
    """By group id; and what has to be removed from them."""

    def __init__(self, new_timers: Callable[[], Deadlines], rules: ConsumerRules | None = None) -> None:
        self._rules = rules or ConsumerRules()
        self.entries: dict[str, Entry] = {}
        self.forgetting: list[Forgetting] = []
        self.sweep: Future[None] | None = None
        self._owned: dict[str, Owned] = {}  # by instance key
        self._committing: dict[int, dict[str, None]] = {}  # groups that a producer's open transaction has offsets in
        self._new_timers = new_timers

    def clear(self) -> None:
        """Know nothing again."""
        self.entries, self._owned, self._committing = {}, {}, {}

    def all_entries(self) -> Iterable[Entry]:
        """In order of their first records."""
        return self.entries.values()

    def loaded(self) -> Iterator[tuple[Entry, SetTimer[Any]]]:
        """Every member is believed to be alive: its session begins. Groups of which nothing is left are forgotten."""
        for group_id, entry in list(self.entries.items()):
            for member in entry.group.members.values():
                yield entry, session_of(member)
            if entry.group.members and entry.group.leader is None:
                yield entry, SetTimer(JOIN_TIMER, 0, JoinAgain())
            if entry.consumer is not None:
                for timer in timers_of(entry.consumer, self._rules):
                    yield entry, timer
            self.drop_blank(group_id)

    def open(self, group_id: str) -> Entry:
        """The entry of a group, made if there is none."""
        entry = self.entries.get(group_id)
        if entry is None:
            owner = owner_of(group_id)
            owned = Owned() if owner is None else self._owned.setdefault(owner, Owned())
            owned.groups += 1
            entry = self.entries[group_id] = Entry(Group(group_id), self._new_timers(), owned.held)
        return entry

    def forget(self, group_id: str) -> None:
        """It is not there any more."""
        del self.entries[group_id]
        owner = owner_of(group_id)
        if owner is not None:
            owned = self._owned[owner]
            owned.groups -= 1
            if not owned.groups:
                del self._owned[owner]

    def groups_of_owner(self, group_id: str) -> int:
        """How many groups there are of the instance that this one belongs to."""
        owned = self._owned_with(group_id)
        return 0 if owned is None else owned.groups

    def bytes_held_with(self, group_id: str) -> int:
        """How much is pending, in transactions, of all groups of that instance."""
        owned = self._owned_with(group_id)
        return 0 if owned is None else owned.held.bytes

    def _owned_with(self, group_id: str) -> Owned | None:
        owner = owner_of(group_id)
        return None if owner is None else self._owned.get(owner)

    def apply(self, key: bytes, value: bytes | None, position: int = END_OF_LOG) -> None:
        """What the log says. Raises DecodeError or ValueError for a record that cannot be read."""
        record = read_record(key, value)
        if isinstance(record, OffsetRecord):
            if record.value is not None or record.group in self.entries:
                self.open(record.group).offsets.apply((record.topic, record.partition), record.value, position)
        elif isinstance(record, GroupRecord):
            self._apply_group(record)
        elif isinstance(record, ConsumerRecord) and (record.record.value is not None or record.group in self.entries):
            entry = self.open(record.group)
            entry.put(apply_consumer(entry.consumer or ConsumerGroup(record.group), (record.record,)))

    def apply_all(self, records: list[KeyValue], position: int) -> None:
        """Several that were appended together, in order."""
        for key, value in records:
            self.apply(key, value, position)

    def _apply_group(self, record: GroupRecord) -> None:
        if record.value is not None:
            entry = self.open(record.group)
            entry.group = apply(entry.group, record.value)
        elif record.group in self.entries:
            entry = self.entries[record.group]
            entry.group = Group(record.group)
            entry.timers.cancel_all()

    # --- transactions (`coordination.loading.Transactions`) -----------------------------------------------------------

    def take(self, producer_id: int, position: int, key: bytes, value: bytes | None) -> None:
        """An offset is committed in a producer's open transaction. Raises as `apply`."""
        record = read_record(key, value)
        if isinstance(record, OffsetRecord) and record.value is not None:
            offsets = self.open(record.group).offsets
            offsets.apply_in_transaction(producer_id, position, (record.topic, record.partition), record.value)
            self._committing.setdefault(producer_id, {})[record.group] = None

    def is_anothers(self, producer_id: int, group_id: str) -> bool:
        """Whether the producer's open transaction has offsets of another instance: so it is not of this one's."""
        committing = next(iter(self._committing.get(producer_id, ())), group_id)
        return owner_of(committing) != owner_of(group_id)

    def end(self, producer_id: int, *, committed: bool) -> Steps[None]:
        """The transaction has ended, with all that it has committed by now: so much of it is true at once."""
        closed = []
        for group_id in self._committing.pop(producer_id, ()):
            entry = self.entries.get(group_id)
            transaction = entry.offsets.transactions.close(producer_id) if entry is not None else None
            if entry is not None and transaction is not None:
                closed.append((entry, transaction))
        return self._settle(closed, committed=committed)

    def _settle(self, closed: list[tuple[Entry, Transaction]], *, committed: bool) -> Steps[None]:
        for entry, transaction in closed:
            yield from entry.offsets.settle(transaction, committed=committed)
            if self.entries.get(entry.group.group_id) is entry:
                self.drop_blank(entry.group.group_id)
            yield None

    def spare(self, group_id: str, keys: Iterable[TopicPartition]) -> None:
        """A group commits these: they are not of topics that were deleted before."""
        for forgetting in self.forgetting:
            forgetting.spare(group_id, keys)

    def drop_blank(self, group_id: str) -> None:
        """Forget a group of which nothing is left."""
        entry = self.entries.get(group_id)
        if entry is not None and entry.is_blank():
            entry.timers.cancel_all()
            self.forget(group_id)


GroupShard = Shard[Groups]


def owner_of(group_id: str) -> str | None:
    """The key of the instance that a group belongs to; None: it is the service's own."""
    owner = split_physical(group_id)
    return None if owner is None else owner[0]
