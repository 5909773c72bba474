"""One replica's log: batches in segments, appended in groups, read as file ranges.

    start_offset <= what is readable < end_offset <= staged_end

Appending has two steps, because everything that arrives in one turn of the loop is written with one system call:
`stage` gives a batch its offsets (the leader's) or checks those it has (a follower's) and remembers the memory;
`commit` writes. **`end_offset` moves only after the bytes are in the file**: whoever reads up to it, or tells a
follower of it, can rely on them. Offsets of staged batches are promises that only this turn's callers know.

When the disk refuses, the log has failed: nothing is appended any more and what was staged is dropped. Recovery at the
next start cuts what was half written.

A new segment begins when the active one would grow beyond `segment.bytes`, when an index has reached
`segment.index.bytes`, and when a batch is more than `segment.ms` younger than the segment's first one (where batches have
no times: when the segment was begun so long ago). Between 0 and `segment.jitter.ms` are taken off that, a different part
for each segment, so that the segments of a broker do not all end together; drawn from the segment's name.

This file keeps the order of things; segments (`segment`), recovery at open (`recovery`), deletion (`retention`), leader
epochs and producer state have files of their own.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from typing import TYPE_CHECKING

from dataplane.records.header import BatchHeader, CorruptBatchError, check_stored, split_batches
from dataplane.records.steps import run_through
from dataplane.storage import cuts, lookup, recovery, retention, snapshots
from dataplane.storage.cleaner.choice import Dirt, dirt_of
from dataplane.storage.cleaner.swap import swap_in, write_compacted_to
from dataplane.storage.config import FOREVER, LogConfig
from dataplane.storage.descriptors import Descriptors
from dataplane.storage.epochs import Epochs
from dataplane.storage.errors import LogFailedError, OffsetOutOfRangeError
from dataplane.storage.index import ENTRY_BYTES, TIME_ENTRY_BYTES
from dataplane.storage.producers import Producers
from dataplane.storage.segment import LOG, NO_TIMESTAMP, Note, Segment, note_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from dataplane.doors import Background, File, Files
    from dataplane.records.steps import Steps
    from dataplane.storage.cleaner.work import NewSegment
    from dataplane.storage.files import FileSlice
    from dataplane.tasks import Future

__all__ = ["CorruptBatchError", "Log", "LogConfig", "LogFailedError", "OffsetOutOfRangeError"]

_OF_ONE_LOG = 2  # segments that are open at a time, where a log is on its own
_MAX_RELATIVE = 2**31 - 1  # offsets and positions in an index are 32 bits
_BY_CLOCK, _UNKNOWN = -2, -3
"""Instead of the timestamp after which a segment ends. Below all timestamps, so that every batch asks."""
_write_place = struct.Struct(">qii").pack_into


class Log:
    """The log of one partition on this broker."""

    __slots__ = (
        "_active",
        "_background",
        "_buffers",
        "_bytes_staged",
        "_config",
        "_created_ms",
        "_descriptors",
        "_easy_bytes",
        "_files",
        "_is_late",
        "_notes",
        "_now_ms",
        "_producers_to",
        "_roll_after",
        "_segments",
        "_snapshots",
        "bytes_cut",
        "cleaned_to",
        "compacted_to",
        "cut_marks",
        "directory",
        "end_offset",
        "epochs",
        "failed",
        "on_failure",
        "partition",
        "producers",
        "recovery_point",
        "size_bytes",
        "staged_end",
        "start_offset",
        "topic",
        "topic_id",
        "truncations",
    )

    producers: Producers

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
        cleaned_to: int = 0,
        descriptors: Descriptors | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        """Open the log in `directory`, which exists. Raises OSError.

        `clean` says that it was closed in order; if not, what lies behind `recovery_point` is checked and a torn or
        corrupt tail is cut. A new log begins at `start_offset`. Compaction's last round ended at `cleaned_to`.
        `descriptors` is what all logs share, `now_ms` the wall's clock.
        """
        self._files, self._background = files, background
        self.directory, self.topic, self.partition, self.topic_id = directory, topic, partition, topic_id
        self._descriptors = descriptors or Descriptors(_OF_ONE_LOG, background)
        self._now_ms = now_ms or _no_clock
        self._config = config or LogConfig()
        self.failed = False
        self.on_failure: Callable[[OSError], None] | None = None  # the owner hears of the first error
        self.truncations = 0  # and resets: whoever works beside us compares
        self.cut_marks: tuple[str, ...] = ()  # that the next checkpoint makes superfluous (see `cuts`)
        if not clean:
            names, lowest = cuts.read(files, directory)
            self.cut_marks = tuple(names)
            if lowest is not None:
                recovery_point, start_offset = min(recovery_point, lowest), min(start_offset, lowest)
                cleaned_to = min(cleaned_to, lowest)
        self.epochs = Epochs(files, directory)
        loaded = recovery.load(
            files,
            directory,
            self.epochs,
            self._config,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            descriptors=self._descriptors,
        )
        self._segments, self._active = loaded.segments, loaded.segments[-1]
        self.end_offset: int = loaded.end_offset
        self.staged_end: int = loaded.end_offset
        self.bytes_cut = loaded.bytes_cut
        self.start_offset = min(max(start_offset, self._segments[0].base_offset), self.end_offset)
        self.compacted_to = loaded.compacted_to
        self.cleaned_to = cleaned_to if cleaned_to <= self.end_offset else 0
        known = max(recovery_point, loaded.compacted_to, self._segments[0].base_offset)
        self.recovery_point = self.end_offset if clean else min(known, self.end_offset)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self._drop_staged()
        self._created_ms = self._now_ms()
        self.config = self._config
        self._snapshots = loaded.snapshots
        self._producers_to: int | None = self.end_offset  # up to here `producers` has to be loaded; None: it is
        if self.size_bytes and self.end_offset not in self._snapshots:
            _ = self.producers  # the headers have just been read, or there are few of them
        if not clean:
            # What was created, renamed or removed before the stop, and by recovery, is as good as what is synced later.
            files.sync_directory(directory)
            self._keep_up_with_checkpoints(recovery_point, start_offset)
            self._cover_front()

    def _keep_up_with_checkpoints(self, recovery_point: int, start_offset: int) -> None:
        """Recovery has ended the log below what the checkpoints say. Offsets that were deleted are not given again."""
        if start_offset > self.end_offset:
            self.reset(start_offset)
        elif recovery_point > self.end_offset:
            self._write_cut_mark(self.end_offset)

    def _cover_front(self) -> None:
        """Segments that were removed may come back, without the epochs that were forgotten with them."""
        first = self.epochs.first_start()
        if self.start_offset < (self.end_offset if first is None else first):
            found: list[tuple[int, int]] = []
            for segment in self._segments:
                for header, _ in segment.headers():
                    if first is not None and header.base_offset >= first:
                        break
                    if not found or header.leader_epoch > found[-1][0]:
                        found.append((header.leader_epoch, header.base_offset))
            self.epochs.extend_front(found)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Producers:
            """`producers` when they are first asked for: of an idle log not even the snapshot is read. OSError."""
            if name != "producers":
                raise AttributeError(name)
            producers = Producers()
            self._load_producers(producers, self._producers_to)
            self._producers_to = None
            self.producers = producers
            return producers

    def _load_producers(self, producers: Producers, end: int) -> None:
        recovery.load_producers(producers, self._files, self.directory, self._snapshots, self._segments, end)

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

    # --- appending ----------------------------------------------------------------------------------------------------

    def stage(self, batch: memoryview, header: BatchHeader, leader_epoch: int) -> int:
        """Take a checked batch as the leader; returns the base offset it will have.

        Writes base offset and leader epoch into the batch, whose memory must stay as it is until `commit` in the same
        turn. Raises LogFailedError (so may `commit`, later, when the log has failed).
        """
        base = self.staged_end
        length = header.batch_length
        last = base + header.last_offset_delta
        timestamp = header.max_timestamp
        _write_place(batch, 0, base, length, leader_epoch)
        self._buffers.append(batch)
        self._notes.append((base, last, length + 12, timestamp))
        if timestamp > self._roll_after:
            self._is_late = True
        self._bytes_staged += length + 12
        self.staged_end = last + 1
        if leader_epoch > self.epochs.written:
            self._begin_epoch(leader_epoch, base)
        if header.producer_id >= 0:
            self.producers.update(header, base)
        return base

    def stage_replica(self, batches: memoryview) -> None:
        """Take what the leader's log holds behind ours. A partial batch at the end is ignored.

        Offsets may be missing between batches: the leader's log was compacted. Raises CorruptBatchError, having staged
        nothing, unless every batch is whole and lies behind the one before.
        """
        checked = split_batches(batches)
        expected = self.staged_end
        for header, batch in checked:
            check_stored(batch, header)
            if header.base_offset < expected:
                raise CorruptBatchError(f"a batch at offset {header.base_offset}, which comes before {expected}")
            expected = header.next_offset
        for header, batch in checked:
            if header.leader_epoch > self.epochs.written:
                self._begin_epoch(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self.producers.update(header, header.base_offset)
            self._buffers.append(batch)
            self._notes.append(note_of(header))
            if header.max_timestamp > self._roll_after:
                self._is_late = True
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
            active.size + self._bytes_staged <= self._easy_bytes
            and self.staged_end - active.base_offset <= _MAX_RELATIVE
            and not self._is_late
        ):
            self._write(self._buffers, notes)
            self._drop_staged()
        else:
            self._write_and_roll()

    def _write(self, buffers: list[memoryview], notes: list[Note]) -> None:
        active = self._active
        before = active.size
        try:
            active.append(buffers)
            active.note(notes, self._config.index_interval_bytes)
        except OSError as error:
            raise self._fail(error) from error
        self.size_bytes += active.size - before
        self.end_offset = notes[-1][1] + 1
        if not before:
            self._roll_after = self._end_of_time(notes[0][3])

    def _write_and_roll(self) -> None:
        """The same where a new segment may have to begin, once or more often."""
        buffers, notes = self._buffers, self._notes
        by_one = self._easy_bytes < self._config.segment_bytes  # an index may be full: only what is written shows that
        start, size, base, rolled = 0, self._active.size, self._active.base_offset, False
        for number, note in enumerate(notes):
            if by_one and number > start:
                self._write(buffers[start:number], notes[start:number])
                start = number
            if size and self._must_roll(base, size, note):
                if number > start:
                    self._write(buffers[start:number], notes[start:number])
                start = number
                self._roll(self._next_base(self.end_offset, note))
                size, base, rolled = 0, self._active.base_offset, True
            size += note[2]
        self._write(buffers[start:], notes[start:])
        self._drop_staged()
        if rolled:
            self._snapshot_in_background()

    def _must_roll(self, base: int, size: int, note: Note) -> bool:
        """Whether the active segment, `size` bytes with what is to be written to it, ends before this batch."""
        config = self._config
        if size + note[2] > config.segment_bytes or note[1] - base > _MAX_RELATIVE:
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
                late = note[3] > self._roll_after
            return late or (size > self._easy_bytes and active.is_index_full(config.segment_index_bytes))
        except OSError as error:
            raise self._fail(error) from error

    def _end_of_time(self, first_timestamp: int) -> int:
        """After which timestamp a segment whose first batch has this one ends."""
        if first_timestamp == NO_TIMESTAMP:
            return _BY_CLOCK
        return first_timestamp + self._config.rolls_after_ms - self._jitter()

    def _jitter(self) -> int:
        most = min(self._config.segment_jitter_ms, self._config.rolls_after_ms)
        name = f"{self.topic}-{self.partition}-{self._active.base_offset}"
        return zlib.crc32(name.encode()) % most if most else 0

    @staticmethod
    def _next_base(end: int, note: Note) -> int:
        """Of a new segment: where the one before ends, so that recovery sees none missing, also where offsets are."""
        return end if note[1] - end <= _MAX_RELATIVE else note[0]

    def _roll(self, base_offset: int) -> None:
        """Begin a new segment. The old one goes to disk in the background; then recovery need not look at it."""
        sealed = self._active
        # All that is not known to be on disk, not only the last: an earlier sync may be under way or never have run.
        unsynced = [segment.file for segment, end in self._with_ends() if end > self.recovery_point]
        self._active = Segment(self._files, self.directory, base_offset, self._descriptors)
        self._segments.append(self._active)
        self._created_ms, self._roll_after = self._now_ms(), FOREVER
        try:
            _ = self._active.file
        except OSError as error:
            raise self._fail(error) from error
        save_indexes, truncations = sealed.index_saver(), self.truncations

        def settle() -> None:
            for file in unsynced:
                file.sync()
            save_indexes()

        def settled(future: Future[None]) -> None:
            if isinstance(future.error, OSError):
                self._fail(future.error)
            elif future.error is None and truncations == self.truncations:
                self.recovery_point = max(self.recovery_point, base_offset)
                sealed.release()
                sealed.close()

        self._background.run(settle).then(settled)

    def _fail(self, error: OSError) -> LogFailedError:
        first, self.failed = not self.failed, True
        self._drop_staged()
        if first and self.on_failure is not None:
            self.on_failure(error)
        return LogFailedError(error.errno, error.strerror)

    def _drop_staged(self) -> None:
        self._buffers: list[memoryview] = []
        self._notes: list[Note] = []
        self._bytes_staged = 0
        self._is_late = False
        self.staged_end = self.end_offset

    # --- producers ----------------------------------------------------------------------------------------------------

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that have written nothing for so long; of an idle log nothing is known that could be."""
        if self._producers_to is None:
            self.producers.expire(now_ms, expiration_ms)

    def _snapshot(self) -> tuple[str, bytes]:
        """Path and content of a snapshot of the producers' state. Nothing may be staged. Raises OSError."""
        content = snapshots.pack(self.producers.states(self._now_ms()))
        return f"{self.directory}/{snapshots.file_name(self.end_offset)}", content

    def _snapshot_in_background(self) -> None:
        """Whether it succeeds does not matter much: it is a short cut for the next start."""
        offset, truncations, files = self.end_offset, self.truncations, self._files
        path, content = self._snapshot()

        def written(future: Future[None]) -> None:
            if future.error is not None:
                return
            if truncations == self.truncations:
                self._snapshots.append(offset)
                self._forget_snapshots(self._snapshots[: -snapshots.KEPT])
            else:
                self._background.run(lambda: files.remove(path))

        def write() -> None:
            if truncations == self.truncations:  # else it is of another log, and would be believed by the next start
                files.write_file(path, content)

        self._background.run(write).then(written)

    def _forget_snapshots(self, offsets: list[int]) -> None:
        for offset in offsets:
            self._snapshots.remove(offset)
            self._files.remove(f"{self.directory}/{snapshots.file_name(offset)}")

    def _cut_producers(self, end: int) -> None:
        """The log ends here now. Raises OSError."""
        if self._producers_to is not None:
            self._producers_to = min(self._producers_to, end)
        elif self.producers.holds_any_from(end):
            self._load_producers(self.producers, end)

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
            whole = bound >= self._segment_end(index)
            found = segment.slice(offset, None if whole else bound, max_bytes, at_least_one=at_least_one)
            # Nothing although the segment goes on: it ends with a gap, which compaction left.
            if found is not None or not whole or segment.position_of(offset) < segment.size:
                return found
        return None

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

    @property
    def segments(self) -> list[Segment]:
        """In order of their offsets. Not to be changed."""
        return self._segments

    def find_timestamp(self, timestamp: int, max_offset: int) -> Steps[tuple[int, int, int] | None]:
        """(offset, timestamp, leader epoch) of the first record at least as young, below `max_offset`."""
        return lookup.offset_for_timestamp(self, timestamp, max_offset)

    def find_latest_timestamp(self, max_offset: int) -> Steps[tuple[int, int, int] | None]:
        """(offset, timestamp, leader epoch) of the youngest record; None when it is not below `max_offset`."""
        return lookup.latest_timestamp(self, max_offset)

    def offset_for_timestamp(self, timestamp: int, max_offset: int) -> tuple[int, int, int] | None:
        """`find_timestamp`, at once."""
        return run_through(self.find_timestamp(timestamp, max_offset))

    def latest_timestamp(self, max_offset: int | None = None) -> tuple[int, int, int] | None:
        """`find_latest_timestamp`, at once."""
        return run_through(self.find_latest_timestamp(self.end_offset if max_offset is None else max_offset))

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
        self.truncations += 1
        self._mark_cut(offset)
        gone, self._segments = self._segments[keep:], self._segments[:keep]
        self._forget_snapshots([known for known in self._snapshots if known > offset])
        self._remove(gone[::-1])  # the newest first: a crash leaves no gap
        self._active = self._segments[-1]
        position = self._active.position_of(offset)
        first_gone = next(self._active.headers(position), None)
        # A batch that reaches across the offset goes whole.
        end = offset if first_gone is None else min(offset, first_gone[0].base_offset)
        self._active.truncate(position)
        self._files.sync_directory(self.directory)
        self.size_bytes = sum(segment.size for segment in self._segments)
        self.end_offset = self.staged_end = end
        self.recovery_point = min(self.recovery_point, end)
        self.cleaned_to = min(self.cleaned_to, end)
        self.lower_compacted_to(end)
        self.start_offset = min(self.start_offset, end)
        self.epochs.truncate_from_end(end)
        self._look_at_time_again()
        self._cut_producers(end)

    def reset(self, start_offset: int) -> None:
        """Throw everything away and begin again at `start_offset`. Raises LogFailedError."""
        self._drop_staged()
        self.truncations += 1
        try:
            self._mark_cut(start_offset)
            self._forget_snapshots(self._snapshots[:])
            self._remove(self._segments)
            self._active = Segment(self._files, self.directory, start_offset, self._descriptors)
            self._segments = [self._active]
            _ = self._active.file
            self._files.sync_directory(self.directory)
            self.epochs.clear()
            self.lower_compacted_to(0)
        except OSError as error:
            raise self._fail(error) from error
        self.producers = Producers()
        self._producers_to = None
        self._created_ms, self._roll_after = self._now_ms(), FOREVER
        self.cleaned_to = 0
        self.size_bytes = 0
        self.start_offset = self.end_offset = self.staged_end = self.recovery_point = start_offset

    def _mark_cut(self, offset: int) -> None:
        """Before anything is cut: the checkpoints may say more of the log than will be true (see `cuts`)."""
        if offset < max(self.recovery_point, self.start_offset):
            self._write_cut_mark(offset)

    def _write_cut_mark(self, offset: int) -> None:
        name = cuts.write(self._files, self.directory, self.cut_marks, offset)
        self.cut_marks = (*self.cut_marks, name)

    def forget_cut_marks(self, names: tuple[str, ...]) -> None:
        """They are removed."""
        self.cut_marks = tuple(name for name in self.cut_marks if name not in names)

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
            write_compacted_to(self._files, self.directory, offset)
            self.compacted_to = offset

    def has_sealed_dirt(self) -> bool:
        """Whether compaction may have something to do; quick, for a log that has not."""
        return self._active.base_offset > self.cleaned_to and len(self._segments) > 1

    def dirt(self, high_watermark: int, now_ms: int) -> Dirt:
        """What compaction would have to do. Raises OSError."""
        limit = min(high_watermark, self.recovery_point)
        start = max(self.cleaned_to, self.start_offset)
        return dirt_of(self._segments, self.config, first_dirty=start, limit=limit, now_ms=now_ms)

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

    def unsynced_files(self) -> list[File]:
        """What to sync, in the background, for everything that is committed now; then tell `synced`. Raises OSError."""
        files: list[File] = []
        index = len(self._segments) - 1
        while index >= 0 and self._segment_end(index) > self.recovery_point:
            files.append(self._segments[index].file)
            index -= 1
        return files[::-1]

    def synced(self, end: int, truncations: int) -> None:
        """The files that were to be synced when the log ended at `end` are, unless it was cut since."""
        if truncations == self.truncations and not self.failed:
            self.recovery_point = max(self.recovery_point, end)

    def fail(self, error: OSError) -> None:
        """The disk has refused something that was done for this log."""
        self._fail(error)

    def close(self) -> None:
        """Flush, write the active segment's indexes, close (also when it raises LogFailedError)."""
        try:
            if not self.failed:
                if self.recovery_point < self.end_offset:
                    self.flush()
                for path, content in self._unsaved():
                    self._files.write_file(path, content)
            elif not self.failed and self._active.size == 0:
                self._files.sync_directory(self.directory)  # nobody has synced the file, which would list its name
        except OSError as error:
            raise self._fail(error) from error
        finally:
            self.abandon()

    def _unsaved(self) -> Iterator[tuple[str, bytes]]:
        for segment in self._segments:
            if segment.has_unsaved_index():
                yield from segment.packed_indexes()
        if self.end_offset not in self._snapshots and self.end_offset > self._segments[0].base_offset:
            yield self._snapshot()

    def abandon(self) -> None:
        """Close the files and leave them as they are: the log is about to be deleted, or has failed."""
        self.failed = True
        for segment in self._segments:
            segment.close()


def _no_clock() -> int:
    return 0


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
