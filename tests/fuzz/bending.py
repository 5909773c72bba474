"""Batches and message sets bent inside: records of another shape, other headers, other bytes behind the compression.

`raw(data, limit)` is the fuzzer's own way with bytes. It is used on what lies inside too, where it would never come by
itself: an altered byte of compressed data does not decompress, and a batch whose length is a lie goes no further.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from crc32c import crc32c

from dataplane.records import compression
from dataplane.records.batch import Record, build_batch, read_records
from dataplane.records.header import (
    CHECKED_FROM,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    MAGIC,
    MAGIC_AT,
    CorruptBatchError,
    read_header,
)
from dataplane.records.legacy import Message, read_message_set, read_shallow, write_message_set

if TYPE_CHECKING:
    from random import Random

Raw = Callable[[bytes, int], bytes]
_LIMIT = 20_000
_BYTES = (None, b"", b"k", b"v" * 60, b"\xff" * 9)
_NUMBERS = (0, 1, -1, 2, 5, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_WIDTHS = (64, 32, 32, 8, 32, 16, 32, 64, 64, 64, 16, 32, 32)  # of the header's fields
_UNSIGNED = 4  # the CRC


def bent_batch(data: bytes, random: Random, raw: Raw) -> bytes:
    """A batch of magic 2 with other records, another header, or other bytes inside."""
    way = random.randrange(3)
    try:
        if way == 0:
            return _other_records(data, random)
        header = read_header(data)
        if way == 1:
            return _other_header(data, random)
        codec = header.compression
        inside = raw(bytes(compression.decompress(codec, memoryview(data)[HEADER_SIZE:], _LIMIT)) or b"\0", _LIMIT)
        return data[:HEADER_SIZE] + (inside if codec == compression.NONE else compression.compress(codec, inside))
    except (CorruptBatchError, compression.CompressionError, ValueError, struct.error):
        return raw(data, _LIMIT)


def _other_records(data: bytes, random: Random) -> bytes:
    try:
        records = read_records(data, _LIMIT)
    except CorruptBatchError:
        records = [Record(b"k", b"v")]
    at = random.randrange(len(records) + 1)
    headers = tuple((random.choice(("", "h", "é")), random.choice(_BYTES)) for _ in range(random.randrange(3)))
    new = Record(random.choice(_BYTES), random.choice(_BYTES), headers, random.choice((-1, 0, 5, 2**40)))
    records = [*records[:at], new, *records[at + random.randrange(2) :]][:50]
    with_producer = random.random() < 0.3
    return bytes(
        build_batch(
            [replace(record, timestamp=min(record.timestamp, 2**60)) for record in records],
            now_ms=random.choice((0, 1, 1_700_000_000_000)),
            producer_id=random.choice((0, 7, 2**62)) if with_producer else -1,
            producer_epoch=random.choice((0, 1, 2**15 - 1)) if with_producer else -1,
            base_sequence=random.choice((0, 1, 2**31 - 1)) if with_producer else -1,
            transactional=random.random() < 0.1,
            control=random.random() < 0.1,
            codec=random.choice(list(compression.NAMES)),
        )
    )


def _other_header(data: bytes, random: Random) -> bytes:
    fields = list(read_header(data))
    at = random.randrange(len(fields))
    edge = 1 << (_WIDTHS[at] - 1)
    number = random.choice((*_NUMBERS, fields[at] + 1, fields[at] - 1))
    fields[at] = number % 2**32 if at == _UNSIGNED else (number + edge) % (2 * edge) - edge
    return HEADER.pack(*fields) + data[HEADER_SIZE:]


def repaired_batch(data: bytes) -> bytes:
    """The bytes as one batch of magic 2 whose length and CRC are right, if they are as many as its header."""
    if len(data) < HEADER_SIZE:
        return data
    batch = bytearray(data)
    batch[LENGTH_END - 4 : LENGTH_END] = (len(batch) - LENGTH_END).to_bytes(4)
    batch[:8], batch[MAGIC_AT] = bytes(8), MAGIC
    batch[CRC_AT:CHECKED_FROM] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4)
    return bytes(batch)


def bent_message_set(data: bytes, random: Random, raw: Raw) -> bytes:
    """A message set of format 0 or 1 with other messages, or packed another way."""
    try:
        read = read_message_set(data, _LIMIT) if random.random() < 0.7 else list(read_shallow(data))
        messages = [_other_message(each, random) if random.random() < 0.3 else each for each in read[:50]]
        if random.random() < 0.3:
            messages += messages[:2]
        if not messages:
            return raw(data, _LIMIT)
        return write_message_set(messages, random.choice((0, 0, 1, 2, 3)))
    except (CorruptBatchError, ValueError, struct.error):
        return raw(data, _LIMIT)


def repaired_message_set(data: bytes) -> bytes:
    """With right CRCs, as far as messages can be told apart."""
    out = bytearray(data)
    position = 0
    while position + 17 <= len(out):
        end = position + 12 + int.from_bytes(out[position + 8 : position + 12])
        if end > len(out) or end < position + 17:
            break
        out[position + 12 : position + 16] = zlib.crc32(out[position + 16 : end]).to_bytes(4)
        position = end
    return bytes(out)


def _other_message(message: Message, random: Random) -> Message:
    magic = random.choice((message.magic, message.magic, 0, 1))
    return message._replace(
        offset=random.choice((message.offset, 0, 7, 2**62, -1)),
        magic=magic,
        attributes=random.choice((message.attributes, 0, 8, 1, 4)) if magic else message.attributes & 7,
        timestamp=random.choice((message.timestamp, 0, 5, 2**62, -1)) if magic else -1,
        key=random.choice((message.key, *_BYTES)),
        value=random.choice((message.value, *_BYTES)),
    )
