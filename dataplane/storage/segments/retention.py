"""Which segments are old enough, or too many: whole segments, oldest first, never from the limit on.

The limit is the last stable offset: what is not committed stays, and so does an open transaction, from its first record on.
Kafka goes by the high watermark; where retention.bytes is less than what a transaction spans, its readers get the rest of one
whose beginning is gone.

by time   the youngest record of the segment is older than retention.ms. The newest segment goes too (an empty one
          takes its place), so that a topic nobody writes to becomes empty. Where no record has a timestamp, as in
          messages of format 0, the time when the segment was last written counts instead, as in Kafka.
by size   without the segment the log still has retention.bytes. The newest segment stays.

What compaction has emptied goes with either: it would keep what is behind it. Emptied is what has no records, not what
has no times: where producers give none, the records of a compacted topic have none either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.storage.config import LogConfig
    from dataplane.storage.segments.segment import Segment


def segments_to_delete(
    segments: list[Segment],
    config: LogConfig,
    now_ms: int,
    limit: int,
    size_bytes: int,
    *,
    last_segment_too: bool,
) -> int:
    """How many of the oldest segments may go."""
    count = 0
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is None and (segment.size == 0 or not last_segment_too):
            break
        if following is not None and following.base_offset > limit:
            break
        surplus = following is not None and 0 <= config.retention_bytes <= size_bytes - segment.size
        emptied = following is not None and _is_emptied(segment, config)
        if not (surplus or emptied or 0 <= config.retention_ms < now_ms - segment.youngest_ms()):
            break
        count += 1
        size_bytes -= segment.size
    return count


def _is_emptied(segment: Segment, config: LogConfig) -> bool:
    if max(config.retention_ms, config.retention_bytes) < 0:
        return False
    return segment.size == 0 or (config.is_compacted and segment.max_timestamp < 0 and not segment.has_records())
