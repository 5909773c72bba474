"""One replica's log: batches in segments, appended in groups, read as file ranges.

    start_offset <= what is readable < end_offset <= staged_end

Appending has two steps, because everything that arrives in one turn of the loop is written with one system call:
`stage` gives a batch its offsets (the leader's) or checks those it has (a follower's) and remembers the memory;
`commit` writes. **`end_offset` moves only after the bytes are in the file**: whoever reads up to it, or tells a
follower of it, can rely on them. Offsets of staged batches are promises that only this turn's callers know.

When the disk refuses, the log has failed: nothing is appended any more and what was staged is dropped. Recovery at the
next start cuts what was half written.

This file keeps the order of things; segments (`segment`), recovery at open (`recovery`), deletion (`retention`), leader
epochs and producer state have files of their own.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING

from dataplane.records.header import BatchHeader, CorruptBatchError, check_stored, split_batches
from dataplane.storage import lookup, recovery, retention
from dataplane.storage.config import LogConfig
from dataplane.storage.epochs import Epochs
from dataplane.storage.errors import LogFailedError, OffsetOutOfRangeError
from dataplane.storage.producers import Producers
from dataplane.storage.segment import LOG, Note, Segment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dataplane.doors import Background, Files
    from dataplane.storage.files import FileSlice
    from dataplane.tasks import Future

__all__ = ["CorruptBatchError", "Log", "LogConfig", "LogFailedError", "OffsetOutOfRangeError"]

_MAX_RELATIVE = 2**31 - 1  # offsets and positions in an index are 32 bits
_write_place = struct.Struct(">qii").pack_into


class Log:
    """The log of one partition on this broker."""

    __slots__ = (
        "_active",
        "_background",
        "_buffers",
        "_bytes_staged",
        "_files",
        "_notes",
        "_read_last",
        "_segments",
        "_truncations",
        "bytes_cut",
        "config",
        "directory",
        "end_offset",
        "epochs",
        "failed",
        "partition",
        "producers",
        "recovery_point",
        "size_bytes",
        "staged_end",
        "start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        files: Files,
        background: Background,
        directory: str,
        *,
        topic: str,
        partition: int,
        topic_id: UUID,
        config: LogConfig | None = None,
        clean: bool = False,
        recovery_point: int = 0,
        start_offset: int = 0,
    ) -> None:
        """Open the log in `directory`, which exists. Raises OSError.

        `clean` says that it was closed in order; if not, what lies behind `recovery_point` is checked and a torn or
        corrupt tail is cut. A new log begins at `start_offset`.
        """
        self._files, self._background = files, background
        self.directory, self.topic, self.partition, self.topic_id = directory, topic, partition, topic_id
        self.config = config or LogConfig()
        self.failed = False
        self._truncations = 0
        self._read_last: Segment | None = None
        self.epochs = Epochs(files, directory)
        self.producers = Producers()
        loaded = recovery.load(
            files,
            directory,
            self.epochs,
            self.producers,
            self.config,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
        )
        self._segments, self._active = loaded.segments, loaded.segments[-1]
        self.end_offset: int = loaded.end_offset
        self.staged_end: int = loaded.end_offset
        self.bytes_cut = loaded.bytes_cut
        self.start_offset = min(max(start_offset, self._segments[0].base_offset), self.end_offset)
        known = max(recovery_point, self._segments[0].base_offset)
        self.recovery_point = self.end_offset if clean else min(known, self.end_offset)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self._drop_staged()

    # --- appending ----------------------------------------------------------------------------------------------------

    def stage(self, batch: memoryview, header: BatchHeader, leader_epoch: int) -> int:
        """Take a checked batch as the leader; returns the base offset it will have.

        Writes base offset and leader epoch into the batch, whose memory must stay as it is until `commit` in the same
        turn. Raises LogFailedError (so may `commit`, later, when the log has failed).
        """
        base = self.staged_end
        length = header.batch_length
        last = base + header.last_offset_delta
        _write_place(batch, 0, base, length, leader_epoch)
        self._buffers.append(batch)
        self._notes.append((base, last, length + 12, header.max_timestamp))
        self._bytes_staged += length + 12
        self.staged_end = last + 1
        if leader_epoch > self.epochs.newest:
            self._begin_epoch(leader_epoch, base)
        if header.producer_id >= 0:
            self.producers.update(header, base)
        return base

    def stage_replica(self, batches: memoryview) -> None:
        """Take what the leader's log holds behind ours. A partial batch at the end is ignored.

        Raises CorruptBatchError, having staged nothing, unless every batch is whole and follows the one before.
        """
        checked = split_batches(batches)
        expected = self.staged_end
        for header, batch in checked:
            check_stored(batch, header)
            if header.base_offset != expected:
                raise CorruptBatchError(f"a batch at offset {header.base_offset} instead of {expected}")
            expected = header.next_offset
        for header, batch in checked:
            if header.leader_epoch > self.epochs.newest:
                self._begin_epoch(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self.producers.update(header, header.base_offset)
            self._buffers.append(batch)
            self._notes.append((header.base_offset, header.last_offset, header.size, header.max_timestamp))
            self._bytes_staged += header.size
        self.staged_end = expected

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        try:
            self.epochs.assign(epoch, offset)
        except OSError as error:
            raise self._fail(error) from error

    def commit(self) -> None:
        """Write what was staged; `end_offset` is where `staged_end` was. Raises LogFailedError."""
        if self.failed:  # also when nothing is staged any more: the failure dropped it, and somebody waits for it
            self._drop_staged()
            raise LogFailedError("the log failed earlier")
        notes = self._notes
        if not notes:
            return
        active = self._active
        if (
            active.size + self._bytes_staged <= self.config.segment_bytes
            and self.staged_end - active.base_offset <= _MAX_RELATIVE
        ):
            self._write(self._buffers, notes)
        else:
            for buffers, group in self._groups():
                if self._is_full_for(group[0]):
                    self._roll(group[0][0])
                self._write(buffers, group)
        self._drop_staged()

    def _write(self, buffers: list[memoryview], notes: list[Note]) -> None:
        active = self._active
        before = active.size
        try:
            active.append(buffers)
        except OSError as error:
            raise self._fail(error) from error
        active.note(notes, self.config.index_interval_bytes)
        self.size_bytes += active.size - before
        self.end_offset = notes[-1][1] + 1

    def _groups(self) -> Iterator[tuple[list[memoryview], list[Note]]]:
        """What was staged, cut where a new segment has to begin."""
        buffers: list[memoryview] = []
        notes: list[Note] = []
        base, size = self._active.base_offset, self._active.size
        for buffer, note in zip(self._buffers, self._notes, strict=True):
            if size and not self._has_room(base, size, note):
                if notes:
                    yield buffers, notes
                buffers, notes = [], []
                base, size = note[0], 0
            buffers.append(buffer)
            notes.append(note)
            size += note[2]
        yield buffers, notes

    def _has_room(self, base: int, size: int, note: Note) -> bool:
        return size + note[2] <= self.config.segment_bytes and note[1] - base <= _MAX_RELATIVE

    def _is_full_for(self, note: Note) -> bool:
        return self._active.size > 0 and not self._has_room(self._active.base_offset, self._active.size, note)

    def _roll(self, base_offset: int) -> None:
        """Begin a new segment. The old one goes to disk in the background; then recovery need not look at it."""
        sealed = self._active
        # All that is not known to be on disk, not only the last: an earlier sync may be under way or never have run.
        unsynced = [segment.file for segment, end in self._with_ends() if end > self.recovery_point]
        self._active = Segment(self._files, self.directory, base_offset)
        self._segments.append(self._active)
        try:
            _ = self._active.file
        except OSError as error:
            raise self._fail(error) from error
        indexes = sealed.packed_indexes()
        truncations, files = self._truncations, self._files

        def settle() -> None:
            for file in unsynced:
                file.sync()
            for path, content in indexes:
                files.write_file(path, content)

        def settled(future: Future[None]) -> None:
            if isinstance(future.error, OSError):
                self._fail(future.error)
            elif future.error is None and truncations == self._truncations:
                self.recovery_point = max(self.recovery_point, base_offset)
                sealed.forget_index()
                if sealed is not self._read_last:
                    sealed.close()

        self._background.run(settle).then(settled)

    def _fail(self, error: OSError) -> LogFailedError:
        self.failed = True
        self._drop_staged()
        return LogFailedError(error.errno, error.strerror)

    def _drop_staged(self) -> None:
        self._buffers: list[memoryview] = []
        self._notes: list[Note] = []
        self._bytes_staged = 0
        self.staged_end = self.end_offset

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, max_offset: int, *, at_least_one: bool) -> FileSlice | None:
        """Whole batches from the one that holds `offset` on, at most `max_bytes`, nothing at or after `max_offset`.

        None when there is nothing there (yet), or when the first batch is larger than `max_bytes` and not
        `at_least_one`. Of one segment: more may follow. Raises OffsetOutOfRangeError, OSError.
        """
        end = self.end_offset
        if not self.start_offset <= offset <= end:
            raise OffsetOutOfRangeError(offset, self.start_offset, end)
        bound = min(max_offset, end)
        if offset >= bound:
            return None
        active = self._active
        if offset >= active.base_offset:
            return active.slice(offset, None if bound == end else bound, max_bytes, at_least_one=at_least_one)
        for index in range(self._segment_index(offset), len(self._segments)):
            segment = self._segments[index]
            self._keep_open(segment)
            whole = bound >= self._segment_end(index)
            found = segment.slice(offset, None if whole else bound, max_bytes, at_least_one=at_least_one)
            # Nothing although the segment goes on: it ends with a gap, which compaction left.
            if found is not None or not whole or segment.position_of(offset) < segment.size:
                return found
        return None

    def _keep_open(self, segment: Segment) -> None:
        """A log holds the descriptors of its active segment and of the one read last: all tenants share what there is."""
        last, self._read_last = self._read_last, segment
        if last is not None and last is not segment and last is not self._active:
            last.close()

    def bytes_between(self, start: int, end: int) -> int:
        """Bytes of the batches from the one that holds `start` on, up to the one that holds `end`. Raises OSError.

        Quick where the two are not far apart: it does not look at what lies before or behind.
        """
        first, last = self._segment_index(start), self._segment_index(end)
        whole = sum(segment.size for segment in self._segments[first:last])
        return whole + self._segments[last].position_of(end) - self._segments[first].position_of(start)

    def batches(self, start: int, end: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches with records in [start, end), read piece by piece. Raises OffsetOutOfRangeError, OSError."""
        return lookup.batches(self, start, end)

    def offset_for_timestamp(self, timestamp: int, max_offset: int) -> tuple[int, int, int] | None:
        """(offset, timestamp, leader epoch) of the first record at least as young, below `max_offset`."""
        return lookup.offset_for_timestamp(self, self._segments, timestamp, max_offset)

    def latest_timestamp(self, max_offset: int | None = None) -> tuple[int, int, int] | None:
        """(offset, timestamp, leader epoch) of the youngest record; None when it is not below `max_offset`."""
        return lookup.latest_timestamp(self, self._segments, self.end_offset if max_offset is None else max_offset)

    def _segment_index(self, offset: int) -> int:
        return max(0, bisect_right(self._segments, offset, key=_base_offset) - 1)

    def _segment_end(self, index: int) -> int:
        """The offset at which the next segment begins, or the log ends."""
        following = index + 1
        return self._segments[following].base_offset if following < len(self._segments) else self.end_offset

    def _with_ends(self) -> list[tuple[Segment, int]]:
        return [(segment, self._segment_end(index)) for index, segment in enumerate(self._segments)]

    # --- cutting ------------------------------------------------------------------------------------------------------

    def truncate(self, offset: int) -> None:
        """Remove every batch with a record at or after `offset`: on disk when this returns. Raises LogFailedError.

        On disk at once, because the leader-epoch checkpoint forgets durably what is cut: after a power failure the
        removed batches must not come back as if they belonged to a newer epoch.
        """
        self._drop_staged()
        try:
            if offset >= self.end_offset:
                # Nothing to cut, but an epoch that began at the very end may contradict the leader's (KAFKA-10706).
                self.epochs.truncate_from_end(offset)
            else:
                self._truncate(max(offset, self._segments[0].base_offset))
        except OSError as error:
            raise self._fail(error) from error

    def _truncate(self, offset: int) -> None:
        keep = self._segment_index(offset) + 1
        self._truncations += 1
        gone, self._segments = self._segments[keep:], self._segments[:keep]
        self._remove(gone)
        self._active = self._segments[-1]
        position = self._active.position_of(offset)
        first_gone = next(self._active.headers(position), None)
        # A batch that reaches across the offset goes whole.
        end = offset if first_gone is None else min(offset, first_gone[0].base_offset)
        self._active.truncate(position)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self.end_offset = self.staged_end = end
        self.recovery_point = min(self.recovery_point, end)
        self.start_offset = min(self.start_offset, end)
        self.epochs.truncate_from_end(end)
        if self.producers.holds_any_from(end):
            recovery.replay_producers(self.producers, self._segments)

    def reset(self, start_offset: int) -> None:
        """Throw everything away and begin again at `start_offset`. Raises LogFailedError."""
        self._drop_staged()
        self._truncations += 1
        try:
            self._remove(self._segments)
            self.epochs.clear()
            self._active = Segment(self._files, self.directory, start_offset)
            self._segments = [self._active]
            _ = self._active.file
        except OSError as error:
            raise self._fail(error) from error
        self.producers.clear()
        self.size_bytes = 0
        self.start_offset = self.end_offset = self.staged_end = self.recovery_point = start_offset

    def set_start_offset(self, offset: int) -> None:
        """Records before `offset` are gone. Segments that hold nothing else are removed. Raises LogFailedError."""
        offset = min(offset, self.end_offset)
        if offset > self.start_offset:
            self.start_offset = offset
            keep = self._segment_index(offset)
            self._remove_oldest(keep)

    def apply_retention(self, now_ms: int, high_watermark: int) -> int:
        """Remove the oldest segments as the configuration says; returns the bytes freed. Raises LogFailedError."""
        for segment in self._segments[:-1]:
            if segment is not self._read_last:
                segment.close()  # who looked for times, for example, has opened them
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

    # --- the end ------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Force everything committed to disk (blocks). Raises LogFailedError."""
        end = self.end_offset
        try:
            for segment, segment_end in self._with_ends():
                if segment_end > self.recovery_point:
                    segment.file.sync()
        except OSError as error:
            raise self._fail(error) from error
        self.recovery_point = end

    def close(self) -> None:
        """Flush, write the active segment's indexes, close (also when it raises LogFailedError)."""
        try:
            if not self.failed and self.recovery_point < self.end_offset:
                self.flush()
                for path, content in self._active.packed_indexes():
                    self._files.write_file(path, content)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files and leave them as they are: the log is about to be deleted, or has failed."""
        self.failed = True
        for segment in self._segments:
            segment.close()


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
