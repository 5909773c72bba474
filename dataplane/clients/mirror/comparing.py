"""Whether the target has what the sources have: every message, in order, read from both sides.

Compared are key, value, and headers but for a mirror's mark; times are not, for the target may stamp messages itself. It begins
where both sides still have messages: at the first segment of the offset map, or later where the source has deleted more by now.
It ends before the first transaction that is open at the source: nobody knows yet whether that will be copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from dataplane.clients.cluster import Cluster
from dataplane.clients.fetching import EARLIEST_TIME, Place, offset_in
from dataplane.clients.messages import Message, MessageAndOffset
from dataplane.clients.mirror.checkpoints import Checkpoint, Key
from dataplane.clients.mirror.config import Source
from dataplane.clients.mirror.copying import MARK
from dataplane.clients.mirror.offset_map import OffsetMap
from dataplane.clients.mirror.reading import Reading
from dataplane.clients.mirror.recovery import is_same


@dataclass(frozen=True)
class Compared:
    """Of one partition; `difference` is None where both have the same."""

    source: str
    topic: str
    partition: int
    messages: int
    difference: str | None
    open_from: int | None = None  # where a transaction of the source begins that is open, and was not waited for

    def __str__(self) -> str:
        what = "equal" if self.difference is None else f"DIFFERENT: {self.difference}"
        if self.open_from is not None:
            what += f"; from offset {self.open_from} of the source on a transaction is open"
        return f"{self.source} {self.topic}-{self.partition}: {self.messages} messages, {what}"


def compare(
    source: Source, from_: Cluster, to: Cluster, topics: Mapping[str, int], checkpoints: Mapping[Key, Checkpoint]
) -> Iterator[Compared]:
    """One partition after the other. Raises ClientError."""
    for topic, count in sorted(topics.items()):
        for partition in range(count):
            found = checkpoints.get(Key(source.name, topic, partition))
            yield _partition(source, from_, to, (topic, partition), found)


def _partition(source: Source, from_: Cluster, to: Cluster, place: Place, found: Checkpoint | None) -> Compared:
    into = source.prefix + place[0], place[1]
    begin, begin_there = _beginnings(from_, place, found)
    ours = Reading(from_, place, begin, committed_only=True)
    theirs = Reading(to, into, begin_there, committed_only=True)
    count = 0
    for left, right in zip_longest(ours, theirs):
        difference = _difference(left, right)
        if difference is not None:
            return Compared(source.name, *place, count, difference)
        count += 1
    return Compared(source.name, *place, count, None, ours.open_from)


def _beginnings(from_: Cluster, place: Place, found: Checkpoint | None) -> tuple[int, int | None]:
    first = offset_in(from_, place, EARLIEST_TIME)
    if found is None or not found.segments:
        return first, None
    begin = max(first, found.segments[0].source)
    return begin, OffsetMap(found.segments).translated(begin)


def _difference(left: MessageAndOffset | None, right: MessageAndOffset | None) -> str | None:
    if left is None:
        return f"the target has more, from offset {right.offset} on" if right is not None else None
    if right is None:
        return f"the target ends before offset {left.offset} of the source"
    if not is_same(_unmarked(left.message), _unmarked(right.message)):
        return f"offset {left.offset} of the source is not offset {right.offset} of the target"
    return None


def _unmarked(message: Message) -> Message:
    headers = tuple(one for one in message.headers if one[0] != MARK)
    return Message(message.value, message.key, headers, message.timestamp)
