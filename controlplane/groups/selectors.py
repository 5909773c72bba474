"""Reading groups, within an organisation.

A page is one round of each question, however many groups and partitions it shows: which groups there are (a list only);
members and offsets; what the partitions hold; how many bytes are left in them; for one group also one record of each partition
that it lags in, whose timestamp is the lag in seconds. Each round is bounded (`group_door`, `backlog_door`); at worst a page
takes 15 s and says what is away.

A list shows what is known: a broker that does not name its groups is told to be missing, and a group whose coordinator does not
answer has no figures. Whatever changes a group, or counts on all of them being there, asks for all or nothing.

Between two looks, what was seen is kept in the cache, for a minute and a half: rates come from it. Before the second look the
history's newest minute says how much nearer to its end a group has come (`earlier`), and in a list how old its lag is.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from django.core.cache import cache

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound, Unavailable
from controlplane.core.kept import AWAY
from controlplane.groups import earlier, lag
from controlplane.groups.lag import Observation, Pace
from controlplane.groups.reasons import (
    MOST_DATED,
    NEVER_COMMITTED,
    NO_ANSWER,
    NO_LEADER,
    NO_TIMESTAMP,
    OF_GROUP_ALONE,
    TOO_MANY,
)
from controlplane.instances.selectors import instance_get
from controlplane.kafka import backlog_door, groups
from controlplane.kafka.group_door import NOTHING_LEFT, UNDATED, UNKNOWN, ListedGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.groups.earlier import Earlier
    from controlplane.instances.models import Instance
    from controlplane.kafka.backlog_door import Stretch
    from controlplane.kafka.group_door import Member, Place, Span
    from controlplane.kafka.groups import Group
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
MOST_ROWS = 10_000
"""Partitions and members in a page of groups."""


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group. None is what is not known; `unknown` says why the seconds are not."""

    topic: str
    partition: int
    offset: int | None
    start_offset: int | None = None
    end_offset: int | None = None
    lag_messages: int | None = None
    lag_bytes: int | None = None  # about: `kafka.backlog_door`
    lag_seconds: float | None = None
    unknown: str = ""
    client_id: str | None = None  # of the member that reads it now
    expired: int = 0  # records that were deleted before the group read them
    pace: Pace | None = None  # since an earlier look

    @property
    def place(self) -> Place:
        """Topic and number."""
        return self.topic, self.partition

    @property
    def drain_seconds(self) -> float | None:
        """See `lag.drain_seconds`."""
        return lag.drain_seconds(self.lag_messages, self.pace)

    @property
    def falls_behind(self) -> bool:
        """See `lag.falls_behind`."""
        return lag.falls_behind(self.lag_messages, self.pace)


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """A group in a list."""

    name: str
    state: str
    protocol: str
    members: tuple[Member, ...]
    lag_messages: int | None  # of the partitions whose end is known; None: no offset is committed, or no end is known
    lag_unknown: int  # partitions that it has an offset in and whose end is not known
    lag_bytes: int | None  # about; None: of some partition with a lag it is not known
    lag_seconds: float | None  # the largest of those that are known; in a list as the history's newest minute has it
    partitions: tuple[PartitionLag, ...]
    is_known: bool = True  # False: its coordinator did not answer, or cannot be asked; nothing but the name is known
    lag_seconds_at: datetime | None = None  # in a list, when it was so; None: at this moment, or it is not known

    @property
    def can_be_asked(self) -> bool:
        """Whether it has a page: no name with NUL has one."""
        return groups.can_be(self.name)

    @property
    def known_members(self) -> tuple[Member, ...] | None:
        """None: not known, which is something else than nobody."""
        return self.members if self.is_known else None

    @property
    def known_partitions(self) -> tuple[PartitionLag, ...] | None:
        """None: not known, which is something else than none."""
        return self.partitions if self.is_known else None


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """The groups of an instance by name, and the ids of brokers that did not name all of theirs.

    Those that such a broker coordinates are here as well if the history knew them a minute ago.
    """

    groups: list[ListedGroup]
    missing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupView(GroupSummary):
    """A group with its partitions."""

    pace: Pace | None = None
    gain_per_s: float | None = None  # records that it comes nearer to its end, since the history's newest minute
    is_of_consumers: bool = False  # of the consumer protocol (KIP-848)
    removable: frozenset[str] = frozenset()  # ids of members that can be taken out, where that was asked for

    @property
    def drain_seconds(self) -> float | None:
        """See `lag.drain_seconds`."""
        return lag.drain_seconds(self.lag_messages, self.pace, self.gain_per_s)

    @property
    def falls_behind(self) -> bool:
        """See `lag.falls_behind`."""
        return lag.falls_behind(self.lag_messages, self.pace, self.gain_per_s)

    @property
    def seconds_unknown(self) -> int:
        """Partitions with a lag whose age is not known."""
        return sum(row.lag_seconds is None and row.lag_messages != 0 for row in self.partitions)

    @property
    def topics(self) -> list[str]:
        """Of which it has an offset."""
        return sorted({row.topic for row in self.partitions if row.offset is not None})


def group_names(*, organisation: Organisation, instance_id: str, prefix: str = "") -> list[ListedGroup]:
    """Name and state of every group whose name begins so, by name. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return [group for group in groups.list_all(instance.cluster.address, instance.id) if group.name.startswith(prefix)]


def groups_seen(
    *, organisation: Organisation, instance_id: str, prefix: str = "", clock: Clock = SYSTEM_CLOCK
) -> GroupsSeen:
    """The same of the brokers that answer. Raises NotFound, ClusterUnavailable: none does."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    listing = groups.list_known(instance.cluster.address, instance.id)
    found = {group.name: group for group in listing.groups}
    if listing.missing:
        for name in _earlier(instance, clock):
            found.setdefault(name, ListedGroup(name, UNKNOWN))
    named = [found[name] for name in sorted(found) if name.startswith(prefix)]
    return GroupsSeen(named, listing.missing)


def group_summaries(*, organisation: Organisation, instance_id: str, names: Sequence[str]) -> list[GroupSummary]:
    """These groups, which may be those of one page, with members and lag. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return _summaries(instance, groups.read(instance.cluster.address, instance.id, names), SYSTEM_CLOCK)


def group_summaries_known(
    *, organisation: Organisation, instance_id: str, names: Sequence[str], clock: Clock = SYSTEM_CLOCK
) -> list[GroupSummary]:
    """The same in this order, and nothing but the name of those that do not answer, or that nobody can be asked about.

    Raises NotFound, ClusterUnavailable.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    answered, silent = groups.read_known(instance.cluster.address, instance.id, names)
    found = {each.name: each for each in _summaries(instance, answered, clock, even_without_ends=True)}
    found |= {name: _unknown(name) for name in [*silent, *(name for name in names if not groups.can_be(name))]}
    return [found[name] for name in names if name in found]


def first_of(views: Sequence[GroupSummary]) -> list[GroupSummary]:
    """As many as have MOST_ROWS partitions and members together, and one at least."""
    rows = list(accumulate(len(view.partitions) + len(view.members) for view in views))
    return [view for at, view in enumerate(views) if at == 0 or rows[at] <= MOST_ROWS]


def group_order(
    *, organisation: Organisation, instance_id: str, names: Sequence[str], clock: Clock = SYSTEM_CLOCK
) -> list[str]:
    """These names, those first that were furthest behind a minute ago; of which that is not known stand last."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    known = _earlier(instance, clock)
    return sorted(names, key=lambda name: (-known[name].messages if name in known else 1, name))


def group_lags(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> Mapping[str, Earlier]:
    """How far behind each group was a minute ago, by name; of which that is not known are not in it. Raises NotFound."""
    return _earlier(instance_get(organisation=organisation, instance_id=instance_id), clock)


def _unknown(name: str) -> GroupSummary:
    return GroupSummary(name, UNKNOWN, "", (), None, 0, None, None, (), is_known=False)


def _earlier(instance: Instance, clock: Clock, names: Sequence[str] | None = None) -> Mapping[str, Earlier]:
    return earlier.lags(instance.id, int(clock.now().timestamp()), names)


def _summaries(
    instance: Instance, found: Sequence[Group], clock: Clock, *, even_without_ends: bool = False
) -> list[GroupSummary]:
    places = sorted({place for group in found for place in _places(group)})
    spans = _spans(instance, places, even_without_ends=even_without_ends)
    sizes = _backlogs(instance, [stretch for group in found for stretch in _stretches(group, spans)])
    before = _earlier(instance, clock, [group.name for group in found]) if found else {}
    return [_in_list(group, spans, sizes, before.get(group.name)) for group in found]


def _in_list(
    group: Group, spans: Mapping[Place, Span], sizes: Mapping[Stretch, int], before: Earlier | None
) -> GroupSummary:
    rows = [
        replace(row, unknown=OF_GROUP_ALONE) if row.lag_messages and row.lag_seconds is None else row
        for row in _rows(group, spans, sizes)
    ]
    is_read = bool(rows) and all(row.lag_messages == 0 for row in rows)
    if is_read or before is None or before.seconds is None:
        return _summary(group, spans, sizes, tuple(rows), 0.0 if is_read else None)
    summary = _summary(group, spans, sizes, tuple(rows), before.seconds)
    return replace(summary, lag_seconds_at=datetime.fromtimestamp(before.at_s, UTC))


def group_get(
    *,
    organisation: Organisation,
    instance_id: str,
    name: str,
    clock: Clock = SYSTEM_CLOCK,
    paced: bool = True,
    with_removable: bool = False,
) -> GroupView:
    """One group with its lag in records, bytes and seconds; `paced` with its rates. Raises NotFound, ClusterUnavailable.

    `with_removable`: with which of its members can be taken out.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    group = groups.get(instance.cluster.address, instance.id, name)
    view = group_view(instance, group, clock=clock, paced=paced)
    return replace(view, removable=_removable(instance, group)) if with_removable else view


def _removable(instance: Instance, group: Group) -> frozenset[str]:
    """Of a group of the consumer protocol those that speak the classic one alone."""
    if not group.described.is_of_consumers or not group.described.members:
        return frozenset(member.id for member in group.described.members)
    try:
        return groups.classic_members(instance.cluster.address, instance.id, group.name)
    except (Unavailable, NotFound):  # the rest of the page is known
        return frozenset()


def group_view(
    instance: Instance,
    group: Group,
    *,
    clock: Clock = SYSTEM_CLOCK,
    paced: bool = False,
    even_without_ends: bool = False,
) -> GroupView:
    """The same of a group that is known already, or of one as it would be: what its partitions hold is asked for.

    Raises ClusterUnavailable; `even_without_ends`: not where only that is not known.
    """
    now = clock.now()  # when its offsets are known: an age is of this moment, however long the rest takes
    spans = _spans(instance, _places(group), even_without_ends=even_without_ends)
    sizes = _backlogs(instance, _stretches(group, spans))
    rows = _dated(instance, _rows(group, spans, sizes), now)
    seen = _observed(instance.id, group, spans, clock) if paced else None
    if seen is not None:
        each = lag.paces(*seen)
        rows = [replace(row, pace=each.get(row.place)) for row in rows]
    summary = _summary(group, spans, sizes, tuple(rows), _oldest(rows))
    pace = None if seen is None else lag.pace(*seen)
    return GroupView(
        **{field: getattr(summary, field) for field in GroupSummary.__dataclass_fields__},
        pace=pace,
        gain_per_s=_gain(instance, summary, clock) if paced and pace is None else None,
        is_of_consumers=group.described.is_of_consumers,
    )


def topic_names(*, organisation: Organisation, instance_id: str) -> list[str]:
    """Topics that a group may have offsets in. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return sorted(groups.topic_names(instance.cluster.address, instance.id))


def group_known(*, organisation: Organisation, instance_id: str, name: str) -> None:
    """Raises NotFound where no coordinator knows a group of this name, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    groups.get(instance.cluster.address, instance.id, name)


def group_forget(instance_id: str, name: str) -> None:
    """Its offsets were moved: what was seen before says nothing about how fast it reads."""
    try:
        cache.delete(_key(instance_id, name))
    except AWAY as error:
        LOG.warning("the next rates of a group may be wrong: %s", error)


def _readers(group: Group) -> dict[Place, str]:
    return {place: member.client_id for member in group.described.members for place in member.partitions}


def _places(group: Group) -> list[Place]:
    """That it has an offset in, or that a member reads."""
    return sorted({*group.committed, *_readers(group)})


def _spans(instance: Instance, places: Sequence[Place], *, even_without_ends: bool) -> Mapping[Place, Span]:
    try:
        return groups.spans(instance.cluster.address, instance.id, places) if places else {}
    except Unavailable:
        if not even_without_ends:
            raise
        return {}


def _rows(group: Group, spans: Mapping[Place, Span], sizes: Mapping[Stretch, int]) -> list[PartitionLag]:
    readers = _readers(group)
    return [
        _row(place, group.committed.get(place), spans.get(place), readers.get(place), sizes) for place in _places(group)
    ]


def _stretches(group: Group, spans: Mapping[Place, Span]) -> list[Stretch]:
    """From where it would read on, of partitions in which something is left."""
    return [
        _stretch(place, offset, spans[place])
        for place, offset in group.committed.items()
        if place in spans and lag.lag_messages(offset, spans[place].start, spans[place].end)
    ]


def _stretch(place: Place, offset: int, span: Span) -> Stretch:
    return (*place, max(offset, span.start), span.end)


def _backlogs(instance: Instance, stretches: Sequence[Stretch]) -> Mapping[Stretch, int]:
    try:
        return backlog_door.read(instance.cluster.address, instance.id, stretches) if stretches else {}
    except Unavailable:  # the rest of the page is known
        return {}


def _summary(
    group: Group,
    spans: Mapping[Place, Span],
    sizes: Mapping[Stretch, int],
    rows: tuple[PartitionLag, ...],
    seconds: float | None,
) -> GroupSummary:
    lags = [
        lag.lag_messages(offset, spans[place].start, spans[place].end)
        for place, offset in group.committed.items()
        if place in spans
    ]
    about = group.described
    left = [sizes.get(stretch) for stretch in _stretches(group, spans)]
    known = [size for size in left if size is not None]
    return GroupSummary(
        about.name,
        about.state,
        about.protocol,
        about.members,
        lag_messages=sum(lags) if lags else None,
        lag_unknown=len(group.committed) - len(lags),
        lag_bytes=sum(known) if lags and len(known) == len(left) else None,
        lag_seconds=seconds,
        partitions=rows,
    )


def _row(
    place: Place, offset: int | None, span: Span | None, client_id: str | None, sizes: Mapping[Stretch, int]
) -> PartitionLag:
    if span is None:
        return PartitionLag(*place, offset, unknown=NO_LEADER, client_id=client_id)
    if offset is None:
        if (
            span.start == span.end
        ):  # clients commit nothing where there was nothing to read: nothing is left all the same
            return PartitionLag(*place, None, span.start, span.end, 0, 0, lag_seconds=0.0, client_id=client_id)
        return PartitionLag(*place, None, span.start, span.end, unknown=NEVER_COMMITTED, client_id=client_id)
    left = lag.lag_messages(offset, span.start, span.end)
    return PartitionLag(
        *place,
        offset,
        span.start,
        span.end,
        left,
        sizes.get(_stretch(place, offset, span)) if left else 0,
        lag_seconds=None if left else 0.0,
        client_id=client_id,
        expired=max(0, span.start - offset),
    )


def _dated(instance: Instance, rows: Sequence[PartitionLag], now: datetime) -> list[PartitionLag]:
    """With the age at a moment of the oldest record that each partition has for the group."""
    behind = {row.place: max(row.offset or 0, row.start_offset or 0) for row in rows if row.lag_messages}
    asked = dict(list(behind.items())[:MOST_DATED])
    try:
        found = groups.oldest(instance.cluster.address, instance.id, asked)
    except Unavailable:  # the rest of the page is known
        found = {}
    now_ms = now.timestamp() * lag.SECOND_MS
    return [_with_age(row, found.get(row.place), now_ms, asked) if row.place in behind else row for row in rows]


def _with_age(row: PartitionLag, timestamp_ms: int | None, now_ms: float, asked: Mapping[Place, int]) -> PartitionLag:
    if timestamp_ms is None:
        return replace(row, unknown=NO_ANSWER if row.place in asked else TOO_MANY)
    if timestamp_ms == UNDATED:
        return replace(row, unknown=NO_TIMESTAMP)
    age_ms = 0.0 if timestamp_ms == NOTHING_LEFT else max(0.0, now_ms - timestamp_ms)
    return replace(row, lag_seconds=round(age_ms / lag.SECOND_MS, 1))


def _oldest(rows: Sequence[PartitionLag]) -> float | None:
    """The largest age that is known of partitions with a lag; 0 where none has one."""
    behind = [row for row in rows if row.lag_messages]
    known = [row.lag_seconds for row in behind or rows if row.lag_seconds is not None]
    return max(known, default=None)


def _gain(instance: Instance, summary: GroupSummary, clock: Clock) -> float | None:
    """Since the history's newest minute, if it is some seconds ago and everything is known now."""
    before = _earlier(instance, clock, [summary.name]).get(summary.name)
    if before is None or summary.lag_messages is None or summary.lag_unknown:
        return None
    return lag.gain_per_s(before.messages, summary.lag_messages, clock.now().timestamp() - before.at_s)


def _observed(
    instance_id: str, group: Group, spans: Mapping[Place, Span], clock: Clock
) -> tuple[Observation, Observation] | None:
    """An earlier look, if there was one, and this one, which is kept for later ones."""
    now = Observation(
        int(clock.now().timestamp() * lag.SECOND_MS),
        dict(group.committed),
        {place: span.end for place, span in spans.items()},
    )
    key = _key(instance_id, group.name)
    try:
        kept = cache.get(key) or []
        cache.set(key, lag.kept_with(kept, now), timeout=lag.LONGEST_MS // lag.SECOND_MS)
    except AWAY as error:
        LOG.warning("a group is shown without rates: %s", error)
        return None
    before = lag.oldest_of(kept, now)
    return None if before is None else (before, now)


def _key(instance_id: str, name: str) -> str:
    """Hashed: a group's name may hold what a cache's key must not."""
    return f"group:{instance_id}:{hashlib.sha256(name.encode()).hexdigest()[:32]}"
