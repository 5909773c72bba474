"""To disk: what is committed, up to everything at the orderly close.

The recovery point moves when the segments below it are on disk, and the epochs that begin there (see `epochs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.log.producing import Producing

if TYPE_CHECKING:
    from collections.abc import Iterator


class Flushing(Producing):
    """Makes it last."""

    __slots__ = ()

    def flush(self) -> None:
        """Force everything committed to disk (blocks). Raises LogFailedError."""
        end = self.end_offset
        try:
            self.syncer()()
        except OSError as error:
            raise self._fail(error) from error
        self.recovery_point = end

    def synced(self, end: int, truncations: int) -> None:
        """What `syncer` was asked for when the log ended at `end` is on disk, unless the log was cut since."""
        if truncations == self.truncations and not self.failed:
            self.recovery_point = max(self.recovery_point, end)

    def prepare_close(self) -> bool:
        """Write what `close` would, and sync nothing of it; False where nothing is to be synced. Raises LogFailedError.

        For who closes thousands of logs: syncs all that is below their directory at once, calls `replace_epochs`, tells
        `synced`, and closes.
        """
        try:
            self._settle()
            # What a power cut may damage must be behind the recovery point: there the next start believes no index.
            for path, content in self._unsaved_indexes(below=self.recovery_point):
                self._files.write_file(path, content)
            rest = [*self._unsaved_indexes(below=self.end_offset), *self._unsaved_snapshot()]
            for path, content in rest:
                self._files.put_file(path, content)
            if not self.epochs.is_saved():
                self.epochs.put_beside()
        except OSError as error:
            raise self._fail(error) from error
        return bool(rest) or not self._is_on_disk()

    def replace_epochs(self) -> bool:
        """What `prepare_close` put beside the file is on disk; False where that was nothing. Raises LogFailedError."""
        try:
            return self.epochs.take_place()
        except OSError as error:
            raise self._fail(error) from error

    def _is_on_disk(self) -> bool:
        return self.recovery_point >= self.end_offset and self.epochs.is_saved() and self._cut_work is None

    def _settle(self) -> None:
        if self.founding is not None:
            self.founding.settle()

    def close(self) -> None:
        """Flush, write the active segment's indexes, close (also when it raises LogFailedError)."""
        try:
            if not self.failed:
                self._settle()
                if not self._is_on_disk():
                    self.flush()
                for path, content in [*self._unsaved_indexes(below=self.end_offset), *self._unsaved_snapshot()]:
                    self._files.write_file(path, content)
        except OSError as error:
            raise self._fail(error) from error
        finally:
            self.abandon()

    def _unsaved_indexes(self, *, below: int) -> Iterator[tuple[str, bytes]]:
        for segment, end in self._with_ends():
            if end <= below and segment.has_unsaved_index():
                yield from segment.packed_indexes()

    def _unsaved_snapshot(self) -> Iterator[tuple[str, bytes]]:
        if self.end_offset not in self._snapshots and self.end_offset > self._segments[0].base_offset:
            yield self._snapshot()
            self._snapshots.append(self.end_offset)

    def abandon(self) -> None:
        """Close the files and leave them as they are: the log is about to be deleted or moved, or has failed."""
        self.failed = True
        self._presence.end()
        self.epochs.abandon()
        if self.founding is not None:
            self.founding.abandon()
        for segment in self._segments:
            segment.close()
