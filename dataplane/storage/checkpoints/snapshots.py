"""Producer-state snapshots: what idempotent producers had written when a log ended at the offset in the file's name.

    00000000000000001234.snapshot, Kafka's format, big-endian:

    version     int16   1
    crc         uint32  CRC32C of all that follows
    count       int32
    entries     producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32,
                timestamp int64, coordinator epoch int32, first offset of the open transaction int64

Kafka keeps the last batch of each producer and forgets the four before it, so that after a restart a retry of one of
them is out of order where it was a duplicate. Here the answers stay exact: behind Kafka's entries comes a part that
Kafka does not look at (its CRC covers it all the same)

    count       int32
    batches     producer id int64, first sequence int32, last sequence int32, base offset int64

with the older batches, oldest first. A snapshot that Kafka wrote is read as well; it has no such part. Where there are any,

    count       int32
    ended       first offset int64, offset of the marker int64

follow, the transactions whose markers may not have been committed yet: until they are, readers of what is stable stay before
them (Kafka forgets that with a restart).

A snapshot is only a short cut: one that is missing, torn or of an unknown version is passed over for an older one, and
what lies behind is replayed from the log.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import crc32c

from dataplane.storage.checkpoints.producers import NO_TRANSACTION, ProducerState, Written
from dataplane.storage.checkpoints.transactions import Ended

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.doors import Files

SUFFIX = ".snapshot"
KEPT = 2
"""The newest, and one more for a truncation that goes behind it."""

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_OLDER = struct.Struct(">qiiq")
_ENDED = struct.Struct(">qq")
_NAME_LENGTH = 20 + len(SUFFIX)
_SEQUENCE_MASK = 2**31 - 1
_NONE = -1


class SnapshotError(Exception):
    """The file is not a snapshot, or a damaged one."""


class Snapshot(NamedTuple):
    """What a file says."""

    producers: list[ProducerState]
    ended: Sequence[Ended] = ()


def file_name(offset: int) -> str:
    """Of the snapshot of a log that ends at `offset`."""
    return f"{offset:020d}{SUFFIX}"


def offsets_in(names: Iterable[str]) -> list[int]:
    """Of the snapshots among the names of a directory, ascending."""
    stems = [name[: -len(SUFFIX)] for name in names if name.endswith(SUFFIX) and len(name) == _NAME_LENGTH]
    return sorted(int(stem) for stem in stems if stem.isdigit())


def superfluous(offsets: Sequence[int], recovery_point: int) -> list[int]:
    """Of ascending ones: all but the newest, and one from which what a stop leaves unchecked can be replayed."""
    older = list(offsets[:-KEPT])
    while older and (len(offsets) <= len(older) or offsets[len(older)] > recovery_point):
        older.pop()
    return older


def read(files: Files, directory: str, offset: int) -> Snapshot:
    """Raises SnapshotError, OSError (FileNotFoundError among them)."""
    return unpack(files.read_file(f"{directory}/{file_name(offset)}"))


def has_transactions(files: Files, directory: str, offset: int) -> bool:
    """Whether a snapshot knows of one that is open, or not committed: without making anything of the rest. As `read`."""
    entries, _, ended = _parts(files.read_file(f"{directory}/{file_name(offset)}"))
    return bool(ended) or any(entry[-1] != NO_TRANSACTION for entry in entries)


def pack(producers: Iterable[ProducerState], ended: Sequence[Ended] = ()) -> bytes:
    """The content of a file."""
    entries, older = bytearray(), bytearray()
    count = older_count = 0
    for producer in producers:
        last = producer.batches[-1] if producer.batches else None
        delta = 0 if last is None else (last.last_sequence - last.first_sequence) & _SEQUENCE_MASK
        entries += _ENTRY.pack(
            producer.producer_id,
            producer.epoch,
            _NONE if last is None else last.last_sequence,
            producer.last_offset if last is None else last.base_offset + delta,
            delta,
            producer.seen_ms,
            producer.coordinator_epoch,
            producer.first_offset,
        )
        count += 1
        for batch in producer.batches[:-1]:
            older += _OLDER.pack(producer.producer_id, batch.first_sequence, batch.last_sequence, batch.base_offset)
            older_count += 1
    body = _COUNT.pack(count) + entries + _COUNT.pack(older_count) + older
    if ended:
        body += _COUNT.pack(len(ended)) + b"".join(_ENDED.pack(*one) for one in ended)
    return _HEAD.pack(_VERSION, crc32c.crc32c(body)) + body


def unpack(data: bytes) -> Snapshot:
    """What a file says. Raises SnapshotError."""
    entries, older_rows, ended = _parts(data)
    older: dict[int, list[Written]] = {}
    for producer_id, first, last, base in older_rows:
        older.setdefault(producer_id, []).append(Written(first, last, base))
    producers = []
    for producer_id, epoch, last, last_offset, delta, seen_ms, coordinator_epoch, first_offset in entries:
        batches = older.get(producer_id, [])
        if last != _NONE:
            batches.append(Written((last - delta) & _SEQUENCE_MASK, last, last_offset - delta))
        producers.append(
            ProducerState(producer_id, epoch, batches, last_offset, seen_ms, coordinator_epoch, first_offset)
        )
    return Snapshot(producers, [Ended(*row) for row in ended])


_Rows = list[tuple[int, ...]]


def _parts(data: bytes) -> tuple[_Rows, _Rows, _Rows]:
    """Entries, older batches, transactions that have ended."""
    try:
        version, crc = _HEAD.unpack_from(data)
        rest = memoryview(data)[_HEAD.size :]
        if version != _VERSION or crc32c.crc32c(rest) != crc:
            raise SnapshotError("another version, or damaged")
        parts: list[_Rows] = []
        for row in (_ENTRY, _OLDER, _ENDED):
            rows, rest = _rows(rest, row) if rest or not parts else ([], rest)
            parts.append(rows)
    except struct.error as error:
        raise SnapshotError("cut") from error
    entries, older, ended = parts
    return entries, older, ended


def _rows(body: memoryview, row: struct.Struct) -> tuple[_Rows, memoryview]:
    end = _COUNT.size + _COUNT.unpack_from(body)[0] * row.size
    if not _COUNT.size <= end <= len(body):
        raise SnapshotError("its count is wrong")
    return list(row.iter_unpack(body[_COUNT.size : end])), body[end:]
