"""Reading messages, within an organisation: a page of them, or one whole.

What a look costs is bounded: MOST_RECORDS, MOST_BYTES and MOST_S of reading, and the answer says how far it came. The bytes
are the instance's own: brokers charge them to its bandwidth, and who has used it up waits as its consumers do
(`BandwidthUsedUp`).

A look that begins below a partition's first offset goes on in the table of a load that has these offsets, where there is one
(`expired`), if the caller takes messages from there.

A role that may not read is shown where messages are and how large. It may not filter either: whether something is found
would say what is written there.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from controlplane.api import pagination
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable, Forbidden, Invalid, NotFound
from controlplane.instances.selectors import instance_get, refuse_isolated
from controlplane.kafka import groups, message_door
from controlplane.kafka.message_door import Room
from controlplane.kafka.topics import names_of
from controlplane.messages import cutting, debts, window
from controlplane.messages.by_schema import BySchema, decoded
from controlplane.messages.expired import lake_of, telling
from controlplane.messages.looking import Direction, Filter, Look, Position
from controlplane.messages.sources import Both
from controlplane.schemas import values
from controlplane.schemas.decoding import LARGEST_BYTES, Part
from controlplane.schemas.selectors import decoders_of
from controlplane.schemas.values import Allowance

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from controlplane.instances.models import Instance
    from controlplane.kafka.group_door import Span
    from controlplane.kafka.message_door import Reader
    from controlplane.messages.by_schema import Decoders
    from controlplane.messages.cutting import Shown
    from controlplane.messages.expired import Lake
    from controlplane.messages.looking import Looked
    from controlplane.tenants.models import Organisation

DEFAULT_LIMIT, MOST = 20, pagination.MOST
"""Messages a page: as CKafka has it, and at most."""
PAGE_BYTES = 2**20
"""Of keys, values and headers in one page."""
MOST_RECORDS = 5_000
MOST_BYTES = 8 * 2**20
MOST_S = 4.0
"""What one look reads, whatever it finds. With what is asked before it, an answer takes some 10 s at most.

A page that is whole holds so many bytes as well: what one look found, and one message may be larger than what is left."""
MOST_DECODED_BYTES = MOST_BYTES + len(Part) * LARGEST_BYTES
"""What schemas read of a page that is whole: all that one look finds. A file cannot say of a message that there was no room."""
MOST_NAMED = 10
"""Partitions that a sentence names."""


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
class InLake:
    """What a load's table has of a partition below its first offset."""

    load: str
    first_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Place:
    """What a look did in one partition, which holds offsets from `first_offset` to before `end_offset`."""

    partition: int
    first_offset: int
    end_offset: int
    from_offset: int
    to_offset: int
    lake: InLake | None = None  # where the look went through it

    @property
    def oldest_offset(self) -> int:
        """The first that a look reaches."""
        return self.first_offset if self.lake is None else self.lake.first_offset


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """Messages in the order in which they were looked for."""

    messages: list[Shown]
    direction: Direction
    partitions: int  # of the topic
    records: int  # looked at
    bytes: int
    places: list[Place]
    unavailable: list[int]  # partitions that have no leader now: a later page has what they hold
    waiting: int  # partitions that have something to show, and of which a later page has it: there are too many for one
    older: Position  # goes on before this page
    newer: Position  # and behind it
    has_more: bool  # in `direction`
    is_masked: bool

    @property
    def has_lake(self) -> bool:
        """Whether some of it may be from a load's table."""
        return any(each.lake is not None for each in self.places)

    @property
    def following(self) -> Position | None:
        """The next page in the same direction; None: there is nothing more now, and every partition was asked."""
        onward = self.older if self.direction is Direction.OLDER else self.newer
        return onward if self.has_more or self.unavailable else None


def messages_page(
    *,
    organisation: Organisation,
    instance_id: str,
    topic: str,
    wanted: Wanted,
    may_read: bool,
    or_lake: bool = False,
    whole: bool = False,
) -> MessagesPage:
    """A page. `or_lake`: what has expired may come from a load's table, without any charge. `whole`: nothing is cut.

    Raises NotFound, Conflict, Invalid (offset_out_of_range), Forbidden, BandwidthUsedUp, ClusterUnavailable, Unavailable
    (lake_unavailable).
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    refuse_isolated(instance)  # nobody consumes, this way neither
    check_topic(instance, topic)
    if not may_read and not wanted.filter.takes_everything:
        raise Forbidden("your role may not read messages, and so not search in them either")
    may_be_lake = or_lake and (wanted.offset is not None or wanted.position is not None)
    if not may_be_lake:
        debts.check_paid(instance.id)
    with _reader(instance, topic) as reader, ExitStack() as stack:
        partitions = reader.partitions()
        chosen = _chosen(wanted, partitions)
        spans = spans_of(instance, topic, chosen)
        begun = _begun(instance, topic, wanted, chosen, spans)
        start = begun.position
        lake = None
        if may_be_lake:
            stack.enter_context(telling(lambda: _refusal(start, spans)))
            lake = stack.enter_context(lake_of(instance, topic, start, spans))
        if lake is None:
            if wanted.offset is not None and wanted.position is None:
                _check_held(start, spans)
            if may_be_lake:
                debts.check_paid(instance.id)
        decoders = decoders_of(instance, topic) if may_read else {}
        reading = BySchema(decoders) if decoders and wanted.filter.seeks_text else None
        # What schemas may not read any more would be charged, thrown away, and charged again on the next page.
        most_bytes = MOST_BYTES if reading is None else min(MOST_BYTES, values.MOST_BYTES)
        room = Room(MOST_RECORDS, most_bytes, time.monotonic() + MOST_S)
        look = Look(start, _within(spans, lake), wanted.filter, wanted.limit, room, reading)
        looked = look.through(reader if lake is None else _both(lake, reader, instance))
        debts.keep(instance.id, reader.wait_s)
    if not look.has_moved and not looked.is_over:
        raise ClusterUnavailable("the brokers did not send messages in time")
    goes_on = wanted.position is not None and start.direction is Direction.OLDER
    if begun.unavailable and goes_on and not looked.messages and looked.is_over and not begun.waiting:
        named = ", ".join(map(str, begun.unavailable[:MOST_NAMED]))  # whoever goes on asks again, and not at once
        raise ClusterUnavailable(f"nothing else is left to be shown, and these partitions have no leader now: {named}")
    page = _page(looked, spans, partitions, lake, decoders, may_read=may_read, whole=whole)
    return replace(
        page,
        unavailable=begun.unavailable,
        waiting=len(begun.waiting),
        has_more=page.has_more or bool(begun.waiting),
    )


def message_get(
    *,
    organisation: Organisation,
    instance_id: str,
    topic: str,
    partition: int,
    offset: int,
    may_read: bool,
    or_lake: bool = False,
) -> Shown:
    """One message, whole; `or_lake` as of a page.

    Raises NotFound (message_not_found), Conflict, Invalid, BandwidthUsedUp, ClusterUnavailable, Unavailable (lake_unavailable).
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    refuse_isolated(instance)  # nobody consumes, this way neither
    check_topic(instance, topic)
    if not or_lake:
        debts.check_paid(instance.id)
    with _reader(instance, topic) as reader, ExitStack() as stack:
        _chosen(Wanted(partition=partition), reader.partitions())
        span = spans_of(instance, topic, [partition])[partition]
        missing = _missing(offset, partition, span)
        lake = None
        if or_lake and offset < span.start:
            stack.enter_context(telling(lambda: missing))
            place = Position(Direction.NEWER, {partition: offset})
            lake = stack.enter_context(lake_of(instance, topic, place, {partition: span}))
        if lake is None:
            debts.check_paid(instance.id)
            if not span.start <= offset < span.end:
                raise missing
        room = Room(1, MOST_BYTES, time.monotonic() + MOST_S)
        source = reader if lake is None else lake.reader
        taken = source.read({partition: (offset, offset + 1)}, room)[partition]
        debts.keep(instance.id, reader.wait_s)
        if taken.upto <= offset:
            raise ClusterUnavailable("the broker did not send the message in time")
    if not taken.messages:
        raise missing
    message = taken.messages[0]
    if may_read:
        by_schema = decoded(message, decoders_of(instance, topic), Allowance())
        shown = replace(cutting.whole(message), decoded=by_schema)
    else:
        shown = cutting.masked(message)
    return shown if lake is None else replace(shown, load_id=lake.load_id)


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
        chosen = sorted({*wanted.position.offsets, *wanted.position.unseen})
    elif wanted.partition is not None:
        chosen = [wanted.partition]
    else:
        chosen = list(range(partitions))
    if chosen and chosen[-1] >= partitions:
        raise no_partition(chosen[-1], partitions)
    return chosen


class _Begun(NamedTuple):
    """Where a look begins, and the partitions that it does not go through: what they hold, later pages have."""

    position: Position
    waiting: list[int]  # there are too many
    unavailable: list[int]  # they have no leader now


def _asked(wanted: Wanted, chosen: Sequence[int]) -> Position:
    """What was asked for. Of a first look nobody has seen any partition, but for one whose offset is said."""
    if wanted.position is not None:
        return wanted.position
    if wanted.offset is not None:
        if wanted.partition is None:
            raise Invalid.field("offset", "name the partition as well")
        return Position(Direction.NEWER, {wanted.partition: wanted.offset})
    unseen = frozenset(chosen)
    if wanted.timestamp_ms is not None:
        return Position(Direction.NEWER, {}, unseen, wanted.timestamp_ms)
    if wanted.start is Start.OLDEST:
        return Position(Direction.NEWER, {}, unseen)
    direction = Direction.OLDER if wanted.start is Start.NEWEST else Direction.NEWER
    return Position(direction, {}, unseen, int(SYSTEM_CLOCK.now().timestamp() * 1000))


def _begun(instance: Instance, topic: str, wanted: Wanted, chosen: Sequence[int], spans: Mapping[int, Span]) -> _Begun:
    asked = _asked(wanted, chosen)
    is_at_end = wanted.position is None and wanted.timestamp_ms is None and wanted.start is not Start.OLDEST
    places = [(topic, partition) for partition in sorted(asked.unseen & spans.keys())]
    at: dict[int, int | None] = {}
    if is_at_end:  # as it is now, whatever timestamps producers write
        at = dict.fromkeys(spans)
    elif places and asked.since_ms:
        found = groups.offsets_at(instance.cluster.address, instance.id, places, asked.since_ms)
        at = {partition: offset for (_, partition), offset in found.items()}

    def ordered(partitions: Collection[int]) -> list[int]:
        if not is_at_end or asked.direction is Direction.NEWER:
            return sorted(partitions)
        newest = groups.newest(instance.cluster.address, instance.id, [(topic, each) for each in sorted(partitions)])
        return sorted(partitions, key=lambda each: (-(newest.get((topic, each)) or 0), each))

    begins = window.firsts(asked, spans, at)
    start, waiting = window.chosen(asked, spans, begins, ordered)
    silent = [each for each in chosen if each not in spans or (each in asked.unseen and each not in begins)]
    return _Begun(start, waiting, silent)


def _check_held(start: Position, spans: Mapping[int, Span]) -> None:
    for partition, offset in start.offsets.items():
        if not spans[partition].start <= offset <= spans[partition].end:
            raise out_of_range(offset, partition, spans[partition])


def _refusal(start: Position, spans: Mapping[int, Span]) -> Invalid:
    """What is said of a table that cannot be read."""
    partition, offset = next(iter(start.offsets.items()))
    sought = offset - 1 if start.direction is Direction.OLDER else offset
    return out_of_range(sought, partition, spans[partition])


def _missing(offset: int, partition: int, span: Span) -> NotFound:
    return NotFound(
        f"there is no message at offset {offset} of partition {partition}, which holds {_held(span)}",
        code="message_not_found",
        members={"first_offset": span.start, "end_offset": span.end},
    )


def _within(spans: Mapping[int, Span], lake: Lake | None) -> Mapping[int, Span]:
    """What a look goes through."""
    if lake is None:
        return spans
    partition = lake.below.partition
    return {partition: lake.below.span(spans[partition])}


def _both(lake: Lake, reader: Reader, instance: Instance) -> Both:
    return Both(lake.below, lake.reader, reader, lambda: debts.check_paid(instance.id))


def _page(
    looked: Looked,
    spans: Mapping[int, Span],
    partitions: int,
    lake: Lake | None,
    decoders: Decoders,
    *,
    may_read: bool,
    whole: bool,
) -> MessagesPage:
    direction = looked.position.direction
    begin, end = looked.started.offsets, looked.position.offsets
    is_older = direction is Direction.OLDER
    older = replace(looked.position, direction=Direction.OLDER, offsets=end if is_older else begin)
    newer = replace(looked.position, direction=Direction.NEWER, offsets=begin if is_older else end)
    in_lake = None if lake is None else InLake(lake.load_id, lake.below.first, lake.below.end)
    places = [
        Place(partition, span.start, span.end, begin[partition], end[partition], in_lake)
        for partition, span in sorted(spans.items())
        if partition in begin
    ]
    if not may_read:
        shown = [cutting.masked(each) for each in looked.messages]
    elif whole:
        shown = [cutting.whole(each) for each in looked.messages]
    else:
        shown = cutting.page(looked.messages, PAGE_BYTES)
    if decoders:
        allowance = Allowance(bytes_left=MOST_DECODED_BYTES) if whole else Allowance()
        pairs = zip(shown, looked.messages, strict=True)
        shown = [replace(each, decoded=decoded(message, decoders, allowance)) for each, message in pairs]
    if lake is not None:
        shown = [replace(each, load_id=lake.load_id) if each.offset < lake.below.end else each for each in shown]
    return MessagesPage(
        messages=shown,
        direction=direction,
        partitions=partitions,
        records=looked.records,
        bytes=looked.bytes,
        places=places,
        unavailable=[],
        waiting=0,
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
