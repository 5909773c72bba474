"""Which log to compact next, and how much of it (as Kafka's LogCleanerManager decides).

A log is *clean* up to where the last round ended, and *dirty* from there to the first segment that must be left alone:

    the active one, and the one before while the active one is empty: followers find our end by its last batch
    anything above the high watermark, which may yet be cut
    anything that is not on disk
    what is younger than min.compaction.lag.ms

It is worth a round when the dirty part is more than min.cleanable.dirty.ratio of both, or when something in it has waited
for longer than max.compaction.lag.ms. Of several the one with the largest ratio comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.cleaner.work import OldSegment
from dataplane.storage.config import FOREVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.storage.config import LogConfig
    from dataplane.storage.segments.segment import Segment


class Dirt(NamedTuple):
    """What a round would have to do in a log."""

    segments: tuple[OldSegment, ...]
    first_dirty: int
    ratio: float
    is_overdue: bool

    def is_worth_it(self, config: LogConfig) -> bool:
        dirty = self.segments[-1].end_offset > self.first_dirty if self.segments else False
        return dirty and (self.is_overdue or self.ratio > config.min_cleanable_dirty_ratio)


def dirt_of(segments: Sequence[Segment], config: LogConfig, *, first_dirty: int, limit: int, now_ms: int) -> Dirt:
    """`limit`: nothing at or above may be touched. Raises OSError."""
    bases = [segment.base_offset for segment in segments]
    sealed = [OldSegment(s.base_offset, s.size, end) for s, end in zip(segments, bases[1:], strict=False)]
    while sealed and segments[-1].size == 0 and sealed[-1].size == 0:
        sealed.pop()
    if sealed and segments[-1].size == 0:
        sealed.pop()
    count = 0
    while count < len(sealed) and sealed[count].end_offset <= limit:
        lag = config.min_compaction_lag_ms
        if lag and sealed[count].end_offset > first_dirty and segments[count].max_timestamp > now_ms - lag:
            break
        count += 1
    chosen = tuple(sealed[:count])
    dirty_bytes = sum(old.size for old in chosen if old.end_offset > first_dirty)
    total = sum(old.size for old in chosen)
    dirty = [s for s, old in zip(segments, chosen, strict=False) if old.end_offset > first_dirty and old.size]
    return Dirt(chosen, first_dirty, dirty_bytes / total if total else 0.0, _is_overdue(dirty, config, now_ms))


def _is_overdue(dirty: Sequence[Segment], config: LogConfig, now_ms: int) -> bool:
    limit = config.max_compaction_lag_ms
    if limit >= FOREVER:
        return False
    return any(0 <= segment.first_timestamp() < now_ms - limit for segment in dirty)
