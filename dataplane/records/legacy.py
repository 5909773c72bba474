"""Message sets, the formats 0 and 1 that Kafka wrote before 0.11. Pure: read message by message, and written.

A message set is messages one after the other, the last perhaps cut off; all numbers are big-endian::

    offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | [timestamp int64] | key | value

`size` counts what follows it; the CRC (CRC-32, not CRC-32C) covers from `magic` on; the timestamp is there in format 1
only; key and value are a length int32 (-1: null) and bytes. Attributes: bits 0-2 codec, bit 3 (format 1) log append time.

Compressed messages travel as one *wrapper*: a message without a key whose value is a compressed message set of the same
format, one level deep. The wrapper has the offset of its last message and, in format 1, the largest timestamp; with log
append time the wrapper's timestamp counts for all. Offsets inside are absolute in format 0; in format 1 they count from
the first message (and may have gaps after compaction), so the first one's is the wrapper's minus the last inner one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.compression import Buffer
from dataplane.records.header import CorruptBatchError
from dataplane.records.lz4 import compress_frame, with_right_checksum
from dataplane.records.steps import Steps, run_through, unpacked

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
NO_TIMESTAMP: Final = -1
LOG_OVERHEAD: Final = 12
OVERHEAD: Final = (LOG_OVERHEAD + 14, LOG_OVERHEAD + 22)
"""Bytes of a message beside its key and value, by format."""
_HIGHEST_CODEC = compression.LZ4

_head = struct.Struct(">qiIbb").unpack_from
_head_and_time = struct.Struct(">qiIbbq").unpack_from
_length = struct.Struct(">i").unpack_from
_pack_place = struct.Struct(">qiI").pack
_pack_length = struct.Struct(">i").pack
_pack_v0 = struct.Struct(">bbi").pack
_pack_v1 = struct.Struct(">bbqi").pack


class Message(NamedTuple):
    """One message as it stands there; key and value are memory of the buffer it was read from."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: Buffer | None
    value: Buffer | None

    @property
    def codec(self) -> int:
        """0, or that of the message set which is its value."""
        return self.attributes & CODEC_BITS


_new = tuple.__new__


# --- reading ----------------------------------------------------------------------------------------------------------


def read_shallow(buffer: Buffer) -> Iterator[Message]:
    """Messages and wrappers, each checked; a partial last one is left out. Raises CorruptBatchError."""
    view = memoryview(buffer)
    position = 0
    while (end := message_end(view, position)) is not None:
        yield read_message(view, position, end)
        position = end


def message_end(view: memoryview, position: int) -> int | None:
    """Where the message that begins at `position` ends; None: there is no whole one. Raises CorruptBatchError."""
    if position + LOG_OVERHEAD > len(view):
        return None
    size: int = _length(view, position + 8)[0]
    if size < OVERHEAD[0] - LOG_OVERHEAD:
        raise CorruptBatchError(f"a message of {size} bytes")
    end = position + LOG_OVERHEAD + size
    return end if end <= len(view) else None


def read_message(view: memoryview, position: int, end: int) -> Message:
    """The message, or the wrapper, from `position` to `end`, checked. Raises CorruptBatchError."""
    offset, _, crc, magic, attributes = _head(view, position)
    if magic == 2:  # its CRC is elsewhere
        raise _invalid("a batch among messages")
    if zlib.crc32(view[position + 16 : end]) != crc:
        raise CorruptBatchError(f"CRC of the message at offset {offset} is wrong")
    timestamp = NO_TIMESTAMP
    if magic == 0:
        at = position + 18
    elif magic == 1 and end - position >= OVERHEAD[1]:
        timestamp = _head_and_time(view, position)[5]
        at = position + 26
    else:
        raise CorruptBatchError(f"a message of format {magic} and {end - position} bytes")
    key, at = _read_bytes(view, at, end)
    value, at = _read_bytes(view, at, end)
    if at != end:
        raise CorruptBatchError(f"bytes after the value of the message at offset {offset}")
    return _new(Message, (offset, magic, attributes, timestamp, key, value))


def _read_bytes(view: memoryview, position: int, end: int) -> tuple[memoryview | None, int]:
    start = position + 4
    if start > end:
        raise CorruptBatchError("a message ends before its value")
    size = _length(view, position)[0]
    if size < 0:
        return None, start
    if start + size > end:
        raise CorruptBatchError("a field ends after its message")
    return view[start : start + size], start + size


def open_wrapper(wrapper: Message, limit: int = compression.MAX_DECOMPRESSED) -> Steps[Buffer]:
    """The message set in a wrapper: at most `limit` bytes. Raises CorruptBatchError."""
    if wrapper.codec > _HIGHEST_CODEC:
        raise _invalid(f"codec {wrapper.codec} in format {wrapper.magic}")
    if wrapper.value is None:
        raise _invalid("a compressed message without a value")
    data = wrapper.value
    if wrapper.codec == compression.LZ4 and wrapper.magic == 0:
        data = with_right_checksum(data)
    return (yield from unpacked(wrapper.codec, data, limit))


def read_inside(wrapper: Message, inside: Buffer) -> Iterator[Message]:
    """The messages of an opened wrapper, offsets and timestamps as they stand there. Raises CorruptBatchError."""
    for message in read_shallow(inside):
        check_inside(wrapper, message)
        yield message


def check_inside(wrapper: Message, message: Message) -> None:
    """Whether a message may be in this wrapper. Raises CorruptBatchError."""
    if message.magic != wrapper.magic:
        raise _invalid(f"a message of format {message.magic} inside one of format {wrapper.magic}")
    if message.codec:
        raise _invalid("a compressed message inside a compressed message")


def _placed(message: Message, wrapper: Message, last: int) -> Message:
    stamped = wrapper.attributes & LOG_APPEND_TIME
    return message._replace(
        offset=wrapper.offset - last + message.offset,
        timestamp=wrapper.timestamp if stamped else message.timestamp,
        attributes=message.attributes | stamped,
    )


def read_message_set(buffer: Buffer, limit: int = compression.MAX_DECOMPRESSED) -> list[Message]:
    """All messages as a consumer sees them, those inside wrappers with their real offsets. Raises CorruptBatchError.

    For clients and tests: it works through everything at once, and a message costs several hundred bytes.
    """
    messages: list[Message] = []
    for message in read_shallow(buffer):
        if not message.codec:
            messages.append(message)
            continue
        inner = list(read_inside(message, run_through(open_wrapper(message, limit))))
        if not inner:
            raise _invalid("a compressed message with none inside")
        messages += [_placed(each, message, inner[-1].offset) for each in inner] if message.magic else inner
    return messages


def _invalid(text: str) -> CorruptBatchError:
    return CorruptBatchError(text, ErrorCode.INVALID_RECORD)


# --- writing ----------------------------------------------------------------------------------------------------------


def write_message(
    magic: int, offset: int, timestamp: int, key: Buffer | None, value: Buffer | None, attributes: int = 0
) -> bytes:
    """One message. Format 0 has no room for the timestamp."""
    key_size = -1 if key is None else len(key)
    head = _pack_v1(1, attributes, timestamp, key_size) if magic else _pack_v0(0, attributes, key_size)
    if value is None:
        body = b"".join((head, key or b"", b"\xff\xff\xff\xff"))
    else:
        body = b"".join((head, key or b"", _pack_length(len(value)), value))
    return _pack_place(offset, len(body) + 4, zlib.crc32(body)) + body


def pack_set(codec: int, magic: int, message_set: Buffer) -> bytes:
    """A message set as the value of a wrapper: with the header that format 0's readers of lz4 look for."""
    if codec == compression.LZ4:
        return compress_frame(message_set, wrong_checksum=magic == 0)
    return compression.compress(codec, message_set)


def write_message_set(messages: Iterable[Message], codec: int = compression.NONE) -> bytes:
    """What a client of old would send: the messages as they are, or in one wrapper. All of one format."""
    rows = list(messages)
    if codec == compression.NONE:
        return b"".join(write_message(m.magic, m.offset, m.timestamp, m.key, m.value, m.attributes) for m in rows)
    magic, base, last = rows[0].magic, rows[0].offset, rows[-1].offset
    inner = b"".join(
        write_message(magic, m.offset - base if magic else m.offset, m.timestamp, m.key, m.value) for m in rows
    )
    latest = max(m.timestamp for m in rows)
    attributes = codec | rows[0].attributes & LOG_APPEND_TIME
    return write_message(magic, last, latest, None, pack_set(codec, magic, inner), attributes)
