"""What compaction leaves of a batch (Kafka's rules: KIP-58, KIP-534).

A record stays when no later one with its key is known, and it has a value or is a *tombstone* (a key without value) of
which not everybody has heard yet. When a tombstone is first seen here its batch gets a *delete horizon*: the time until
which it stays, `delete.retention.ms` from now. It stands in the batch's base timestamp, and attribute bit 6 says so.

Offsets never change: a batch keeps its first and last offset, its sequence and its leader epoch, whatever is taken from
between. A batch that loses all its records goes, unless it is its producer's last one: then it stays as an empty header,
so that a retry is recognised after the producers' state was rebuilt from the log.

Of a transaction that was aborted no record stays. Its marker, and that of one that was committed, goes when nothing of the
transaction is left, and everybody has had the time to hear of it: it gets a delete horizon like a tombstone. The last thing a
producer has left in the log is kept for its epoch (`transactions`).

Batches whose records cannot be read stay as they are: the broker never promised to understand them.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from crc32c import crc32c

from dataplane.protocol.primitives import DecodeError, read_varint, write_varint
from dataplane.records import compression
from dataplane.records.header import (
    CHECKED_FROM,
    CODEC_BITS,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    Buffer,
)

DELETE_HORIZON = 0x40
NO_TIMESTAMP = -1
_SMALLEST_RECORD = 7
_DIGEST_BYTES = 16


_new = tuple.__new__  # half the cost of the NamedTuple's own constructor


class Entry(NamedTuple):
    """One record, by its place in the batch's records."""

    start: int
    rest: int  # where the fields behind the timestamp begin
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


class Rules(NamedTuple):
    """What holds for all batches of a round."""

    now_ms: int
    delete_retention_ms: int


class KeyMap:
    """The last offset of every key in the dirty section, as far as there is room.

    Keys are remembered by a digest of 16 bytes: two that share one are less likely than a broken disk.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._offsets: dict[bytes, int] = {}
        self.latest_offset = -1  # nothing is known of records behind it

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """False: there is no more room, and nothing has changed."""
        digest = digest_of(key)
        if len(self._offsets) >= self._most and digest not in self._offsets:
            return False
        self._offsets[digest] = self.latest_offset = offset
        return True

    def last_offset(self, key: bytes) -> int:
        """-1: the key does not occur."""
        return self._offsets.get(digest_of(key), -1)


def digest_of(key: bytes) -> bytes:
    """Short keys stand for themselves; a digest is as long as none of them."""
    return key if len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()


def entries_of(batch: Buffer, header: BatchHeader) -> tuple[Buffer, list[Entry]] | None:
    """The records' bytes, decompressed, and where each is; None where they are not what they should be."""
    packed = memoryview(batch)[HEADER_SIZE : header.size]
    try:
        body = compression.decompress(header.compression, packed)
        entries = _walk(memoryview(body), header.count)
    except (DecodeError, compression.CompressionError, IndexError):
        return None
    previous = -1
    for entry in entries:
        if not previous < entry.offset_delta <= header.last_offset_delta:
            return None
        previous = entry.offset_delta
    return body, entries


def _walk(view: memoryview, count: int) -> list[Entry]:
    """All of them, with varints of one byte read in line: this is where a round spends its time."""
    if count < 0 or count * _SMALLEST_RECORD > len(view):
        raise DecodeError(f"{count} records in {len(view)} bytes")
    entries: list[Entry] = []
    position, whole = 0, len(view)
    for _ in range(count):
        start = position
        byte = view[position]
        if byte < 0x80:
            size, position = byte >> 1 ^ -(byte & 1), position + 1
        else:
            size, position = read_varint(view, position)
        end = position + size
        if size <= 0 or end > whole:
            raise DecodeError("a record ends after its batch")
        byte = view[position + 1]
        if byte < 0x80:
            timestamp_delta, rest = byte >> 1 ^ -(byte & 1), position + 2
        else:
            timestamp_delta, rest = read_varint(view, position + 1)
        byte = view[rest]
        if byte < 0x80:
            offset_delta, at = byte >> 1 ^ -(byte & 1), rest + 1
        else:
            offset_delta, at = read_varint(view, rest)
        byte = view[at]
        if byte < 0x80:
            length, at = byte >> 1 ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(view, at)
        key = None
        if length >= 0:
            key = bytes(view[at : at + length])
            at += length
        if at >= end:
            raise DecodeError("a key ends after its record")
        byte = view[at]
        if byte < 0x80:
            length, at = byte >> 1 ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(view, at)
        if at + length > end:
            raise DecodeError("a value ends after its record")
        entries.append(_new(Entry, (start, rest, end, timestamp_delta, offset_delta, key, length >= 0)))
        position = end
    if position != whole:
        raise DecodeError("bytes after the last record")
    return entries


def cleaned(batch: Buffer, header: BatchHeader, keys: KeyMap, rules: Rules, *, keeps_producer: bool) -> Buffer | None:
    """The batch as it stays: itself, another one, or None. `keeps_producer`: it is the last one of its producer."""
    found = entries_of(batch, header)
    if found is None:
        return batch
    body, entries = found
    horizon = header.base_timestamp if header.attributes & DELETE_HORIZON else None
    forgets_tombstones = horizon is not None and rules.now_ms >= horizon
    kept = [
        entry for entry in entries if _stays(entry, header.base_offset, keys, forgets_tombstones=forgets_tombstones)
    ]
    if not kept:
        if not keeps_producer:
            return None
        return _empty(header) if entries else batch
    if horizon is None and not all(entry.has_value for entry in kept):
        return _rebuilt(header, body, kept, rules.now_ms + rules.delete_retention_ms)
    return batch if len(kept) == len(entries) else _rebuilt(header, body, kept, None)


def cleaned_of_aborted(batch: Buffer, header: BatchHeader, *, keeps_producer: bool) -> Buffer | None:
    """The same of a batch whose transaction was aborted."""
    if not keeps_producer:
        return None
    return _empty(header) if header.count else batch


def cleaned_marker(batch: Buffer, header: BatchHeader, rules: Rules, *, keeps_producer: bool) -> Buffer | None:
    """The same of a marker of whose transaction nothing is left."""
    if header.attributes & DELETE_HORIZON:
        return None if rules.now_ms >= header.base_timestamp and not keeps_producer else batch
    found = entries_of(batch, header)
    if found is None or not found[1]:
        return batch
    return _rebuilt(header, *found, rules.now_ms + rules.delete_retention_ms)


def _stays(entry: Entry, base_offset: int, keys: KeyMap, *, forgets_tombstones: bool) -> bool:
    offset = base_offset + entry.offset_delta
    if offset > keys.latest_offset:
        return True
    if entry.key is None:
        return False  # written before the topic was compacted: it has no place in a table
    return (entry.has_value or not forgets_tombstones) and offset >= keys.last_offset(entry.key)


def _empty(header: BatchHeader) -> bytearray:
    """What the producers' state needs of a batch."""
    return _batch(
        header._replace(
            attributes=header.attributes & ~(CODEC_BITS | DELETE_HORIZON), base_timestamp=NO_TIMESTAMP, count=0
        ),
        b"",
    )


def _rebuilt(header: BatchHeader, body: Buffer, kept: list[Entry], new_horizon: int | None) -> bytearray:
    view = memoryview(body)
    base = header.base_timestamp
    max_timestamp = header.max_timestamp
    if not header.attributes & LOG_APPEND_TIME:
        max_timestamp = base + max(entry.timestamp_delta for entry in kept)
    attributes = header.attributes
    if new_horizon is None:
        records = b"".join(view[entry.start : entry.end] for entry in kept)
    else:
        records = b"".join(_shifted(view, entry, base - new_horizon) for entry in kept)
        base, attributes = new_horizon, attributes | DELETE_HORIZON
    codec = header.compression
    packed = records if codec == compression.NONE else compression.compress(codec, records)
    changed = header._replace(attributes=attributes, base_timestamp=base, max_timestamp=max_timestamp, count=len(kept))
    return _batch(changed, packed)


def _shifted(view: memoryview, entry: Entry, by: int) -> bytes:
    """The record with its timestamp told from another base."""
    fields = bytearray(1)  # attributes: none are in use
    write_varint(fields, entry.timestamp_delta + by)
    fields += view[entry.rest : entry.end]
    record = bytearray()
    write_varint(record, len(fields))
    return bytes(record + fields)


def _batch(header: BatchHeader, packed: bytes) -> bytearray:
    batch = bytearray(HEADER_SIZE)
    batch += packed
    HEADER.pack_into(batch, 0, *header._replace(batch_length=len(batch) - LENGTH_END, magic=MAGIC, crc=0))
    batch[CRC_AT:CHECKED_FROM] = crc32c(memoryview(batch)[CHECKED_FROM:]).to_bytes(4, "big")
    return batch
