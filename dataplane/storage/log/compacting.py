"""The log's side of compaction: what would have to be done, and a new segment in the place of old ones.

The work between the two is done beside the log, in another process (`storage/cleaner`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.cleaner import marker
from dataplane.storage.cleaner.choice import Dirt, dirt_of
from dataplane.storage.cleaner.swap import swap_in
from dataplane.storage.log import closing
from dataplane.storage.segments.segment import Segment
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from dataplane.storage.cleaner.work import NewSegment
    from dataplane.storage.log.state import Log


def has_sealed_dirt(log: Log) -> bool:
    """Whether compaction may have something to do; quick, for a log that has not."""
    return log.active.base_offset > log.cleaned_to and len(log.segments) > 1


def dirt_in(log: Log, high_watermark: int, now_ms: int) -> Dirt:
    """What compaction would have to do. Raises OSError."""
    limit = min(high_watermark, log.recovery_point)
    start = max(log.cleaned_to, log.start_offset)
    return dirt_of(log.segments, log.config, first_dirty=start, limit=limit, now_ms=now_ms)


def replace_segments(log: Log, new: NewSegment) -> bool:
    """Put a compacted segment in the place of those it was made from.

    False, and nothing is done, where they are not all there any more, or some thread is writing an index of one: it would put
    that in the place of the new segment's, and remove it. Raises LogFailedError.
    """
    files = log.shared.files
    first = log.segment_index(new.base_offset)
    old = log.segments[first : first + len(new.replaced)]
    if [(segment.base_offset, segment.size) for segment in old] != [part[:2] for part in new.replaced]:
        return False
    if old[-1] is log.active or any(segment.is_being_saved() for segment in old):
        return False
    if any(segment.void_saves() for segment in old):  # a thread has begun since; from here on none does
        return False
    try:
        for segment in old:
            segment.remove_indexes()
        bases = [segment.base_offset for segment in old]
        doomed = swap_in(files, log.directory, new.base_offset, bases, recovery.DELETED, has_aborted=new.has_aborted)
    except OSError as error:
        raise log.fail(error) from error
    for segment in old:
        closing.leave(log, segment)
    replacement = Segment(files, log.directory, new.base_offset, log.shared.descriptors)
    replacement.trust(new.size)
    replacement.has_aborted = new.has_aborted
    log.segments[first : first + len(old)] = [replacement]
    log.size_bytes += new.size - sum(segment.size for segment in old)

    def give_back() -> None:
        files.sync_directory(log.directory)  # else the old names could come back beside the new ones
        for path in doomed:
            files.remove(path)

    log.shared.removals.run(give_back)
    return True


def lower_compacted_to(log: Log, offset: int) -> None:
    """What lies behind `offset` is not what was compacted: do not trust it to be on disk. Raises OSError."""
    if log.compacted_to > offset:
        marker.write(log.shared.files, log.directory, log.topic_id, offset)
        log.compacted_to = offset
