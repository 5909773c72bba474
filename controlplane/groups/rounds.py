"""What every group of a cluster has still to read, in one round: for the history, a whole one a minute, a short one each 10 s.

And which of them have rebalanced since the round before (`rebalances`): a question of its own, for after the lag is kept.

A page asks about one group, or the groups of one instance. Asking so for each of thousands would be two requests a group and
a list of all groups an instance. A round asks each broker once which groups it coordinates, and on one connection for their
offsets; then leaders where partitions begin and end, thousands in a question; and at last for the record that a group would
read next, whose timestamp is the lag in seconds, and how many bytes lie from there on. What was dated or sized in the round
before is not asked for again: a group that stands still costs its offsets and no record.

A short round asks the same with less patience (SHORT): offsets and ends, which brokers have in memory, of as many partitions as
are quickly told, and of what has moved since the round before the timestamps and bytes of a few hundred places.

A round has limits of its own, whatever there is: MOST_GROUPS, of which an instance with few has all; MOST_DATED records;
MOST_SIZED places; and the seconds below. What it does not come to is absent, or has no age, or no bytes. A group of which one
partition has no leader is absent: the sum without it would be a wrong number.
"""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from controlplane.clusters import zookeeper
from controlplane.clusters.topic_names import physical_names_of
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.portions import portions
from controlplane.core.turns import in_turn
from controlplane.groups.lag import lag_messages
from controlplane.groups.rebalances import looked
from controlplane.kafka import backlog_door, group_door, groups
from controlplane.kafka.group_door import NOTHING_LEFT, UNDATED
from controlplane.kafka.topics import names_of
from quota.contracts.namespace import instance_key, split_physical

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from controlplane.clusters.address import ClusterAddress
    from controlplane.groups.rebalances import Look
    from controlplane.kafka.backlog_door import Stretch
    from controlplane.kafka.group_door import Address, GroupDoor, Place, Span

    Spot = tuple[str, int, int]
    """A topic, a partition's number and an offset: where a group would read on."""
    Behind = Mapping[str, Sequence[tuple[int, Spot]]]

LOG = logging.getLogger(__name__)
MOST_GROUPS = 10_000
MOST_DATED = 2_000
MOST_SIZED = 2_000
"""Each is 60 us of a broker at most: a round is two milliseconds of each second of one broker, if that leads everything."""
MOST_MISSED = 200
"""Groups whose coordinators are asked whether they are gone: as many as a page of groups."""
OFFSETS_S = 10.0
"""Of each broker."""
WHOLE_S = 40.0
"""After that a whole round asks for nothing more: the next minute's would begin beside it, and soon keep every worker busy."""
PLACES_AT_ONCE = 2_000
DATED_AT_ONCE = 500
MOST_LOOKS = 8
"""At records, of two seconds at most."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What a round asks for at most."""

    dated: int
    looks: int
    sized: int
    offsets_s: float  # of each broker
    places: int | None = None  # of which leaders say where they begin and end; None: all
    within_s: float = math.inf  # after that nothing more is asked for


SHORT = Effort(dated=200, looks=1, sized=200, offsets_s=1.0, places=10_000, within_s=8.0)
"""Of a round each ten seconds: places are at most 2.4 ms of a broker each second, as those of a whole round are four."""


def _whole() -> Effort:
    return Effort(MOST_DATED, MOST_LOOKS, MOST_SIZED, OFFSETS_S, within_s=WHOLE_S)


class Position(NamedTuple):
    """How far a group has read and its partitions have been written: sums of its offsets, and of where these partitions end.

    `places` stands for the partitions in which it has an offset: only of the same ones two looks can be compared.
    """

    places: int
    offsets: int
    ends: int


class Part(NamedTuple):
    """A partition in which something is left: how many records, their bytes (None: not known), and where it ends."""

    number: int
    left: int
    size: int | None
    end: int


@dataclass(frozen=True, slots=True)
class Lag:
    """Records that can still be read, and the timestamp of the oldest of them, in ms.

    None: it is not known; NOTHING_LEFT: there is none, or only marks of transactions are left. `is_whole`: the next record of
    every partition is dated; where it is not, an older one may be among those that are not. `size`: their bytes, about, as
    `kafka.backlog_door` has it; None: not known of some partition, or nobody asked. `parts` are of a topic alone.
    """

    messages: int
    oldest_ms: int | None
    is_whole: bool = True
    size: int | None = None
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """By instance and group, both as tenants name them; and what was dated and sized, for the next round.

    `by_topic` has of the same groups the topics in which anything is left, by their names as the cluster has them; `read` all
    topics in which one of these groups has an offset. `positions` are of the same groups; a short round has none. `listed`
    has the state of every group that there is, by coordinator and physical name. Of the instances in `untold` a group is left
    out that was to be asked about: the largest lag of the others is not that of all. `seen` is when the offsets were known: an
    age is of this moment, however long the rest of the round takes.
    """

    lags: Mapping[str, Mapping[str, Lag]] = field(default_factory=dict)
    dated: Mapping[Spot, int] = field(default_factory=dict)
    by_topic: Mapping[str, Mapping[str, Mapping[str, Lag]]] = field(default_factory=dict)
    sized: Mapping[Stretch, int] = field(default_factory=dict)
    read: Mapping[str, Collection[str]] = field(default_factory=dict)
    listed: Mapping[Address, Mapping[str, str]] = field(default_factory=dict)
    untold: Collection[str] = ()
    positions: Mapping[str, Mapping[str, Position]] = field(default_factory=dict)
    seen: datetime = field(default_factory=SYSTEM_CLOCK.now)


def round_of(
    cluster: ClusterAddress,
    instance_ids: Sequence[str],
    *,
    known: Mapping[Spot, int],
    known_sizes: Mapping[Stretch, int] | None = None,
    effort: Effort | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Round:
    """Of the groups of these instances; what is known is of the round before. Raises ClusterUnavailable.

    `effort`: that of a whole round, unless another is said.
    """
    effort = effort or _whole()
    until = time.monotonic() + effort.within_s
    door = group_door.door(cluster)
    owners = {instance_key(instance_id): instance_id for instance_id in instance_ids}
    states = {
        address: {name: state for name, state in names.items() if _key(name) in owners}
        for address, names in door.coordinated().items()
    }
    listed = {address: list(names) for address, names in states.items()}
    found = _lags(cluster, door, owners, listed, known, known_sizes or {}, effort, until, clock)
    return replace(found, listed=states)


def rebalanced_of(
    cluster: ClusterAddress,
    instance_ids: Sequence[str],
    listed: Mapping[Address, Mapping[str, str]],
    looks: Mapping[str, Look],
    now_s: int,
) -> tuple[Mapping[str, Collection[str]], Mapping[str, Look]]:
    """By instance the groups that have rebalanced since the round before or are about it; and the looks for the next.

    `listed` is of a round of the same instances, `now_s` the time of this look.
    """
    owners = {instance_key(instance_id): instance_id for instance_id in instance_ids}
    names, looks = looked(group_door.door(cluster), listed, looks, now_s)
    rebalanced: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        key, group = split_physical(name) or ("", "")
        if groups.can_be(group):
            rebalanced[owners[key]].add(group)
    return dict(rebalanced), looks


def gone_of(
    cluster: ClusterAddress, wanted: Sequence[tuple[str, str]], listed: Mapping[Address, Mapping[str, str]]
) -> set[tuple[str, str]]:
    """Of these groups, by instance and name, those that their coordinators say are not there. `listed` is of a round.

    That nobody lists a group is no proof: its coordinator may be away. MOST_MISSED are asked about, instances in turn. Raises
    ClusterUnavailable.
    """
    there = {name for names in listed.values() for name in names}
    by_owner: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for instance, group in sorted(wanted):
        name = names_of(instance).group_in(group)
        if name not in there:
            by_owner[instance][name] = instance, group
    asked = list(islice(in_turn([list(names) for names in by_owner.values()]), MOST_MISSED))
    if not asked:
        return set()
    known = group_door.door(cluster).known(asked)
    of = {name: each for names in by_owner.values() for name, each in names.items()}
    return {
        of[name]
        for name, described in known.described.items()
        if not groups.Group(described, known.committed.get(name, {})).exists
    }


def _lags(
    cluster: ClusterAddress,
    door: GroupDoor,
    owners: Mapping[str, str],
    listed: Mapping[Address, Sequence[str]],
    known: Mapping[Spot, int],
    known_sizes: Mapping[Stretch, int],
    effort: Effort,
    until: float,
    clock: Clock,
) -> Round:
    chosen = _chosen(listed)
    committed = _committed(door, chosen, effort.offsets_s, until)
    seen = clock.now()
    if not committed:
        return Round(seen=seen)
    there = _topics(cluster, {owners[_key(name)] for name in committed})
    offsets: dict[str, Mapping[tuple[str, int], int]] = {
        name: {place: offset for place, offset in found.items() if place[0] in there and _key(place[0]) == _key(name)}
        for name, found in committed.items()
    }
    if effort.places is not None:
        offsets = _quickly_told(offsets, effort.places)
    untold = {owners[_key(name)] for names in chosen.values() for name in names if name not in offsets}
    spans = _spans(door, {place for found in offsets.values() for place in found}, until)
    if time.monotonic() >= until:
        effort = replace(effort, dated=0, sized=0)
        untold |= {owners[_key(name)] for name, found in offsets.items() if not found.keys() <= spans.keys()}
    behind = {name: spots for name, found in offsets.items() if (spots := _behind(found, spans)) is not None}
    dated = _dated(door, behind, known, effort)
    sized = _sized(cluster, behind, spans, known_sizes, effort)
    read: defaultdict[str, set[str]] = defaultdict(set)
    lags: defaultdict[str, dict[str, Lag]] = defaultdict(dict)
    by_topic: defaultdict[str, dict[str, Mapping[str, Lag]]] = defaultdict(dict)
    positions: defaultdict[str, dict[str, Position]] = defaultdict(dict)
    for name, spots in behind.items():
        _, group = split_physical(name) or ("", "")
        if groups.can_be(group) and offsets[name]:  # without an offset there is no lag
            lags[owners[_key(name)]][group] = replace(_lag(spots, dated), size=_size(spots, spans, sized))
            by_topic[owners[_key(name)]][group] = _with_parts(_by_topic(spots, dated), spots, spans, sized)
            read[owners[_key(name)]].update(topic for topic, _ in offsets[name])
            if effort.places is None:
                positions[owners[_key(name)]][group] = _position(offsets[name], spans)
    return Round(
        dict(lags), dated, dict(by_topic), sized, dict(read), untold=untold, positions=dict(positions), seen=seen
    )


def _key(name: str) -> str:
    """Of the instance that owns a physical name; "" where it is the cluster's own."""
    return (split_physical(name) or ("", ""))[0]


def _chosen(listed: Mapping[Address, Sequence[str]]) -> dict[Address, list[str]]:
    """MOST_GROUPS, in turn one of each instance: whoever has few has all. By name, so that it is the same ones each time."""
    at = {name: address for address, names in listed.items() for name in names}
    by_owner: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(at):
        by_owner[_key(name)].append(name)
    chosen: dict[Address, list[str]] = {address: [] for address in listed}
    for name in islice(in_turn(by_owner.values()), MOST_GROUPS):
        chosen[at[name]].append(name)
    return chosen


def _quickly_told(offsets: Mapping[str, Mapping[Place, int]], most: int) -> dict[str, Mapping[Place, int]]:
    """Groups that have no more than so many partitions together; of each all, since a part is none.

    An instance first has groups with its share of them, so that one group with very many leaves the other instances theirs. What
    is left is for the others, instances in turn.
    """
    by_owner: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(offsets):
        by_owner[_key(name)].append(name)
    share = most // max(1, len(by_owner))
    found: dict[str, Mapping[Place, int]] = {}
    places: set[Place] = set()
    for names in by_owner.values():  # a place is of one instance: nobody has another's already
        ours: set[Place] = set()
        for name in names:
            more = offsets[name].keys() - ours
            if len(ours) + len(more) <= share:
                ours |= more
                found[name] = offsets[name]
        places |= ours
    for name in in_turn(by_owner.values()):
        more = offsets[name].keys() - places
        if name not in found and len(places) + len(more) <= most:
            places |= more
            found[name] = offsets[name]
    return found


def _committed(
    door: GroupDoor, chosen: Mapping[Address, Sequence[str]], within_s: float, until: float
) -> dict[str, Mapping[Place, int]]:
    found: dict[str, Mapping[Place, int]] = {}
    for address, names in chosen.items():
        left_s = min(within_s, until - time.monotonic())
        try:
            found |= door.offsets(address, names, within_s=left_s) if names and left_s > 0 else {}
        except Unavailable as error:  # the groups of the others are known
            LOG.warning("no offsets of %d groups: %s", len(names), error)
    return found


def _topics(cluster: ClusterAddress, instance_ids: Iterable[str]) -> set[str]:
    """That are there: to ask for the offsets of one that is not would be waited for in vain."""
    found = physical_names_of(zookeeper.tree(cluster), sorted(instance_ids))
    return {topic for topics in found.values() for topic in topics}


def _spans(door: GroupDoor, places: set[Place], until: float) -> dict[Place, Span]:
    found: dict[Place, Span] = {}
    ordered = sorted(places)
    for part in portions(ordered, PLACES_AT_ONCE):
        if time.monotonic() >= until:
            break
        try:
            found |= door.spans(part)
        except Unavailable as error:  # the next ones may have other leaders
            LOG.warning("no ends of some partitions: %s", error)
    return found


def _behind(offsets: Mapping[Place, int], spans: Mapping[Place, Span]) -> list[tuple[int, Spot]] | None:
    """What is left in each partition that has something, the most first; None where one has no leader."""
    if any(place not in spans for place in offsets):
        return None
    found = [
        (left, (*place, max(offset, spans[place].start)))
        for place, offset in offsets.items()
        if (left := lag_messages(offset, spans[place].start, spans[place].end))
    ]
    return sorted(found, key=lambda each: (-each[0], each[1]))


def _position(offsets: Mapping[Place, int], spans: Mapping[Place, Span]) -> Position:
    """Of a group whose partitions all have a leader. Python's own hashes are others in each process, so they are not used."""
    places = sum(crc32(f"{topic}/{number}".encode()) for topic, number in offsets)
    return Position(places, sum(offsets.values()), sum(spans[place].end for place in offsets))


def _dated(door: GroupDoor, behind: Behind, known: Mapping[Spot, int], effort: Effort | None = None) -> dict[Spot, int]:
    """The timestamps of the next records: where each group is furthest behind before its other partitions.

    Instances take turns, so that one with thousands of groups leaves the others theirs.
    """
    effort = effort or _whole()
    by_owner: defaultdict[str, list[tuple[int, str, Spot]]] = defaultdict(list)
    for name, spots in behind.items():
        by_owner[_key(name)] += [(rank, name, spot) for rank, (_, spot) in enumerate(spots)]
    wanted = dict.fromkeys(spot for _, _, spot in in_turn([sorted(some) for _, some in sorted(by_owner.items())]))
    dated = {spot: known[spot] for spot in wanted if known.get(spot, NOTHING_LEFT) != NOTHING_LEFT}
    asked = list(islice((spot for spot in wanted if spot not in dated), effort.dated))
    for positions in islice(_looks(asked), effort.looks):
        try:
            found = door.oldest(positions)
        except Unavailable as error:
            LOG.warning("groups have no lag in seconds: %s", error)
            break
        dated |= {(*place, positions[place]): timestamp for place, timestamp in found.items()}
    return dated


def _sized(
    cluster: ClusterAddress,
    behind: Behind,
    spans: Mapping[Place, Span],
    known: Mapping[Stretch, int],
    effort: Effort | None = None,
) -> dict[Stretch, int]:
    """Bytes of what groups have before them: one group after the other, since a part of one is none. Instances take turns.

    What lies between an offset and an end that both stay is taken to stay: what is compacted meanwhile is not noticed.
    """
    by_owner: defaultdict[str, list[Spot]] = defaultdict(list)
    for name, spots in sorted(behind.items()):
        by_owner[_key(name)] += [spot for _, spot in spots]
    wanted = dict.fromkeys(_stretch(spot, spans) for spot in in_turn([some for _, some in sorted(by_owner.items())]))
    sized = {stretch: known[stretch] for stretch in wanted if stretch in known}
    asked = list(islice((stretch for stretch in wanted if stretch not in sized), (effort or _whole()).sized))
    try:
        found = backlog_door.door(cluster).backlogs(asked) if asked else {}
    except Unavailable as error:
        LOG.warning("groups have no lag in bytes: %s", error)
        found = {}
    return sized | {stretch: size for stretch, size in found.items() if stretch in wanted}


def _stretch(spot: Spot, spans: Mapping[Place, Span]) -> Stretch:
    return (*spot, spans[spot[0], spot[1]].end)


def _looks(spots: Sequence[Spot]) -> Iterator[dict[Place, int]]:
    """In each, one offset of a partition, and not too many partitions."""
    left = list(spots)
    while left:
        positions: dict[Place, int] = {}
        later = []
        for topic, number, offset in left:
            if (topic, number) in positions or len(positions) == DATED_AT_ONCE:
                later.append((topic, number, offset))
            else:
                positions[topic, number] = offset
        yield positions
        left = later


def _lag(spots: Sequence[tuple[int, Spot]], dated: Mapping[Spot, int]) -> Lag:
    """The oldest of those that are known, as a page has it."""
    stamps = [dated[spot] for _, spot in spots if spot in dated]
    known = [stamp for stamp in stamps if stamp not in (NOTHING_LEFT, UNDATED)]
    is_whole = len(stamps) == len(spots) and UNDATED not in stamps
    nothing = is_whole and not known
    return Lag(sum(left for left, _ in spots), NOTHING_LEFT if nothing else min(known, default=None), is_whole)


def _size(spots: Sequence[tuple[int, Spot]], spans: Mapping[Place, Span], sized: Mapping[Stretch, int]) -> int | None:
    sizes = [sized.get(_stretch(spot, spans)) for _, spot in spots]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _by_topic(spots: Sequence[tuple[int, Spot]], dated: Mapping[Spot, int]) -> dict[str, Lag]:
    found: defaultdict[str, list[tuple[int, Spot]]] = defaultdict(list)
    for each in spots:
        found[each[1][0]].append(each)
    return {topic: _lag(some, dated) for topic, some in found.items()}


def _with_parts(
    lags: Mapping[str, Lag],
    spots: Sequence[tuple[int, Spot]],
    spans: Mapping[Place, Span],
    sized: Mapping[Stretch, int],
) -> dict[str, Lag]:
    parts: defaultdict[str, list[Part]] = defaultdict(list)
    for left, spot in spots:
        stretch = _stretch(spot, spans)
        parts[spot[0]].append(Part(spot[1], left, sized.get(stretch), stretch[3]))
    return {topic: replace(lag, parts=tuple(parts[topic])) for topic, lag in lags.items()}
