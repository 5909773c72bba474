"""The records of a magic-2 batch without making objects of them: checked one by one, or read for conversion. Pure.

`check_some` is `record.validation=full`, and what a topic needs that looks at its records (timestamps in bounds, keys). It
takes about a microsecond a record, so varints of one byte are read in line; for the others there is the function.
Both work through a number of records and return where they stopped, so that the caller can pause in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.primitives import DecodeError, read_varint
from dataplane.records.compression import Buffer
from dataplane.records.header import CorruptBatchError

SMALLEST_RECORD = 7  # length, attributes, timestamp, offset, key, value, headers: a byte each
_KEPT = 100
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1

Row = tuple[int, int, memoryview | None, memoryview | None]
"""Timestamp delta, offset delta, key, value."""


@dataclass(slots=True)
class Findings:
    """What was seen of the records so far."""

    count: int = 0
    least_timestamp: int = _LONG_MAX  # both as deltas
    latest_timestamp: int = _LONG_MIN
    keyless: list[int] = field(default_factory=list)  # the first indexes
    out_of_time: list[int] = field(default_factory=list)


def bad_records(text: str) -> CorruptBatchError:
    """Records that are not what their batch says."""
    return CorruptBatchError(text, ErrorCode.INVALID_RECORD)


def check_some(view: Buffer, position: int, count: int, found: Findings, times: tuple[int, int] | None) -> int:
    """Check `count` records from `position` on, as far as no other knowledge is needed; returns where they end.

    Varints and lengths must fit, headers must have names, offsets must rise by one from 0 on. `times` are the smallest
    and largest timestamp delta that the topic takes. Raises CorruptBatchError, INVALID_RECORD.
    """
    index = start = found.count
    try:
        for index in range(start, start + count):
            position = _check_one(view, position, index, found, times)
    except (IndexError, DecodeError) as error:
        raise bad_records(f"record {index} of the batch: {error}") from error
    found.count += count
    return position


def _check_one(view: Buffer, position: int, index: int, found: Findings, times: tuple[int, int] | None) -> int:
    byte = view[position]
    if byte < 0x80:
        size, position = byte >> 1 ^ -(byte & 1), position + 1
    else:
        size, position = read_varint(view, position)
    end = position + size
    if size < SMALLEST_RECORD - 1 or end > len(view):
        raise DecodeError(f"a size of {size}")
    position += 1  # attributes: none is in use
    byte = view[position]
    if byte < 0x80:
        delta, position = byte >> 1 ^ -(byte & 1), position + 1
    else:
        delta, position = read_varint(view, position)
    found.least_timestamp = min(found.least_timestamp, delta)
    found.latest_timestamp = max(found.latest_timestamp, delta)
    if times is not None and not times[0] <= delta <= times[1] and len(found.out_of_time) < _KEPT:
        found.out_of_time.append(index)
    byte = view[position]
    if byte < 0x80:
        offset, position = byte >> 1 ^ -(byte & 1), position + 1
    else:
        offset, position = read_varint(view, position)
    if offset != index:
        raise DecodeError(f"an offset delta of {offset}")
    byte = view[position]
    if byte < 0x80:
        length, position = byte >> 1 ^ -(byte & 1), position + 1
    else:
        length, position = read_varint(view, position)
    if length >= 0:
        position += length
    elif length != -1:
        raise DecodeError(f"a key of {length} bytes")
    elif len(found.keyless) < _KEPT:
        found.keyless.append(index)
    byte = view[position]
    if byte < 0x80:
        length, position = byte >> 1 ^ -(byte & 1), position + 1
    else:
        length, position = read_varint(view, position)
    if length >= 0:
        position += length
    elif length != -1:
        raise DecodeError(f"a value of {length} bytes")
    if position >= end:
        raise DecodeError("fields that end after it")
    if view[position]:
        position = _check_headers(view, position, end)
    else:
        position += 1
    if position != end:
        raise DecodeError(f"{end - position} bytes more or less than its fields")
    return position


def _check_headers(view: Buffer, position: int, end: int) -> int:
    count, position = read_varint(view, position)
    if not 0 <= count <= (end - position) // 2:  # two lengths at least
        raise DecodeError(f"{count} headers")
    for _ in range(count):
        length, position = read_varint(view, position)
        if length < 0:
            raise DecodeError("a header without a name")
        length, position = read_varint(view, position + length)
        if length < -1:
            raise DecodeError(f"a header of {length} bytes")
        position += max(length, 0)
        if position > end:
            raise DecodeError("a header that ends after it")
    return position


def read_some(view: memoryview, position: int, count: int) -> tuple[list[Row], int]:
    """`count` records from `position` on, without their headers, and where they end. Raises CorruptBatchError."""
    rows: list[Row] = []
    try:
        for _ in range(count):
            size, position = read_varint(view, position)
            end = position + size
            if size < SMALLEST_RECORD - 1 or end > len(view):
                raise DecodeError(f"a record of {size} bytes")
            timestamp, at = read_varint(view, position + 1)
            offset, at = read_varint(view, at)
            length, at = read_varint(view, at)
            key = None
            if length >= 0:
                key = view[at : at + length]
                at += length
            length, at = read_varint(view, at)
            value = None
            if length >= 0:
                value = view[at : at + length]
                at += length
            if at >= end:
                raise DecodeError("a field ends after its record")
            rows.append((timestamp, offset, key, value))
            position = end
    except (IndexError, DecodeError) as error:
        raise bad_records(f"a record cannot be read: {error}") from error
    return rows, position


def find_time(
    view: Buffer, position: int, count: int, timestamp_delta: int, least_offset: int
) -> tuple[tuple[int, int] | None, int]:
    """(offset delta, timestamp delta) of the first of `count` records that is young enough and not below an offset.

    And where they end. Raises CorruptBatchError.
    """
    try:
        for _ in range(count):
            size, position = read_varint(view, position)
            end = position + size
            if size < SMALLEST_RECORD - 1 or end > len(view):
                raise DecodeError(f"a record of {size} bytes")
            time, at = read_varint(view, position + 1)
            if time >= timestamp_delta:
                offset, _ = read_varint(view, at)
                if offset >= least_offset:
                    return (offset, time), end
            position = end
    except (IndexError, DecodeError) as error:
        raise bad_records(f"a record cannot be read: {error}") from error
    return None, position
