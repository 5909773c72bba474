"""Removing the oldest segments: by retention, or because DeleteRecords moved the start.

A file is renamed at once, so that a restart does not find it, and its space given back in the background. Whoever is
still sending a range of it keeps it until then.
"""

from __future__ import annotations

from dataplane.storage.log.rolling import Rolling
from dataplane.storage.segments import retention
from dataplane.storage.segments.batch_file import LOG
from dataplane.storage.segments.segment import Segment
from dataplane.storage.startup import recovery


class Removing(Rolling):
    """Gives space back."""

    __slots__ = ()

    def set_start_offset(self, offset: int) -> None:
        """Records before `offset` are gone. Segments that hold nothing else are removed. Raises LogFailedError."""
        offset = min(offset, self.end_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            keep = self._segment_index(offset)
            self._remove_oldest(keep)

    def apply_retention(self, now_ms: int, high_watermark: int) -> int:
        """Remove the oldest segments as the configuration says; returns the bytes freed. Raises LogFailedError."""
        last_segment_too = high_watermark >= self.end_offset and not self._notes
        count = retention.segments_to_delete(
            self._segments, self.config, now_ms, high_watermark, self.size_bytes, last_segment_too=last_segment_too
        )
        if count == len(self._segments):
            self._roll(self.end_offset)
        if count == 0:
            return 0
        before = self.size_bytes
        self.start_offset = max(self.start_offset, self._segments[count].base_offset)
        self._remove_oldest(count)
        return before - self.size_bytes

    def _remove_oldest(self, count: int) -> None:
        if count:
            gone, self._segments = self._segments[:count], self._segments[count:]
            self.size_bytes -= sum(segment.size for segment in gone)
            try:
                self._remove(gone)
                self.epochs.truncate_from_start(self.start_offset)
            except OSError as error:
                raise self._fail(error) from error

    def _remove(self, segments: list[Segment]) -> None:
        """Rename now, so that a restart does not find them; give the space back in the background."""
        for segment in segments:
            segment.close()
            doomed = segment.path + LOG + recovery.DELETED
            segment.remove_indexes()
            if self._files.exists(segment.path + LOG):
                self._files.rename(segment.path + LOG, doomed)
                self._background.run(lambda path=doomed: self._files.remove(path))  # type: ignore[misc]
