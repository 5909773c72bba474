"""Looking into a log for other things than an offset: all batches of a range, a time, the youngest record.

The time look-ups open one batch; a batch whose records cannot be read is answered with its header's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.records.batch import read_records
from dataplane.records.header import BatchHeader, CorruptBatchError, split_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.storage.log import Log
    from dataplane.storage.segment import Segment

_CHUNK_BYTES = 2**20

Found = tuple[int, int, int]
"""Offset, timestamp, leader epoch."""


def batches(log: Log, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Batches from the one that holds `start` on, none with a record at or after `end`."""
    while True:
        found = log.read(start, _CHUNK_BYTES, end, at_least_one=True)
        if found is None:
            return
        for header, batch in split_batches(found.file.read(found.position, found.size)):
            yield header, batch
            start = header.next_offset


def offset_for_timestamp(log: Log, segments: list[Segment], timestamp: int, max_offset: int) -> Found | None:
    """The first record at least as young as `timestamp`, below `max_offset`."""
    for segment in segments:
        if segment.max_timestamp < timestamp:
            continue
        for header, position in segment.headers(segment.position_for_time(timestamp)):
            if header.base_offset >= max_offset:
                return None
            if header.max_timestamp >= timestamp and header.last_offset >= log.start_offset:
                found = _first_record(segment, header, position, lambda time: time >= timestamp, log.start_offset)
                if found is not None:
                    return found if found[0] < max_offset else None
    return None


def latest_timestamp(log: Log, segments: list[Segment], max_offset: int) -> Found | None:
    """The first of the youngest records; None when it is not below `max_offset`."""
    segment = max(segments, key=lambda segment: segment.max_timestamp)
    youngest = segment.max_timestamp
    if youngest < 0:
        return None
    for header, position in segment.headers(segment.position_for_time(youngest)):
        if header.max_timestamp == youngest:
            found = _first_record(segment, header, position, lambda time: time == youngest, log.start_offset)
            if found is not None:
                return found if found[0] < max_offset else None
    return None


def _first_record(
    segment: Segment, header: BatchHeader, position: int, wanted: Callable[[int], bool], start_offset: int
) -> Found | None:
    try:
        records = read_records(segment.file.read(position, header.size))
    except CorruptBatchError:
        return max(header.base_offset, start_offset), header.max_timestamp, header.leader_epoch
    for record in records:
        if wanted(record.timestamp) and record.offset >= start_offset:
            return record.offset, record.timestamp, header.leader_epoch
    return None
