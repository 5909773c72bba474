"""All groups of one partition of ``__consumer_offsets``, on the broker that leads it.

The partition of a group is Java's ``String.hashCode`` modulo the number of partitions, as every Kafka client and tool
expects of the broker it is sent to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dataplane.groups.classic.model import Group
from dataplane.groups.classic.state import apply
from dataplane.groups.offsets import GroupOffsets
from dataplane.groups.records import GroupRecord, KeyValue, OffsetRecord, read_record
from dataplane.protocol.errors import ErrorCode
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from dataplane.groups.offsets import TopicPartition
    from dataplane.groups.timers import Deadlines
    from dataplane.tasks import Future


def partition_of(name: str, partitions: int) -> int:
    """Which partition of the internal topic keeps a group (or a transactional id)."""
    code = 0
    data = name.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(data), 2):
        code = (31 * code + (data[i] << 8 | data[i + 1])) & 0xFFFFFFFF
    if code >= 1 << 31:
        code -= 1 << 32
    return 0 if code == -(1 << 31) else abs(code) % partitions


class Entry:
    """One group, its offsets and its timers. `group` is replaced, never changed."""

    __slots__ = ("group", "offsets", "timers")

    def __init__(self, group: Group, timers: Deadlines) -> None:
        self.group = group
        self.offsets = GroupOffsets()
        self.timers = timers

    def is_blank(self) -> bool:
        """Nothing would be lost if it were forgotten."""
        return self.group.is_blank() and self.offsets.is_empty()


Refuse = Callable[[ErrorCode], Any]
"""Makes the answer that says nothing but an error."""


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

    def of(self, entry: Entry) -> list[TopicPartition]:
        """Which offsets of a group have to go. Looks at the fewer of the two: there may be many of either."""
        if len(self.deleted) < entry.offsets.count():
            return [key for key in self.deleted if entry.offsets.has(key)]
        return [key for key in entry.offsets.all_keys() if key in self.deleted]

    def spares(self, entry: Entry, key: TopicPartition) -> bool:
        """Whether it was committed since."""
        return key in self._spared.get(entry.group.group_id, ())


class Shard:
    """The groups of one partition, and the requests that wait for them."""

    def __init__(self, index: int, leader_epoch: int, new_timers: Callable[[], Deadlines]) -> None:
        self.index = index
        self.leader_epoch = leader_epoch
        self.loading = True
        self.closed = False
        self.problem = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # what is told while it is loading
        self.entries: dict[str, Entry] = {}
        self.forgetting: list[Forgetting] = []
        self.sweep: Future[None] | None = None
        self._owned: dict[str, int] = {}  # groups by instance key
        self._new_timers = new_timers
        self._parked: dict[int, tuple[Future[Any], Refuse]] = {}

    def load_again(self, problem: ErrorCode) -> None:
        """It could not be loaded: know nothing, and say so until it is."""
        self.problem = problem
        self.entries, self._owned = {}, {}

    def open(self, group_id: str) -> Entry:
        """The entry of a group, made if there is none."""
        entry = self.entries.get(group_id)
        if entry is None:
            entry = self.entries[group_id] = Entry(Group(group_id), self._new_timers())
            self._count(group_id, 1)
        return entry

    def forget(self, group_id: str) -> None:
        """It is not there any more."""
        del self.entries[group_id]
        self._count(group_id, -1)

    def groups_of_owner(self, group_id: str) -> int:
        """How many groups there are of the instance that this one belongs to."""
        owner = split_physical(group_id)
        return 0 if owner is None else self._owned.get(owner[0], 0)

    def _count(self, group_id: str, change: int) -> None:
        owner = split_physical(group_id)
        if owner is not None:
            count = self._owned.get(owner[0], 0) + change
            if count:
                self._owned[owner[0]] = count
            else:
                del self._owned[owner[0]]

    def apply(self, key: bytes, value: bytes | None) -> None:
        """What the log says. Raises DecodeError or ValueError for a record that cannot be read."""
        record = read_record(key, value)
        if isinstance(record, OffsetRecord):
            if record.value is not None or record.group in self.entries:
                self.open(record.group).offsets.apply(record.topic, record.partition, record.value)
        elif isinstance(record, GroupRecord):
            self._apply_group(record)

    def apply_all(self, records: list[KeyValue]) -> None:
        """Several, in order."""
        for key, value in records:
            self.apply(key, value)

    def _apply_group(self, record: GroupRecord) -> None:
        if record.value is not None:
            entry = self.open(record.group)
            entry.group = apply(entry.group, record.value)
        elif record.group in self.entries:
            entry = self.entries[record.group]
            entry.group = Group(record.group)
            entry.timers.cancel_all()

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

    def park(self, token: int, future: Future[Any], refuse: Refuse) -> None:
        """A request waits."""
        self._parked[token] = (future, refuse)

    def answer(self, token: int, result: Any) -> None:
        """It need not wait any longer."""
        future, _ = self._parked.pop(token)
        future.resolve(result)

    def close(self, error: ErrorCode) -> None:
        """Not ours any more: everybody who waits is told so, in order."""
        self.closed = True
        for entry in self.entries.values():
            entry.timers.cancel_all()
        parked, self._parked = self._parked, {}
        for future, refuse in parked.values():
            future.resolve(refuse(error))
