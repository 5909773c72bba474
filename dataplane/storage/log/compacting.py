"""The log's side of compaction: what would have to be done, and a new segment in the place of old ones.

The work between the two is done beside the log, in another process (`storage/cleaner`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.cleaner import marker
from dataplane.storage.cleaner.choice import Dirt, dirt_of
from dataplane.storage.cleaner.swap import swap_in
from dataplane.storage.log.state import LogState
from dataplane.storage.segments.segment import Segment
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from dataplane.storage.cleaner.work import NewSegment


class Compacting(LogState):
    """Takes what compaction has made."""

    __slots__ = ()

    def has_sealed_dirt(self) -> bool:
        """Whether compaction may have something to do; quick, for a log that has not."""
        return self._active.base_offset > self.cleaned_to and len(self._segments) > 1

    def dirt(self, high_watermark: int, now_ms: int) -> Dirt:
        """What compaction would have to do. Raises OSError."""
        limit = min(high_watermark, self.recovery_point)
        start = max(self.cleaned_to, self.start_offset)
        return dirt_of(self._segments, self._config, first_dirty=start, limit=limit, now_ms=now_ms)

    def replace(self, new: NewSegment) -> bool:
        """Put a compacted segment in the place of those it was made from.

        False, and nothing is done, where they are not all there any more. Raises LogFailedError.
        """
        first = self._segment_index(new.base_offset)
        old = self._segments[first : first + len(new.replaced)]
        if [(segment.base_offset, segment.size) for segment in old] != [part[:2] for part in new.replaced]:
            return False
        if old[-1] is self._active:
            return False
        try:
            for segment in old:
                segment.remove_indexes()  # and what is about to save them, in the background, does not
            doomed = swap_in(
                self._files, self.directory, new.base_offset, [s.base_offset for s in old], recovery.DELETED
            )
        except OSError as error:
            raise self._fail(error) from error
        for segment in old:
            segment.close()
        replacement = Segment(self._files, self.directory, new.base_offset, self._descriptors)
        replacement.trust(new.size)
        self._segments[first : first + len(old)] = [replacement]
        self.size_bytes += new.size - sum(segment.size for segment in old)
        files = self._files

        def give_back() -> None:
            files.sync_directory(self.directory)  # else the old names could come back beside the new ones
            for path in doomed:
                files.remove(path)

        self._background.run(give_back)
        return True

    def lower_compacted_to(self, offset: int) -> None:
        """What lies behind `offset` is not what was compacted: do not trust it to be on disk. Raises OSError."""
        if self.compacted_to > offset:
            marker.write(self._files, self.directory, self.topic_id, offset)
            self.compacted_to = offset
