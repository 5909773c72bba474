"""Messages as clients have them, and as bytes: read in any of Kafka's three formats, written in the one that a broker takes.

A fetch brings whole entries of a log: messages of format 0 or 1 (wrapped, where they are compressed) or batches of format 2,
which may stand beside each other in one answer. Every CRC is checked. What comes before the offset that was asked
for is passed over, as are control batches and, where only committed messages are wanted, those of aborted
transactions; `next_offset` is past them all. The last entry may be cut off.

Which format a broker takes follows from the version of Produce: 0 and 1 take format 0, 2 takes format 1, later ones
format 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from dataplane.clients.errors import CorruptMessageError, UnsupportedError
from dataplane.clients.moving import MovedRecord, read_moved
from dataplane.protocol.messages.fetch import AbortedTransaction
from dataplane.records import compression
from dataplane.records.batch import Record, build_batch, check_stored, read_records
from dataplane.records.compression import Buffer
from dataplane.records.control import Marker, read_marker
from dataplane.records.header import LENGTH_AT, LENGTH_END, MAGIC, MAGIC_AT, BatchHeader, CorruptBatchError, read_header
from dataplane.records.legacy import Message as OldMessage
from dataplane.records.legacy import read_message_set, write_message_set

Headers = tuple[tuple[str, bytes | None], ...]


class Sized(Protocol):
    """What has a size in bytes."""

    @property
    def size(self) -> int:
        """At most, uncompressed."""
        ...


T = TypeVar("T", bound=Sized)
NO_TIMESTAMP = -1
_LARGEST_UNPACKED = 2**28
_ZSTD_SINCE = 7  # of Produce
_OVERHEAD = 96  # of a message beside key and value, in any format: more than any of them has


@dataclass(frozen=True, slots=True)
class Message:
    """One message without its place. `timestamp` in ms; NO_TIMESTAMP: the time of sending, or none in format 0."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP

    @property
    def size(self) -> int:
        """Bytes that it takes at most, uncompressed."""
        if not self.headers:
            return _OVERHEAD + len(self.key or b"") + len(self.value or b"")
        named = sum(len(name.encode()) + len(value or b"") + 10 for name, value in self.headers)
        return _OVERHEAD + len(self.key or b"") + len(self.value or b"") + named


@dataclass(frozen=True, slots=True)
class MessageAndOffset:
    """A message as it stands in its partition."""

    message: Message
    offset: int

    @property
    def next_offset(self) -> int:
        """Where to go on after it."""
        return self.offset + 1

    @property
    def size(self) -> int:
        """Of the message."""
        return self.message.size


@dataclass(frozen=True, slots=True)
class Entries:
    """What was read of one partition: messages in order, and where to go on."""

    messages: tuple[MessageAndOffset, ...]
    next_offset: int
    is_cut: bool  # there were bytes, and not even one whole entry: ask for more


@dataclass(frozen=True, slots=True)
class RawEntries:
    """The same, of records that were not taken apart."""

    records: list[MovedRecord]
    next_offset: int
    is_cut: bool


# --- reading ----------------------------------------------------------------------------------------------------------


def read_entries(buffer: Buffer, offset: int, aborted: Sequence[AbortedTransaction] | None = None) -> Entries:
    """From `offset` on. `aborted`: as Fetch tells them where only what is committed is wanted. Raises CorruptMessageError."""
    found: list[MessageAndOffset] = []
    judge = _Aborted(aborted or ())
    position = offset
    is_cut = len(buffer) > 0
    try:
        for entry in _entries(memoryview(buffer)):
            is_cut = False
            if entry[MAGIC_AT] == MAGIC:
                header = read_header(entry)
                check_stored(entry, header)
                position = max(position, header.next_offset)
                found += [] if judge.hides(header, entry) else _of_batch(entry, offset)
            else:
                old = read_message_set(entry, _LARGEST_UNPACKED)
                position = max([position, *(message.offset + 1 for message in old)])
                found += [_of_old(message) for message in old if message.offset >= offset]
    except CorruptBatchError as error:
        raise CorruptMessageError(str(error)) from error
    return Entries(tuple(found), position, is_cut)


def read_raw(
    buffer: Buffer, offset: int, aborted: Sequence[AbortedTransaction] | None = None, *, unless: bytes = b""
) -> RawEntries | None:
    """As `read_entries`, for who only moves records on. Raises CorruptMessageError.

    None: an entry is of an old format, or `unless` stands among the records: `read_entries` is for these.
    """
    found: list[MovedRecord] = []
    judge = _Aborted(aborted or ())
    position = offset
    is_cut = len(buffer) > 0
    try:
        for entry in _entries(memoryview(buffer)):
            is_cut = False
            if entry[MAGIC_AT] != MAGIC:
                return None
            header = read_header(entry)
            check_stored(entry, header)
            position = max(position, header.next_offset)
            if judge.hides(header, entry):
                continue
            records = read_moved(entry, header, _LARGEST_UNPACKED, unless=unless)
            if records is None:
                return None
            found += records if header.base_offset >= offset else [one for one in records if one.offset >= offset]
    except CorruptBatchError as error:
        raise CorruptMessageError(str(error)) from error
    return RawEntries(found, position, is_cut)


def _entries(view: memoryview) -> Iterator[memoryview]:
    position, end = 0, len(view)
    while position + MAGIC_AT < end:
        after = position + LENGTH_END + int.from_bytes(view[position + LENGTH_AT : position + LENGTH_END], signed=True)
        if after <= position + MAGIC_AT:
            raise CorruptBatchError("an entry without a format")
        if after > end:
            return
        yield view[position:after]
        position = after


def _of_batch(batch: memoryview, offset: int) -> list[MessageAndOffset]:
    return [
        MessageAndOffset(Message(one.value, one.key, one.headers, one.timestamp), one.offset)
        for one in read_records(batch, _LARGEST_UNPACKED)
        if one.offset >= offset
    ]


def _of_old(message: OldMessage) -> MessageAndOffset:
    key, value = (None if part is None else bytes(part) for part in (message.key, message.value))
    return MessageAndOffset(Message(value, key, (), message.timestamp), message.offset)


class _Aborted:
    """Which batches nobody wants: markers, and those of transactions that were aborted."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._open: set[int] = set()  # producers whose batches are of an aborted transaction

    def hides(self, header: BatchHeader, batch: memoryview) -> bool:
        """Called for one batch after the other, in their order."""
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._open.add(self._coming.pop().producer_id)
        if header.is_control:
            # Kafka's cleaner keeps the last batch of a producer without its records.
            if header.count and read_marker(batch)[0] is Marker.ABORT:
                self._open.discard(header.producer_id)
            return True
        return header.is_transactional and header.producer_id in self._open


# --- writing ----------------------------------------------------------------------------------------------------------


def codec_of(name: str) -> int:
    """By its name, or by its number, as Kafka 0.7 has it. Raises KeyError."""
    names = {text: codec for codec, text in compression.NAMES.items()}
    return int(name) if name in {str(codec) for codec in names.values()} else names[name.lower()]


def write_entries(messages: Sequence[Message], produce_version: int, codec: int, now_ms: int) -> bytes:
    """One entry, or with formats 0 and 1 uncompressed one for each. Raises UnsupportedError for what the format lacks."""
    if codec == compression.ZSTD and produce_version < _ZSTD_SINCE:
        raise UnsupportedError("the broker does not take zstd")
    if produce_version >= 3:
        records = [Record(one.key, one.value, one.headers, one.timestamp) for one in messages]
        return bytes(build_batch(records, now_ms=now_ms, codec=codec))
    if any(one.headers for one in messages):
        raise UnsupportedError("the broker takes no headers")
    magic = 1 if produce_version == 2 else 0
    times = [one.timestamp if one.timestamp >= 0 else now_ms for one in messages]
    rows = [
        OldMessage(number, magic, 0, time if magic else NO_TIMESTAMP, one.key, one.value)
        for number, (one, time) in enumerate(zip(messages, times, strict=True))
    ]
    return write_message_set(rows, codec)


def portions(messages: Sequence[T], limit: int) -> Iterator[Sequence[T]]:
    """In order, each of at most `limit` bytes uncompressed; one that is larger alone is alone."""
    start, size = 0, 0
    for at, message in enumerate(messages):
        if size and size + message.size > limit:
            yield messages[start:at]
            start, size = at, 0
        size += message.size
    if start < len(messages):
        yield messages[start:]
