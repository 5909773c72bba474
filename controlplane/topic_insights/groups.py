"""The consumer groups that read a topic: how far behind each is there, and whether retention has overtaken it, or is about to.

A group's offsets are its coordinator's, so all groups of the instance are asked about, up to MOST_GROUPS, those with members
before the others: of an instance with more it is said how many nobody has looked at.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from controlplane.core.errors import Unavailable
from controlplane.kafka import backlog_door, groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.backlog_door import Stretch
    from controlplane.kafka.group_door import Place, Span
    from controlplane.kafka.groups import Group

LOG = logging.getLogger(__name__)
MOST_GROUPS = 300
NEAR = 0.8
"""Of the time that records are kept: what is older than this and not read yet may be deleted before it is."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A group that has an offset in the topic, or a member that reads it."""

    group: str
    state: str
    members: int  # that read some partition of it
    lag: int | None  # records; None: it has no offset there, or no end is known
    lost: int  # records that were deleted before it read them
    is_near_retention: bool
    lag_bytes: int | None = None  # about, as `kafka.backlog_door` has it; None: not known of some partition


class Readers(NamedTuple):
    """Of a topic, those that are furthest behind first; and how many groups of the instance were not looked at."""

    shown: list[Reader]
    more_groups: int = 0


def readers_of(
    cluster: ClusterAddress,
    instance_id: str,
    topic: str,
    spans: Mapping[Place, Span],
    deadlines: Mapping[Place, int | None],
) -> Readers:
    """By how far behind they are. `deadlines` are as `_is_near` has them. Raises ClusterUnavailable."""
    listed = groups.list_all(cluster, instance_id)
    first = sorted(listed, key=lambda group: (group.state in (groups.EMPTY, groups.DEAD), group.name))[:MOST_GROUPS]
    names = [group.name for group in first]
    read = groups.read(cluster, instance_id, names)
    sizes = _sizes(cluster, instance_id, [stretch for group in read for stretch in _stretches(group, topic, spans)])
    found = [_reader(group, topic, spans, deadlines, sizes) for group in read]
    shown = sorted((each for each in found if each is not None), key=lambda each: (-(each.lag or 0), each.group))
    return Readers(shown, len(listed) - len(names))


def _stretches(group: Group, topic: str, spans: Mapping[Place, Span]) -> list[Stretch]:
    """From where it would read on, of partitions of the topic in which something is left."""
    return [
        (*place, max(offset, spans[place].start), spans[place].end)
        for place, offset in group.committed.items()
        if place[0] == topic and place in spans and max(offset, spans[place].start) < spans[place].end
    ]


def _sizes(cluster: ClusterAddress, instance_id: str, stretches: Sequence[Stretch]) -> Mapping[Stretch, int]:
    try:
        return backlog_door.read(cluster, instance_id, stretches) if stretches else {}
    except Unavailable as error:  # who reads it is known all the same
        LOG.info("groups are shown without their lag in bytes: %s", error)
        return {}


def _reader(
    group: Group,
    topic: str,
    spans: Mapping[Place, Span],
    deadlines: Mapping[Place, int | None],
    sizes: Mapping[Stretch, int],
) -> Reader | None:
    offsets = {place: offset for place, offset in group.committed.items() if place[0] == topic}
    members = sum(any(name == topic for name, _ in member.partitions) for member in group.described.members)
    if not offsets and not members:
        return None
    known = [(place, offset, spans[place]) for place, offset in offsets.items() if place in spans]
    lag = sum(max(0, span.end - max(offset, span.start)) for _, offset, span in known)
    left = [sizes.get(stretch) for stretch in _stretches(group, topic, spans)]
    sized = [size for size in left if size is not None]
    return Reader(
        group.name,
        group.described.state,
        members,
        lag if known else None,
        sum(max(0, min(span.start, span.end) - offset) for _, offset, span in known),
        any(_is_near(place, offset, span, deadlines) for place, offset, span in known),
        sum(sized) if known and len(sized) == len(left) else None,
    )


def _is_near(place: Place, offset: int, span: Span, deadlines: Mapping[Place, int | None]) -> bool:
    """`deadlines`: the first record that is younger than NEAR of retention; None: none is. What is absent is not known."""
    position = max(offset, span.start)
    if position >= span.end or place not in deadlines:
        return False
    deadline = deadlines[place]
    return deadline is None or position < deadline


def near_ms(retention: str | None, policy: str | None, now_ms: int) -> int | None:
    """The moment, in ms, before which a record is near its end; None: records do not end by age. Pure."""
    if retention is None or policy is None or "delete" not in policy.split(","):
        return None
    try:
        kept_ms = int(retention)
    except ValueError:
        return None
    return None if kept_ms < 0 else now_ms - int(kept_ms * NEAR)
