"""Appending: every batch of a turn is written with one system call.

`stage` gives a batch its offsets (the leader's) or checks those it has (a follower's) and remembers the memory;
`commit` writes. **`end_offset` moves only after the bytes are in the file**: a reader up to it, or a caller that tells a
follower of it, can rely on them. Offsets of staged batches are promises that only this turn's callers know.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from dataplane.records.header import CorruptBatchError, check_stored, split_batches
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import rolling
from dataplane.storage.log.aborting import note_aborted
from dataplane.storage.log.boundaries import MAX_RELATIVE, next_base
from dataplane.storage.log.producing import producers_of, snapshot_in_background
from dataplane.storage.segments.batch_file import note_of

if TYPE_CHECKING:
    from dataplane.records.header import BatchHeader
    from dataplane.storage.log.state import Log
    from dataplane.storage.segments.batch_file import Note

_write_place = struct.Struct(">qii").pack_into


def stage(log: Log, batch: memoryview, header: BatchHeader, leader_epoch: int) -> int:
    """Take a checked batch as the leader; returns the base offset it will have.

    Writes base offset and leader epoch into the batch, whose memory must stay as it is until `commit` in the same
    turn. Raises LogFailedError (so may `commit`, later, when the log has failed).
    """
    base = log.staged_end
    length = header.batch_length
    last = base + header.last_offset_delta
    timestamp = header.max_timestamp
    _write_place(batch, 0, base, length, leader_epoch)
    staged = log.staged
    staged.buffers.append(batch)
    staged.notes.append((base, last, length + 12, timestamp))
    if timestamp > log.rollover.last_timestamp:
        staged.is_late = True
    staged.size_bytes += length + 12
    log.staged_end = last + 1
    if leader_epoch > log.epochs.in_log:
        _begin_epoch(log, leader_epoch, base)
    if header.producer_id >= 0:
        aborted = (log.producer_state.known or producers_of(log)).update(header, base, batch)
        if aborted is not None:
            staged.aborted.append(aborted)
    return base


def stage_replica(log: Log, batches: memoryview) -> bool:
    """Take what the leader's log holds behind ours; False where it brings nothing new.

    A partial batch at the end is ignored, and so are those in front that we have: an answer that has crossed our next
    request brings them again. Offsets may be missing between batches: the leader's log was compacted. Raises
    CorruptBatchError, having staged nothing, unless every other batch is whole and lies behind the one before.
    """
    checked = split_batches(batches)
    expected, repeated = log.staged_end, 0
    for header, batch in checked:
        check_stored(batch, header)
        if header.base_offset < expected:
            if expected == log.staged_end and _has_already(log, header):
                repeated += 1
                continue
            raise CorruptBatchError(f"a batch at offset {header.base_offset}, which comes before {expected}")
        expected = header.next_offset
    if expected == log.staged_end:
        return False
    if repeated:
        del checked[:repeated]
    staged, last_timestamp = log.staged, log.rollover.last_timestamp
    for header, batch in checked:
        if header.leader_epoch > log.epochs.in_log:
            _begin_epoch(log, header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            aborted = producers_of(log).update(header, header.base_offset, batch)
            if aborted is not None:
                staged.aborted.append(aborted)
        staged.buffers.append(batch)
        staged.notes.append(note_of(header))
        if header.max_timestamp > last_timestamp:
            staged.is_late = True
        staged.size_bytes += header.size
    log.staged_end = expected
    return True


def base_across_end(log: Log, batches: memoryview) -> int | None:
    """Where the first of a leader's batches begins, if it reaches across the end of a log that holds nothing; else None.

    So it does where the leader's log starts within a batch, by DeleteRecords, and ours was to begin at that offset. Raises
    CorruptBatchError.
    """
    if log.size_bytes or log.is_staging:
        return None
    header = next((header for header, _ in split_batches(batches)), None)
    return header.base_offset if header and header.base_offset < log.end_offset < header.next_offset else None


def _has_already(log: Log, header: BatchHeader) -> bool:
    """Whether this batch of our leader is below our end, in the epoch that ours has there."""
    return header.next_offset <= log.staged_end and log.epochs.epoch_of(header.base_offset) == header.leader_epoch


def _begin_epoch(log: Log, epoch: int, offset: int) -> None:
    try:
        log.epochs.assign(epoch, offset)
    except OSError as error:
        raise log.fail(error) from error


def commit(log: Log) -> None:
    """Write what was staged; `end_offset` is where `staged_end` was. Raises LogFailedError."""
    if log.failed:  # also when nothing is staged any more: the failure dropped it, and somebody waits for it
        log.drop_staged()
        raise LogFailedError("the log failed earlier")
    staged = log.staged
    if not staged.notes:
        return
    active = log.active
    if (
        active.size + staged.size_bytes <= log.rollover.easy_bytes
        and log.staged_end - active.base_offset <= MAX_RELATIVE
        and not staged.is_late
    ):
        _write(log, staged.buffers, staged.notes)
        log.drop_staged()
    else:
        _write_and_roll(log)


def _write(log: Log, buffers: list[memoryview], notes: list[Note]) -> None:
    active = log.active
    before = active.size
    try:
        active.append(buffers)
        active.note(notes, log.config.index_interval_bytes)
    except OSError as error:
        raise log.fail(error) from error
    log.size_bytes += active.size - before
    log.end_offset = notes[-1][1] + 1
    if log.staged.aborted:
        note_aborted(log)
    if not before:
        rolling.begins(log, notes[0][3])


def _write_and_roll(log: Log) -> None:
    """The same where a new segment may have to begin, once or more often."""
    buffers, notes = log.staged.buffers, log.staged.notes
    by_one = log.rollover.easy_bytes < log.config.segment_bytes  # an index may be full: only what is written shows that
    start, size, base, rolled = 0, log.active.size, log.active.base_offset, False
    for number, note in enumerate(notes):
        if by_one and number > start:
            _write(log, buffers[start:number], notes[start:number])
            start = number
        if size and rolling.must_roll(log, base, size, note):
            if number > start:
                _write(log, buffers[start:number], notes[start:number])
            start = number
            rolling.roll(log, next_base(log.end_offset, *note[:2]))
            size, base, rolled = 0, log.active.base_offset, True
        size += note[2]
    _write(log, buffers[start:], notes[start:])
    log.drop_staged()
    if rolled:
        snapshot_in_background(log)
