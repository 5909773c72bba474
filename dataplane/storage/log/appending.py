"""Appending: every batch of a turn is written with one system call.

`stage` gives a batch its offsets (the leader's) or checks those it has (a follower's) and remembers the memory;
`commit` writes. **`end_offset` moves only after the bytes are in the file**: whoever reads up to it, or tells a
follower of it, can rely on them. Offsets of staged batches are promises that only this turn's callers know.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from dataplane.records.header import CorruptBatchError, check_stored, split_batches
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log.producing import Producing
from dataplane.storage.log.rolling import MAX_RELATIVE, Rolling
from dataplane.storage.segments.batch_file import note_of

if TYPE_CHECKING:
    from dataplane.records.header import BatchHeader
    from dataplane.storage.segments.batch_file import Note

_write_place = struct.Struct(">qii").pack_into


class Appending(Rolling, Producing):
    """Takes batches."""

    __slots__ = ()

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
        if leader_epoch > self.epochs.in_log:
            self._begin_epoch(leader_epoch, base)
        if header.producer_id >= 0:
            (self._producers or self.producers).update(header, base)
        return base

    def stage_replica(self, batches: memoryview) -> bool:
        """Take what the leader's log holds behind ours; False where it brings nothing new.

        A partial batch at the end is ignored, and so are those in front that we have: an answer that has crossed our next
        request brings them again. Offsets may be missing between batches: the leader's log was compacted. Raises
        CorruptBatchError, having staged nothing, unless every other batch is whole and lies behind the one before.
        """
        checked = split_batches(batches)
        expected, repeated = self.staged_end, 0
        for header, batch in checked:
            check_stored(batch, header)
            if header.base_offset < expected:
                if expected == self.staged_end and self._has_already(header):
                    repeated += 1
                    continue
                raise CorruptBatchError(f"a batch at offset {header.base_offset}, which comes before {expected}")
            expected = header.next_offset
        if expected == self.staged_end:
            return False
        if repeated:
            del checked[:repeated]
        for header, batch in checked:
            if header.leader_epoch > self.epochs.in_log:
                self._begin_epoch(header.leader_epoch, header.base_offset)
            if header.producer_id >= 0:
                self.producers.update(header, header.base_offset)
            self._buffers.append(batch)
            self._notes.append(note_of(header))
            if header.max_timestamp > self._roll_after:
                self._is_late = True
            self._bytes_staged += header.size
        self.staged_end = expected
        return True

    def _has_already(self, header: BatchHeader) -> bool:
        """Whether this batch of our leader is below our end, in the epoch that ours has there."""
        return header.next_offset <= self.staged_end and self.epochs.epoch_of(header.base_offset) == header.leader_epoch

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
            and self.staged_end - active.base_offset <= MAX_RELATIVE
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
