"""The records inside a batch: built for what the broker writes itself, read for what it must understand.

A record (all numbers zig-zag varints unless said): length, attributes int8, timestampDelta, offsetDelta, key length and
key (-1: null), value length and value, header count, and per header key length, key, value length, value.

Neither direction is on the path of tenants' data; both cost about a microsecond a record and more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crc32c import crc32c

from dataplane.protocol.primitives import DecodeError, read_varint, write_varint
from dataplane.records import compression
from dataplane.records.header import (
    CHECKED_FROM,
    CONTROL,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    CorruptBatchError,
    check_batch,
    check_stored,
    read_header,
    split_batches,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "CorruptBatchError",
    "Record",
    "build_batch",
    "check_batch",
    "check_stored",
    "each_record",
    "read_header",
    "read_records",
    "seal",
    "split_batches",
]

NO_PRODUCER = -1


@dataclass(frozen=True, slots=True)
class Record:
    """One message. `timestamp` -1 means "now" when built; `offset` is known once read from a batch."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = -1
    offset: int = -1


def build_batch(
    records: Sequence[Record],
    *,
    now_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    codec: int = compression.NONE,
) -> bytearray:
    """A batch of at least one record, ready for `appending.stage`."""
    times = [record.timestamp if record.timestamp >= 0 else now_ms for record in records]
    body = bytearray()
    for delta, (record, time) in enumerate(zip(records, times, strict=True)):
        _write_record(body, record, time - times[0], delta)
    return seal(
        body,
        times,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        codec=codec,
    )


def seal(
    body: bytearray,
    times: Sequence[int],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    codec: int = compression.NONE,
) -> bytearray:
    """The batch of records that are written already, one behind the other; `times` has the timestamp of each."""
    packed = body if codec == compression.NONE else compression.compress(codec, body)
    batch = bytearray(HEADER_SIZE)
    batch += packed
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_END,
        leader_epoch,
        MAGIC,
        0,
        codec | (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0),
        len(times) - 1,
        times[0],
        max(times),
        producer_id,
        producer_epoch,
        base_sequence,
        len(times),
    )
    batch[CRC_AT:CHECKED_FROM] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4)
    return batch


def read_records(batch: Buffer, limit: int = compression.MAX_DECOMPRESSED) -> list[Record]:
    """The records with their offsets and timestamps. Raises CorruptBatchError; never reads beyond `limit` bytes."""
    header = read_header(batch)
    try:
        body = compression.decompress(header.compression, memoryview(batch)[HEADER_SIZE : header.size], limit)
    except compression.CompressionError as error:
        raise CorruptBatchError(f"records of the batch at offset {header.base_offset}: {error}") from error
    return list(each_record(body, header))


def each_record(body: Buffer, header: BatchHeader) -> Iterator[Record]:
    """One after the other, as somebody asks for them, from a batch's records unpacked. Raises CorruptBatchError."""
    try:
        yield from _read_each(body, header.count, header.base_offset, header.base_timestamp, _append_time(header))
    except (DecodeError, IndexError, UnicodeDecodeError) as error:
        raise CorruptBatchError(f"records of the batch at offset {header.base_offset}: {error}") from error


def _append_time(header: BatchHeader) -> int | None:
    """With log append time every record has the batch's maxTimestamp."""
    return header.max_timestamp if header.attributes & LOG_APPEND_TIME else None


def _write_record(out: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _write_bytes(body, record.key)
    _write_bytes(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _write_bytes(body, name.encode())
        _write_bytes(body, value)
    write_varint(out, len(body))
    out += body


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(value))
        out += value


def _read_each(body: Buffer, count: int, offset: int, timestamp: int, append_time: int | None) -> Iterator[Record]:
    view = memoryview(body)
    if count * 7 > len(view):  # the smallest record has seven bytes: refuse before allocating
        raise DecodeError(f"{count} records in {len(view)} bytes")
    position = 0
    for _ in range(count):
        size, position = read_varint(view, position)
        end = position + size
        if size <= 0 or end > len(view):
            raise DecodeError("a record ends after its batch")
        yield _read_record(view[position:end], offset, timestamp, append_time)
        position = end
    if position != len(view):
        raise DecodeError("bytes after the last record")


def _read_record(view: memoryview, base_offset: int, base_timestamp: int, append_time: int | None) -> Record:
    timestamp_delta, position = read_varint(view, 1)
    offset_delta, position = read_varint(view, position)
    key, position = _read_bytes(view, position)
    value, position = _read_bytes(view, position)
    count, position = read_varint(view, position)
    if not 0 <= count <= len(view):
        raise DecodeError(f"{count} headers")
    headers = []
    for _ in range(count):
        name, position = _read_bytes(view, position)
        if name is None:
            raise DecodeError("a header without a key")
        content, position = _read_bytes(view, position)
        headers.append((name.decode(), content))
    if position != len(view):
        raise DecodeError("bytes after the last field of a record")
    timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
    return Record(key, value, tuple(headers), timestamp, base_offset + offset_delta)


def _read_bytes(view: memoryview, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(view, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(view):
        raise DecodeError("a field ends after its record")
    return bytes(view[position:end]), end
