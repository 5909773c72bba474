"""The primitive types of Kafka's wire format that need more than a `struct` format.

Vocabulary: *compact* strings, bytes and arrays carry ``length + 1`` as an unsigned varint (0 means null); the others a
16- or 32-bit length (-1 means null). Varints are little-endian groups of seven bits. All other numbers are big-endian.
"""

from __future__ import annotations

import struct
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class DecodeError(Exception):
    """Bytes that do not follow the declaration. The connection that sent them is closed."""


class Splice(Protocol):
    """Record bytes that stay where they are (a file range): only their size is written into the message."""

    size: int


def size_of(records: Buffer | Splice | None) -> int:
    """How many bytes a field of records holds, here or elsewhere."""
    if records is None:
        return 0
    return len(records) if isinstance(records, bytes | bytearray | memoryview) else records.size


Splices = list[tuple[int, Buffer | Splice]]
"""(position in the encoded bytes, what belongs there), in order."""


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits: ``(value, position after it)``. Raises DecodeError."""
    value = shift = 0
    end = len(buffer)
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, position
        shift += 7
        if shift >= 35:
            break
    raise DecodeError("bad unsigned varint")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append a number from 0 on, 7 bits a byte, the lowest first."""
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def read_varint(buffer: Buffer, position: int) -> tuple[int, int]:
    """A zig-zag varint of at most 64 bits, as records use: ``(value, position after it)``. Raises DecodeError."""
    value = shift = 0
    end = len(buffer)
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFFFFFFFFFF:
                break
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            break
    raise DecodeError("bad varint")


def write_varint(out: bytearray, value: int) -> None:
    """Append a zig-zag varint of at most 64 bits."""
    write_uvarint(out, ((value << 1) ^ (value >> 63)) & 0xFFFFFFFFFFFFFFFF)


def skip_tagged_fields(buffer: Buffer, position: int) -> int:
    """The position after a tagged-field section in which nothing is known."""
    count, position = read_uvarint(buffer, position)
    for _ in range(count):
        _, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        position += size
        if position > len(buffer):
            raise DecodeError("a tagged field ends after the message")
    return position


INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
