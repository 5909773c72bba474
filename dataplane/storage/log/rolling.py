"""When a segment ends, and the next begins.

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

from dataplane.storage.config import FOREVER, LogConfig
from dataplane.storage.log.state import LogState
from dataplane.storage.segments.batch_file import NO_TIMESTAMP, Note
from dataplane.storage.segments.index import ENTRY_BYTES, TIME_ENTRY_BYTES
from dataplane.storage.segments.segment import Segment

if TYPE_CHECKING:
    from dataplane.tasks import Future

MAX_RELATIVE = 2**31 - 1  # offsets and positions in an index are 32 bits
_BY_CLOCK, _UNKNOWN = -2, -3
"""Instead of the timestamp after which a segment ends. Below all timestamps, so that every batch asks."""


class Rolling(LogState):
    """Ends segments."""

    __slots__ = ()

    @property
    def config(self) -> LogConfig:
        """What is set about this log. May be replaced at any time."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        # So many bytes have fewer entries than an index may hold: what is below is not asked for its index.
        entries = min(config.segment_index_bytes // ENTRY_BYTES, config.segment_index_bytes // TIME_ENTRY_BYTES - 1)
        self._easy_bytes = min(config.segment_bytes, max(0, entries) * config.index_interval_bytes)
        self._look_at_time_again()

    def _look_at_time_again(self) -> None:
        self._roll_after = _UNKNOWN if self._active.size else FOREVER

    def _must_roll(self, base: int, size: int, note: Note) -> bool:
        """Whether the active segment, `size` bytes with what is to be written to it, ends before this batch."""
        config = self._config
        if size + note[2] > config.segment_bytes or note[1] - base > MAX_RELATIVE:
            return True
        active = self._active
        if not active.size:
            return False
        try:
            if self._roll_after == _UNKNOWN:
                self._roll_after = self._end_of_time(active.first_timestamp())
            if self._roll_after == _BY_CLOCK:
                late = self._now_ms() - self._created_ms > config.rolls_after_ms - self._jitter()
            else:
                late = note[3] > self._roll_after and self._is_old_enough()
            return late or (size > self._easy_bytes and active.is_index_full(config.segment_index_bytes))
        except OSError as error:
            raise self._fail(error) from error

    def _is_old_enough(self) -> bool:
        least = self._config.least_roll_ms
        return not least or self._now_ms() - self._created_ms >= least

    def _end_of_time(self, first_timestamp: int) -> int:
        """After which timestamp a segment whose first batch has this one ends."""
        if first_timestamp == NO_TIMESTAMP:
            return _BY_CLOCK
        return first_timestamp + self._config.rolls_after_ms - self._jitter()

    def _jitter(self) -> int:
        most = min(self._config.segment_jitter_ms, self._config.rolls_after_ms - self._config.least_roll_ms)
        name = f"{self.topic}-{self.partition}-{self._active.base_offset}"
        return zlib.crc32(name.encode()) % most if most else 0

    @staticmethod
    def _next_base(end: int, note: Note) -> int:
        """Of a new segment: where the one before ends, so that recovery sees none missing, also where offsets are."""
        return end if note[1] - end <= MAX_RELATIVE else note[0]

    def _roll(self, base_offset: int) -> None:
        """Begin a new segment. The old one goes to disk in the background; then recovery need not look at it."""
        sealed = self._active
        sync = self.syncer()
        self._active = Segment(self._files, self.directory, base_offset, self._descriptors)
        self._segments.append(self._active)
        self._created_ms, self._roll_after = self._now_ms(), FOREVER
        try:
            _ = self._active.file
        except OSError as error:
            raise self._fail(error) from error
        save_indexes, truncations, presence = sealed.index_saver(), self.truncations, self._presence

        def settle() -> None:
            sync()
            presence.run(save_indexes)

        def settled(future: Future[None]) -> None:
            if isinstance(future.error, OSError):
                self._fail(future.error)
            elif future.error is None and truncations == self.truncations:
                self.recovery_point = max(self.recovery_point, base_offset)
                sealed.release()
                sealed.close()

        self._background.run(settle).then(settled)
