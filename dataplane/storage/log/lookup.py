"""Looking into a log for other things than an offset: all batches of a range, a time, the youngest record.

The time look-ups open one batch, in steps (`records.steps`): it may be large, and packed. A batch whose records cannot be
read is answered with its header's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.records.compression import MAX_DECOMPRESSED
from dataplane.records.header import HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, CorruptBatchError, split_batches
from dataplane.records.scan import bad_records, find_time
from dataplane.records.steps import RECORDS_PER_STEP, Steps, unpacked
from dataplane.storage.log.reading import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.storage.log.state import Log

_CHUNK_BYTES = 2**20
_MOST_LIARS = 100
_LATEST = 2**63 - 1

Found = tuple[int, int, int]
"""Offset, timestamp, leader epoch."""


def batches(log: Log, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Batches with records in [start, end), read piece by piece. Raises OffsetOutOfRangeError, OSError."""
    while True:
        found = read(log, start, _CHUNK_BYTES, end, at_least_one=True)
        if found is None:
            return
        for header, batch in split_batches(found.file.read(found.position, found.size)):
            yield header, batch
            start = header.next_offset


def find_timestamp(log: Log, timestamp: int, max_offset: int) -> Steps[Found | None]:
    """The first record at least as young as `timestamp`, below `max_offset`. Raises OSError."""
    return _find(log, timestamp, max_offset, max_offset)


def find_latest_timestamp(log: Log, max_offset: int) -> Steps[Found | None]:
    """The first of the youngest records; None when it is not below `max_offset`. Raises OSError."""
    youngest = max(segment.max_timestamp for segment in log.segments)
    if youngest < 0:
        return None
    return (yield from _find(log, youngest, max_offset, log.end_offset))


def _find(log: Log, timestamp: int, max_offset: int, end: int) -> Steps[Found | None]:
    """Nothing is kept between two steps but an offset: meanwhile segments may go."""
    start, liars = log.start_offset, 0
    while (candidate := _next_batch(log, timestamp, start, end)) is not None:
        header, batch = candidate
        found = None
        if liars < _MOST_LIARS:
            found = yield from _first_record(header, batch, timestamp, log.start_offset)
        else:  # a producer's headers promise what its records do not hold: no more work for it
            found = max(header.base_offset, log.start_offset), header.max_timestamp, header.leader_epoch
        if found is not None:
            return found if found[0] < max_offset else None
        start = header.next_offset
        liars += 1
        yield None
    return None


def _next_batch(log: Log, timestamp: int, start: int, end: int) -> tuple[BatchHeader, memoryview] | None:
    """The first batch from offset `start` on, beginning below `end`, whose header says that it is young enough."""
    for segment in log.segments:
        if segment.max_timestamp < timestamp:
            continue
        position = segment.position_for_time(timestamp)
        if segment.base_offset < start:
            position = max(position, segment.position_of(start))
        for header, at in segment.headers(position):
            if header.base_offset >= end:
                return None
            if header.count and header.max_timestamp >= timestamp and header.last_offset >= start:
                return header, memoryview(segment.file.read(at, header.size))
    return None


def _first_record(header: BatchHeader, batch: memoryview, timestamp: int, start_offset: int) -> Steps[Found | None]:
    base, time = header.base_offset, header.base_timestamp
    if header.attributes & LOG_APPEND_TIME:  # all records have the header's
        return max(base, start_offset), header.max_timestamp, header.leader_epoch
    try:
        body = yield from unpacked(header.compression, batch[HEADER_SIZE:], MAX_DECOMPRESSED)
        position = done = 0
        while done < header.count:
            if done:
                yield None
            some = min(RECORDS_PER_STEP, header.count - done)
            found, position = find_time(body, position, some, timestamp - time, start_offset - base)
            if found is not None:
                if time + found[1] > _LATEST:
                    raise bad_records("a timestamp beyond 64 bits")
                return base + found[0], time + found[1], header.leader_epoch
            done += some
    except CorruptBatchError:
        return max(base, start_offset), header.max_timestamp, header.leader_epoch
    return None
