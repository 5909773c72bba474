"""One look at a topic's messages: from positions towards older or newer ones, until there are enough or there is no room left.

Each partition has a sequence, its messages by falling or rising offset, and the look merges them by timestamp: the head of
the sequence with the newest (or oldest) timestamp comes next. Timestamps within a partition need not rise, since producers
write them; the sequence does not care. So what a page shows is a beginning of each partition's sequence, and a
`Position` (an offset for each partition) says where the rest begins: over pages no message is shown twice, and none is left out,
whatever was filtered and wherever a look had to stop. What is appended meanwhile lies on the newer side of every position.

A log can only be read forwards. Towards older messages it is read in stretches that end where the one before began: the first
is one offset long, each further one eight times as long, as far as the messages seen so far would fit into the room. A
stretch that there was no room to finish is dropped, since its newest messages are missing; the first one always finishes,
so every look gets on. Offsets without a message (compaction, marks of transactions) make stretches that bring nothing, and the
next one is longer.

Text is sought in bytes, and in what schemas make of them (`Reading`), which costs work that has an end as well. Where it is
used up the look ends before the message that it would have been needed for, and the next one begins there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from controlplane.kafka.group_door import Span
    from controlplane.kafka.message_door import Message, Reads, Room, Stretch, Taken

GROWTH = 8
LONGEST_STRETCH = 1_000_000
"""Offsets; where nearly all of them hold no message."""
UNDATED_MS = -1
"""A message without a timestamp is taken for older than all others."""


class Direction(StrEnum):
    """Which way a look goes."""

    OLDER = "older"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a look begins. OLDER: before these offsets. NEWER: from these offsets on."""

    direction: Direction
    offsets: Mapping[int, int]  # by partition
    # Partitions that no look has been through yet, since they had no leader or there were too many: they begin with the first
    # record of this moment or later, 0: with the oldest (`window`).
    unseen: frozenset[int] = frozenset()
    since_ms: int = 0


class Reading(Protocol):
    """What schemas make of messages: JSON in one line, as a list shows it."""

    def has_room_for(self, message: Message) -> bool:
        """Whether its key and value may still be read, whatever they turn out to be. Of a new one True for any message."""
        ...

    def key(self, message: Message) -> str:
        """Empty: there is no schema, or it does not fit."""
        ...

    def value(self, message: Message) -> str:
        """Empty: there is no schema, or it does not fit."""
        ...


@dataclass(frozen=True, slots=True)
class Filter:
    """What is shown of what is looked at; all of it has to fit."""

    key: bytes | None = None  # the whole key
    text: bytes | None = None  # contained in the value, or in what a schema makes of it
    key_part: bytes | None = None  # contained in the key, or in what a schema makes of it
    header: str | None = None  # the whole name of a header, or name=text: contained in the value of one with this name

    @property
    def takes_everything(self) -> bool:
        """Whether nothing is said."""
        return self.key is None and not self.seeks_text and self.header is None

    @property
    def seeks_text(self) -> bool:
        """Whether it depends on what schemas make of messages."""
        return self.text is not None or self.key_part is not None

    def takes(self, message: Message, reading: Reading | None = None) -> bool | None:
        """Whether a message fits; None: nobody knows, since it would have to be read by a schema and there is no room for it."""
        if self.key is not None and message.key != self.key:
            return False
        if self.header is not None and not self._has_header(message, self.header):
            return False
        in_key, in_value = _is_in(self.key_part, message.key), _is_in(self.text, message.value)
        if reading is None or (in_key and in_value):
            return in_key and in_value
        if not reading.has_room_for(message):
            return None
        in_key = in_key or _text(self.key_part) in reading.key(message)
        return in_key and (in_value or _text(self.text) in reading.value(message))

    @staticmethod
    def _has_header(message: Message, wanted: str) -> bool:
        name, equals, text = wanted.partition("=")
        return any(
            each == wanted or (equals and each == name and text.encode() in (value or b""))
            for each, value in message.headers
        )


def _is_in(text: bytes | None, content: bytes | None) -> bool:
    """Nothing that is sought is in anything."""
    return text is None or (content is not None and text in content)


def _text(sought: bytes | None) -> str:
    """Bytes that are no text become what no JSON holds: half of a surrogate pair."""
    return (sought or b"").decode(errors="surrogateescape")


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look has done."""

    messages: tuple[Message, ...]  # in the order of the look
    records: int  # looked at, whether they fit or not
    bytes: int  # of keys, values and headers of these
    started: Position
    position: Position  # where the next look in this direction begins
    is_over: bool  # there is nothing more in this direction now


class _Sequence:
    """One partition's side of a look."""

    def __init__(self, partition: int, direction: Direction, start: int, span: Span, first_size: int) -> None:
        self.partition = partition
        self._is_older = direction is Direction.OLDER
        self.at = min(max(start, span.start), span.end)
        self.started = self.at
        self._bound = span.start if self._is_older else span.end
        self._size = first_size
        self._is_dense = True  # the last stretch had a message at most of its offsets
        self.found: deque[Message] = deque()  # what fits and is not shown yet, in the order of the look

    @property
    def is_exhausted(self) -> bool:
        """Whether everything was looked at; some of it may not be shown yet."""
        return self.at == self._bound

    @property
    def is_over(self) -> bool:
        return self.is_exhausted and not self.found

    @property
    def is_hungry(self) -> bool:
        """Whether nobody knows what comes next in it."""
        return not self.found and not self.is_exhausted

    @property
    def position(self) -> int:
        """The rest begins here."""
        if not self.found:
            return self.at
        return self.found[0].offset + (1 if self._is_older else 0)

    def stretch(self, most: int) -> Stretch:
        """What to read next; `most`: messages."""
        size = min(self._size, most) if self._is_dense else self._size
        if self._is_older:
            return max(self._bound, self.at - size), self.at
        return self.at, min(self._bound, self.at + size)

    def take(self, wanted: Stretch, taken: Taken, fits: Callable[[Message], bool | None]) -> list[Message] | None:
        """What was looked at; None: it has not got on. Of what nobody knows whether it fits, and behind it, nothing counts.

        On the way to older messages a stretch counts only if it was read to its end.
        """
        first, end = wanted
        messages: Iterable[Message] = reversed(taken.messages) if self._is_older else taken.messages
        if taken.upto < end if self._is_older else taken.upto <= first:
            return None
        seen: list[Message] = []
        for message in messages:
            does_fit = fits(message)
            if does_fit is None:
                at = message.offset + (1 if self._is_older else 0)
                has_moved, self.at = at != self.at, at
                return seen if has_moved else None
            if does_fit:
                self.found.append(message)
            seen.append(message)
        self.at = first if self._is_older else taken.upto
        self._is_dense = 2 * len(taken.messages) >= end - first
        self._size = min(self._size * GROWTH, LONGEST_STRETCH)
        return seen


class Look:
    """From `start` on, through the partitions that it names and `spans` knows. `limit`: how many messages are wanted.

    `reading`: what schemas make of messages, where text is sought in that as well.
    """

    def __init__(
        self,
        start: Position,
        spans: Mapping[int, Span],
        wanted: Filter,
        limit: int,
        room: Room,
        reading: Reading | None = None,
    ) -> None:
        self._start, self._direction, self._wanted, self._limit, self._room = (
            start,
            start.direction,
            wanted,
            limit,
            room,
        )
        first_size = 1 if start.direction is Direction.OLDER else limit
        self._sequences = [
            _Sequence(partition, start.direction, offset, spans[partition], first_size)
            for partition, offset in sorted(start.offsets.items())
            if partition in spans
        ]
        self._without = {partition: offset for partition, offset in start.offsets.items() if partition not in spans}
        self._shown: list[Message] = []
        self._records = self._bytes = 0
        self._reading = reading
        self._is_read_out = False  # a message came for which the reading has no room
        self.has_moved = False

    def through(self, reader: Reads) -> Looked:
        """Look, and say what was found. Raises ClusterUnavailable."""
        while True:
            if not any(sequence.is_hungry for sequence in self._sequences):
                self._show_next()
                if len(self._shown) >= self._limit or all(sequence.is_over for sequence in self._sequences):
                    break
            elif self._room.is_used_up or self._is_read_out:
                break
            else:
                self._read(reader)
        # Where the room did not suffice to know what comes next everywhere, what is known is shown all the same: not in order
        # with what was not reached, but nothing of it is lost.
        while len(self._shown) < self._limit and self._show_one():
            pass
        return self._looked()

    def _show_next(self) -> None:
        """In order, for as long as each partition's next message is known."""
        while len(self._shown) < self._limit and not any(sequence.is_hungry for sequence in self._sequences):
            if not self._show_one():
                return

    def _show_one(self) -> bool:
        heads = [sequence for sequence in self._sequences if sequence.found]
        if not heads:
            return False
        first = min if self._direction is Direction.NEWER else max
        best = first(heads, key=_age)
        self._shown.append(best.found.popleft())
        return True

    def _read(self, reader: Reads) -> None:
        hungry = [sequence for sequence in self._sequences if sequence.is_hungry]
        most = self._most_of_each(len(hungry))
        wanted = {sequence.partition: sequence.stretch(most) for sequence in hungry}
        read = reader.read(wanted, self._room)
        for sequence in hungry:
            seen = sequence.take(wanted[sequence.partition], read[sequence.partition], self._fits)
            if seen is not None:
                self.has_moved = True
                self._records += len(seen)
                self._bytes += sum(message.size for message in seen)

    def _fits(self, message: Message) -> bool | None:
        found = self._wanted.takes(message, self._reading)
        self._is_read_out = self._is_read_out or found is None
        return found

    def _most_of_each(self, partitions: int) -> int:
        """Messages that are of use in each, and for which there is room, if they are as large as those before."""
        room = self._room
        most = room.messages // partitions
        if self._wanted.takes_everything:
            most = min(most, self._limit)
        if self._bytes:
            most = min(most, room.bytes * self._records // self._bytes // partitions)
        return max(1, most)

    def _looked(self) -> Looked:
        position = {sequence.partition: sequence.position for sequence in self._sequences} | self._without
        started = {sequence.partition: sequence.started for sequence in self._sequences} | self._without
        return Looked(
            tuple(self._shown),
            self._records,
            self._bytes,
            replace(self._start, offsets=started),
            replace(self._start, offsets=position),
            all(sequence.is_over for sequence in self._sequences),
        )


def _age(sequence: _Sequence) -> tuple[int, int]:
    head = sequence.found[0]
    return (UNDATED_MS if head.timestamp_ms is None else head.timestamp_ms, sequence.partition)
