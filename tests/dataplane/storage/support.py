"""Batches and logs for the tests of storage."""

from __future__ import annotations

from uuid import UUID

from dataplane.records.batch import Record, build_batch, read_header, read_records
from dataplane.records.steps import run_through
from dataplane.storage.log import Log, LogConfig, Shared, appending, lookup, opening
from dataplane.storage.segments.descriptors import Descriptors
from dataplane.storage.unhurried import Unhurried
from tests.support.memory_files import ImmediateBackground, MemoryFiles

DIRECTORY = "/data/topic-0"
TOPIC_ID = UUID(int=7)


def new_files() -> MemoryFiles:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    return files


def open_log(
    files, background=None, *, directory: str = DIRECTORY, config=None, descriptors=None, now_ms=lambda: 0, **how
) -> Log:
    background = background or ImmediateBackground()
    shared = Shared(files, background, descriptors or Descriptors(2, background), now_ms, Unhurried(background))
    config = config or LogConfig()
    last_known = opening.LastKnown(**{name: how.pop(name) for name in opening.LastKnown._fields if name in how})
    return opening.open_log(
        shared, directory, topic="topic", partition=0, topic_id=TOPIC_ID, config=config, last_known=last_known, **how
    )


def offset_for_timestamp(log: Log, timestamp: int, max_offset: int) -> tuple[int, int, int] | None:
    return run_through(lookup.find_timestamp(log, timestamp, max_offset))


def latest_timestamp(log: Log, max_offset: int | None = None) -> tuple[int, int, int] | None:
    return run_through(lookup.find_latest_timestamp(log, log.end_offset if max_offset is None else max_offset))


def batch_of(*values: bytes | str, now_ms: int = 1_000, **options) -> bytearray:
    records = [Record(None, value.encode() if isinstance(value, str) else value) for value in values]
    return build_batch(records, now_ms=now_ms, **options)


def stage(log: Log, batch: bytearray, epoch: int = 0) -> int:
    return appending.stage(log, memoryview(batch), read_header(batch), epoch)


def append(log: Log, *values: bytes | str, epoch: int = 0, **options) -> int:
    base = stage(log, batch_of(*values, **options), epoch)
    appending.commit(log)
    return base


def records_in(log: Log, start: int | None = None, end: int | None = None) -> list[tuple[int, bytes]]:
    start = log.start_offset if start is None else start
    end = log.end_offset if end is None else end
    return [
        (record.offset, record.value)
        for _, batch in lookup.batches(log, start, end)
        for record in read_records(bytes(batch))
    ]


def copy_of(log: Log) -> bytearray:
    """All bytes of the log, as a follower would fetch them."""
    return bytearray(b"".join(bytes(batch) for _, batch in lookup.batches(log, log.start_offset, log.end_offset)))
