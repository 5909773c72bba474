"""Whether the target has what the sources have: every message, in order, read from both sides.

Compared are key, value, headers but for a mirror's mark, and times, unless the target stamps messages itself
(`message.timestamp.type=LogAppendTime`), where it is left out, or the source has none (before Kafka 0.10). Each side has a
count and a *digest* of its own, which are the proof; they are the same for both, or the first message is told that differs.

    digest    SHA-256 of, for each message: key, value, number of headers, name and value of each, time in ms
              bytes and names   length int32, then the bytes; length -1: null
              numbers           headers int32, time int64; all of it big-endian. Without times: no time

It begins where both sides still have messages: at the first one of the offset map that both have, or at both beginnings where no
checkpoint is. What was copied and has been deleted in the target since (retention, DeleteRecords) is not compared, and that is
told: the rest may be equal, the whole is not proved to be. It ends before the first transaction that is open at the source:
nobody knows yet whether that will be copied.

Where a topic is compacted, each side compacts on its own: what is gone on one side only is a difference.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import BrokerError
from dataplane.clients.fetching import EARLIEST_TIME, Place, offset_in
from dataplane.clients.messages import NO_TIMESTAMP, Message, MessageAndOffset
from dataplane.clients.mirror import admin
from dataplane.clients.mirror.checkpoints import Checkpoint, Key
from dataplane.clients.mirror.config import Source, Target
from dataplane.clients.mirror.offset_map import OffsetMap
from dataplane.clients.mirror.putting import MARK
from dataplane.clients.mirror.reading import Reading
from dataplane.protocol.errors import ErrorCode

_int32, _int64 = struct.Struct(">i").pack, struct.Struct(">q").pack
_SHOWN = 16  # hexadecimal digits of a digest, of 64


@dataclass(frozen=True)
class LeftOut:
    """What the source has, was copied, and the target has lost: offsets of the source, and where the target begins by now."""

    first: int
    last: int
    target_begins: int

    def __str__(self) -> str:
        return f"not compared from {self.first} to {self.last}: the target begins at {self.target_begins}"


@dataclass(frozen=True)
class Compared:
    """Of one partition; `difference` is None where both have the same."""

    source: str
    topic: str
    partition: int
    messages: int
    messages_there: int
    digest: str
    digest_there: str
    difference: str | None
    has_times: bool = True  # they were compared
    open_from: int | None = None  # where a transaction of the source begins that is open, and was not waited for
    left_out: LeftOut | None = None

    def __str__(self) -> str:
        where = f"{self.source} {self.topic}-{self.partition}"
        if self.difference is None:
            what = f"{self.messages} messages, equal, sha256 {self.digest[:_SHOWN]}"
            if self.left_out is not None:
                what = f"NOT ALL COMPARED: {self.left_out}; behind it {what}"
        else:
            counts = f"{self.messages} messages, {self.messages_there} in the target"
            digests = f"sha256 {self.digest[:_SHOWN]}, {self.digest_there[:_SHOWN]} in the target"
            what = f"{counts}, DIFFERENT: {self.difference}; {digests}"
            if self.left_out is not None:
                what += f"; {self.left_out}"
        if not self.has_times:
            what += "; times are not compared: the target stamps messages itself"
        if self.open_from is not None:
            what += f"; from offset {self.open_from} of the source on a transaction is open"
        return f"{where}: {what}"


class Digest:
    """Of one side; see the file's text."""

    def __init__(self, *, has_times: bool = True) -> None:
        self._has_times = has_times
        self._sum = hashlib.sha256()
        self.count = 0

    def add(self, message: Message) -> None:
        """The next one."""
        parts = [*_sized(message.key), *_sized(message.value), _int32(len(message.headers))]
        for name, value in message.headers:
            parts += [*_sized(name.encode()), *_sized(value)]
        if self._has_times:
            parts.append(_int64(message.timestamp))
        self._sum.update(b"".join(parts))
        self.count += 1

    @property
    def text(self) -> str:
        """Hexadecimal."""
        return self._sum.hexdigest()


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (_int32(-1),) if data is None else (_int32(len(data)), data)


@dataclass(frozen=True)
class Sides:
    """What is compared, and how it is reached."""

    source: Source
    target: Target
    from_: Cluster
    to: Cluster

    def is_copied(self, message: Message) -> bool:
        """Of the source: what came from the target stays where it is."""
        return (MARK, self.target.name.encode()) not in message.headers

    def is_copy(self, message: Message) -> bool:
        """Of the target: where messages are marked, it has others beside those of this source."""
        return not self.source.mark or (MARK, self.source.name.encode()) in message.headers


def compare(sides: Sides, topics: Mapping[str, int], checkpoints: Mapping[Key, Checkpoint]) -> Iterator[Compared]:
    """One partition after the other, of topics with their numbers of partitions at the source. Raises ClientError."""
    name = sides.source.name
    for topic, count in sorted(topics.items()):
        into = sides.source.prefix + topic
        there = _partitions(sides.to, into)
        has_times = not there or not _stamps_itself(sides.to, into)
        for partition in range(max(count, there)):
            place = topic, partition
            found = checkpoints.get(Key(name, topic, partition))
            if partition >= there:
                yield _judged(sides, place, Reading(sides.from_, place), (), "the target has no such partition")
            elif partition >= count:
                yield _judged(sides, place, (), Reading(sides.to, (into, partition)), has_times=has_times)
            else:
                begin, begin_there, left_out = _beginnings(sides, place, (into, partition), found)
                ours = Reading(sides.from_, place, begin)
                judged = _judged(
                    sides, place, ours, Reading(sides.to, (into, partition), begin_there), has_times=has_times
                )
                yield replace(judged, left_out=left_out)


def _partitions(cluster: Cluster, topic: str) -> int:
    try:
        return len(cluster.topic(topic).partitions)
    except BrokerError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return 0
        raise


def _stamps_itself(cluster: Cluster, topic: str) -> bool:
    return admin.setting_of(cluster, topic, "message.timestamp.type") == "LogAppendTime"


def _judged(
    sides: Sides,
    place: Place,
    source: Iterable[MessageAndOffset],
    target: Iterable[MessageAndOffset],
    difference: str | None = None,
    *,
    has_times: bool = True,
) -> Compared:
    ours, theirs = Digest(has_times=has_times), Digest(has_times=has_times)
    copied = (one for one in source if sides.is_copied(one.message))
    copies = (one for one in target if sides.is_copy(one.message))
    for left, right in zip_longest(copied, copies):
        if left is not None:
            ours.add(_unmarked(left.message))
        if right is not None:
            theirs.add(_unmarked(right.message, without_time=left is not None and left.message.timestamp < 0))
        if difference is None:
            difference = _difference(left, right, has_times=has_times)
    if difference is None and ours.text != theirs.text:
        difference = "the digests differ"  # what the eye above has not seen
    open_from = source.open_from if isinstance(source, Reading) else None
    digests = ours.text, theirs.text
    return Compared(sides.source.name, *place, ours.count, theirs.count, *digests, difference, has_times, open_from)


def _beginnings(
    sides: Sides, place: Place, into: Place, found: Checkpoint | None
) -> tuple[int, int | None, LeftOut | None]:
    first, first_there = offset_in(sides.from_, place, EARLIEST_TIME), offset_in(sides.to, into, EARLIEST_TIME)
    if found is None or not found.segments:
        return first, None, None
    offsets, behind = OffsetMap(found.segments), max(first, found.source_offset)
    begin, begin_there = offsets.in_both(first, first_there) or (behind, max(first_there, found.target_offset))
    whole, _ = offsets.in_both(first, 0) or (behind, 0)  # where it began if the target had everything
    left_out = LeftOut(whole, begin - 1, first_there) if begin > whole else None
    return begin, begin_there, left_out


def _difference(left: MessageAndOffset | None, right: MessageAndOffset | None, *, has_times: bool) -> str | None:
    if left is None:
        return f"the target has more, from offset {right.offset} on" if right is not None else None
    if right is None:
        return f"the target ends before offset {left.offset} of the source"
    ours, theirs = left.message, right.message
    places = f"offset {left.offset} of the source is not offset {right.offset} of the target"
    for what in ("key", "value"):
        if getattr(ours, what) != getattr(theirs, what):
            return f"{places}: another {what}"
    if _headers(ours) != _headers(theirs):
        return f"{places}: other headers"
    if has_times and 0 <= ours.timestamp != theirs.timestamp:
        return f"{places}: time {ours.timestamp} there, {theirs.timestamp} here"
    return None


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(one for one in message.headers if one[0] != MARK)


def _unmarked(message: Message, *, without_time: bool = False) -> Message:
    return Message(message.value, message.key, _headers(message), NO_TIMESTAMP if without_time else message.timestamp)
