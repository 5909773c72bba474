"""Records that go from one batch into another without being taken apart. Pure.

    length  attributes  timestampDelta  offsetDelta | key  value  headers
              written anew for the new batch        |   `rest`, as it was

Offset and time of a record are relative to its batch; what stands behind them is copied as bytes. So no message is made of
each record and no record of each message, and the bytes of a tenant are what they were. Only batches of format 2 are moved so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dataplane.protocol.primitives import DecodeError, read_varint, write_varint
from dataplane.records import compression
from dataplane.records.batch import seal
from dataplane.records.header import HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, Buffer, CorruptBatchError

_OVERHEAD = 24  # of length, attributes, time and offset: more than they have
_SMALLEST_RECORD = 7


class MovedRecord(NamedTuple):
    """A record on its way. `timestamp` in ms; below 0: it has none, and gets the time of writing."""

    offset: int
    timestamp: int
    rest: bytes  # key, value and headers

    @property
    def next_offset(self) -> int:
        """Where to go on after it."""
        return self.offset + 1

    @property
    def size(self) -> int:
        """Bytes that it takes at most, uncompressed."""
        return _OVERHEAD + len(self.rest)


def read_moved(batch: Buffer, header: BatchHeader, limit: int, *, unless: bytes = b"") -> list[MovedRecord] | None:
    """A batch's records in order; None: the bytes `unless` stand somewhere among them, so somebody has to look.

    Never reads beyond `limit` bytes. Raises CorruptBatchError.
    """
    what = f"records of the batch at offset {header.base_offset}"
    try:
        packed = memoryview(batch)[HEADER_SIZE : header.size]
        data = bytes(compression.decompress(header.compression, packed, limit))
        if unless and unless in data:
            return None
        return _records(data, header)
    except (compression.CompressionError, DecodeError, IndexError) as error:
        raise CorruptBatchError(f"{what}: {error}") from error


def _records(data: bytes, header: BatchHeader) -> list[MovedRecord]:
    end, position = len(data), 0
    if header.count * _SMALLEST_RECORD > end:  # refused before anything is made of it
        raise DecodeError(f"{header.count} records in {end} bytes")
    base_offset, base_time = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    found = []
    for _ in range(header.count):
        size, position = read_varint(data, position)
        after = position + size
        if size <= 0 or after > end:
            raise DecodeError("a record ends after its batch")
        time, at = read_varint(data, position + 1)
        number, at = read_varint(data, at)
        if at > after:
            raise DecodeError("a field ends after its record")
        timestamp = base_time + time if append_time is None else append_time
        found.append(MovedRecord(base_offset + number, timestamp, data[at:after]))
        position = after
    if position != end:
        raise DecodeError("bytes after the last record")
    return found


def build_moved(
    records: Sequence[MovedRecord],
    *,
    now_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool,
    codec: int,
) -> bytearray:
    """A batch of these, of which there is at least one, their offsets in a row."""
    times = [record.timestamp if record.timestamp >= 0 else now_ms for record in records]
    body, first = bytearray(), times[0]
    for number, (record, time) in enumerate(zip(records, times, strict=True)):
        head = bytearray(1)
        write_varint(head, time - first)
        write_varint(head, number)
        write_varint(body, len(head) + len(record.rest))
        body += head
        body += record.rest
    return seal(
        body,
        times,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        codec=codec,
    )
