"""Removing the oldest segments: by retention, or because DeleteRecords moved the start.

A file is renamed at once, so that a restart does not find it, and its space given back in the background. Whoever is
still sending a range of it keeps it until then.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.storage.log import closing, rolling
from dataplane.storage.segments import retention
from dataplane.storage.segments.batch_file import LOG
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from dataplane.storage.log.state import Log
    from dataplane.storage.segments.segment import Segment


def set_start_offset(log: Log, offset: int) -> None:
    """Records before `offset` are gone. Segments that hold nothing else are removed. Raises LogFailedError."""
    offset = min(offset, log.end_offset)
    if offset > log.start_offset:
        log.start_offset = offset
        _remove_oldest(log, log.segment_index(offset))


def is_due(log: Log, now_ms: int) -> bool:
    """Whether retention would remove anything, if nothing of the log had to be kept for its readers' sake.

    The first segment says so. Behind one that an open transaction keeps there may be thousands, whose times are in their files.
    """
    return _segments_to_delete(log, log.segments[:2], now_ms, log.end_offset) > 0


def apply_retention(log: Log, now_ms: int, limit: int) -> int:
    """Remove the oldest segments as the configuration says, none that has records from the offset `limit` on.

    Returns the bytes freed. Raises LogFailedError.
    """
    count = _segments_to_delete(log, log.segments, now_ms, limit)
    if count == len(log.segments):
        rolling.roll(log, log.end_offset)
    if count == 0:
        return 0
    before = log.size_bytes
    log.start_offset = max(log.start_offset, log.segments[count].base_offset)
    _remove_oldest(log, count)
    return before - log.size_bytes


def _segments_to_delete(log: Log, oldest: list[Segment], now_ms: int, limit: int) -> int:
    """How many of the oldest segments of a log, or of all, may go."""
    last_segment_too = limit >= log.end_offset and not log.is_staging
    return retention.segments_to_delete(
        oldest, log.config, now_ms, limit, log.size_bytes, last_segment_too=last_segment_too
    )


def _remove_oldest(log: Log, count: int) -> None:
    if count:
        gone, log.segments = log.segments[:count], log.segments[count:]
        log.size_bytes -= sum(segment.size for segment in gone)
        try:
            remove(log, gone)
            log.epochs.truncate_from_start(log.start_offset)
        except OSError as error:
            raise log.fail(error) from error


def remove(log: Log, segments: list[Segment]) -> None:
    """Rename their files now, and give the space back in the background. Raises OSError."""
    files = log.shared.files
    for segment in segments:
        closing.leave(log, segment)
        doomed = segment.path + LOG + recovery.DELETED
        segment.remove_indexes()
        if files.exists(segment.path + LOG):
            files.rename(segment.path + LOG, doomed)
            log.shared.removals.run(partial(files.remove, doomed))
