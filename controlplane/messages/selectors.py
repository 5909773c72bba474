"""Reading messages, within an organisation: a page of them, or one whole.

What a look costs is bounded: MOST_RECORDS, MOST_BYTES and MOST_S of reading, and the answer says how far it came. The bytes
are the instance's own: brokers charge them to its bandwidth, and who has used it up waits as its consumers do
(`BandwidthUsedUp`).

A role that may not read is shown where messages are and how large. It may not filter either: whether something is found
would say what is written there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from controlplane.api import pagination
from controlplane.core.errors import ClusterUnavailable, Forbidden, Invalid, NotFound
from controlplane.instances.selectors import instance_get, refuse_isolated
from controlplane.kafka import groups, message_door
from controlplane.kafka.message_door import Room
from controlplane.kafka.topics import names_of
from controlplane.messages import cutting, debts
from controlplane.messages.cursors import MOST_PARTITIONS
from controlplane.messages.looking import Direction, Filter, Look, Position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.group_door import Span
    from controlplane.kafka.message_door import Message, Reader
    from controlplane.messages.cutting import Shown
    from controlplane.messages.looking import Looked
    from controlplane.tenants.models import Organisation

DEFAULT_LIMIT, MOST = 20, pagination.MOST
"""Messages a page: as CKafka has it, and at most."""
PAGE_BYTES = 2**20
"""Of keys, values and headers in one page."""
MOST_RECORDS = 5_000
MOST_BYTES = 8 * 2**20
MOST_S = 4.0
"""What one look reads, whatever it finds. With what is asked before it, an answer takes some 10 s at most."""


class Start(StrEnum):
    """Where to begin, if neither an offset nor a time is said."""

    NEWEST = "newest"  # and on to older ones
    OLDEST = "oldest"  # and on to newer ones
    END = "end"  # what is yet to come


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody asks for. `position` is of a page before, and begins there whatever else is said."""

    partition: int | None = None  # None: all of them
    start: Start = Start.NEWEST
    offset: int | None = None  # of `partition`, and on to newer ones
    timestamp_ms: int | None = None  # the first message of that time or later, and on to newer ones
    position: Position | None = None
    filter: Filter = field(default_factory=Filter)
    limit: int = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class Place:
    """What a look did in one partition, which holds offsets from `first_offset` to before `end_offset`."""

    partition: int
    first_offset: int
    end_offset: int
    from_offset: int
    to_offset: int


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """Messages in the order in which they were looked for."""

    messages: list[Shown]
    direction: Direction
    partitions: int  # of the topic
    records: int  # looked at
    bytes: int
    places: list[Place]
    unavailable: list[int]  # partitions that have no leader now
    older: Position  # goes on before this page
    newer: Position  # and behind it
    has_more: bool  # in `direction`
    is_masked: bool

    @property
    def following(self) -> Position | None:
        """The next page in the same direction; None: there is nothing more now."""
        return (self.older if self.direction is Direction.OLDER else self.newer) if self.has_more else None


def messages_page(
    *, organisation: Organisation, instance_id: str, topic: str, wanted: Wanted, may_read: bool
) -> MessagesPage:
    """A page. Raises NotFound, Conflict, Invalid (offset_out_of_range), Forbidden, BandwidthUsedUp, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    refuse_isolated(instance)  # nobody consumes, this way neither
    check_topic(instance, topic)
    if not may_read and not wanted.filter.takes_everything:
        raise Forbidden("your role may not read messages, and so not search in them either")
    debts.check_paid(instance.id)
    with _reader(instance, topic) as reader:
        partitions = reader.partitions()
        chosen = _chosen(wanted, partitions)
        spans = spans_of(instance, topic, chosen)
        start = _start(instance, topic, wanted, spans)
        room = Room(MOST_RECORDS, MOST_BYTES, time.monotonic() + MOST_S)
        look = Look(start, spans, wanted.filter, wanted.limit, room)
        looked = look.through(reader)
        debts.keep(instance.id, reader.wait_s)
    if not look.has_moved and not looked.is_over:
        raise ClusterUnavailable("the brokers did not send messages in time")
    return _page(looked, spans, chosen, partitions, may_read=may_read)


def message_get(
    *, organisation: Organisation, instance_id: str, topic: str, partition: int, offset: int, may_read: bool
) -> Shown:
    """One message, whole. Raises NotFound (message_not_found), Conflict, Invalid, BandwidthUsedUp, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    refuse_isolated(instance)  # nobody consumes, this way neither
    check_topic(instance, topic)
    debts.check_paid(instance.id)
    with _reader(instance, topic) as reader:
        _chosen(Wanted(partition=partition), reader.partitions())
        span = spans_of(instance, topic, [partition])[partition]
        found: Sequence[Message] = ()
        if span.start <= offset < span.end:
            room = Room(1, MOST_BYTES, time.monotonic() + MOST_S)
            taken = reader.read({partition: (offset, offset + 1)}, room)[partition]
            debts.keep(instance.id, reader.wait_s)
            if taken.upto <= offset:
                raise ClusterUnavailable("the broker did not send the message in time")
            found = taken.messages
    if not found:
        raise NotFound(
            f"there is no message at offset {offset} of partition {partition}, which holds {_held(span)}",
            code="message_not_found",
            members={"first_offset": span.start, "end_offset": span.end},
        )
    return cutting.whole(found[0]) if may_read else cutting.masked(found[0])


def check_topic(instance: Instance, topic: str) -> None:
    """Raises NotFound where the instance has no such topic, with the words in which it is said everywhere."""
    if topic not in groups.topic_names(instance.cluster.address, instance.id):
        raise NotFound(f"no topic {topic}", code="topic_not_found")


def spans_of(instance: Instance, topic: str, partitions: Sequence[int]) -> dict[int, Span]:
    """What these partitions hold, without those that have no leader. Raises ClusterUnavailable where none has."""
    places = [(topic, partition) for partition in partitions]
    found = groups.spans(instance.cluster.address, instance.id, places)
    if not found:
        raise ClusterUnavailable(
            "no broker leads the partition now" if len(places) == 1 else "no partition has a leader now"
        )
    return {partition: span for (_, partition), span in found.items()}


def out_of_range(offset: int, partition: int, span: Span) -> Invalid:
    """What is said of an offset that a partition does not hold."""
    return Invalid(
        f"partition {partition} holds {_held(span)}: {offset} is not among them",
        code="offset_out_of_range",
        members={"first_offset": span.start, "end_offset": span.end},
    )


def no_partition(partition: int, partitions: int) -> Invalid:
    """What is said of a partition that a topic has not."""
    return Invalid.field("partition", f"the topic has no partition {partition}: it has {partitions}, from 0")


def _reader(instance: Instance, topic: str) -> Reader:
    return message_door.door(instance.cluster.address).reader(names_of(instance.id).topic_in(topic))


def _chosen(wanted: Wanted, partitions: int) -> list[int]:
    if wanted.position is not None:
        chosen = sorted(wanted.position.offsets)
    elif wanted.partition is not None:
        chosen = [wanted.partition]
    else:
        chosen = list(range(partitions))
    if chosen and chosen[-1] >= partitions:
        raise no_partition(chosen[-1], partitions)
    if len(chosen) > MOST_PARTITIONS:
        raise Invalid.field(
            "partition",
            f"name one: the topic has {partitions}, and {MOST_PARTITIONS} are looked through at once at most",
        )
    return chosen


def _start(instance: Instance, topic: str, wanted: Wanted, spans: Mapping[int, Span]) -> Position:
    if wanted.position is not None:
        return wanted.position
    if wanted.offset is not None:
        partition = wanted.partition
        if partition is None:
            raise Invalid.field("offset", "name the partition as well")
        span = spans[partition]
        if not span.start <= wanted.offset <= span.end:
            raise out_of_range(wanted.offset, partition, span)
        return Position(Direction.NEWER, {partition: wanted.offset})
    if wanted.timestamp_ms is not None:
        places = [(topic, partition) for partition in spans]
        at = groups.offsets_at(instance.cluster.address, instance.id, places, wanted.timestamp_ms)
        offsets = {partition: at.get((topic, partition)) for partition in spans}
        return Position(
            Direction.NEWER,
            {partition: spans[partition].end if offset is None else offset for partition, offset in offsets.items()},
        )
    if wanted.start is Start.OLDEST:
        return Position(Direction.NEWER, {partition: span.start for partition, span in spans.items()})
    direction = Direction.OLDER if wanted.start is Start.NEWEST else Direction.NEWER
    return Position(direction, {partition: span.end for partition, span in spans.items()})


def _page(
    looked: Looked, spans: Mapping[int, Span], chosen: Sequence[int], partitions: int, *, may_read: bool
) -> MessagesPage:
    direction = looked.position.direction
    begin, end = looked.started.offsets, looked.position.offsets
    older = Position(Direction.OLDER, end if direction is Direction.OLDER else begin)
    newer = Position(Direction.NEWER, begin if direction is Direction.OLDER else end)
    places = [
        Place(partition, span.start, span.end, begin[partition], end[partition])
        for partition, span in sorted(spans.items())
        if partition in begin
    ]
    shown = (
        cutting.page(looked.messages, PAGE_BYTES) if may_read else [cutting.masked(each) for each in looked.messages]
    )
    return MessagesPage(
        messages=shown,
        direction=direction,
        partitions=partitions,
        records=looked.records,
        bytes=looked.bytes,
        places=places,
        unavailable=[partition for partition in chosen if partition not in spans],
        older=older,
        newer=newer,
        has_more=not looked.is_over,
        is_masked=not may_read,
    )


def _held(span: Span) -> str:
    return (
        f"offsets from {span.start} to {span.end - 1}"
        if span.end > span.start
        else f"nothing; its next offset is {span.end}"
    )
