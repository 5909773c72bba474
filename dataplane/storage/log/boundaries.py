"""When a segment ends: the rule, without a log.

A new segment begins when the active one would grow beyond `segment.bytes`, when an index has reached
`segment.index.bytes`, and when a batch is more than `segment.ms` younger than the segment's first one (where batches have
no times: when the segment was begun so long ago). Between 0 and `segment.jitter.ms` are taken off that, a different part
for each segment, so that the segments of a broker do not all end together; drawn from the segment's name.

Timestamps are the producers' word. Where there is a floor (`least_roll_ms`) no segment ends for its age that was begun
more recently by our own clock: else records that are an hour apart would make a segment each.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.storage.config import LogConfig

MAX_RELATIVE = 2**31 - 1  # offsets and positions in an index are 32 bits


def easy_bytes(config: LogConfig, most_entries: int) -> int:
    """So many bytes have fewer entries than an index may hold: what is below is not asked for its index."""
    return min(config.segment_bytes, most_entries * config.index_interval_bytes)


def longest_ms(config: LogConfig, segment_name: str) -> int:
    """How long this segment is written to, its part of the jitter taken off."""
    most = min(config.segment_jitter_ms, config.rolls_after_ms - config.least_roll_ms)
    return config.rolls_after_ms - (zlib.crc32(segment_name.encode()) % most if most else 0)


def has_room(config: LogConfig, base: int, size: int, last_offset: int) -> bool:
    """Whether a segment that begins at `base` may be of `size` bytes and end with this offset."""
    return size <= config.segment_bytes and last_offset - base <= MAX_RELATIVE


def next_base(end: int, first_offset: int, last_offset: int) -> int:
    """Of a segment that begins with a batch of these offsets, behind one that ends at `end`.

    Where that ends, so that recovery sees none missing, also where offsets are.
    """
    return end if last_offset - end <= MAX_RELATIVE else first_offset
