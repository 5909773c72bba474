"""The end of a log in memory: orderly, so that the next start reads nothing; or as it is."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.storage.log.flushing import flush
from dataplane.storage.log.producing import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.storage.log.state import Log
    from dataplane.storage.segments.segment import Segment

    Write = Callable[[str, bytes], None]


def prepare_close(log: Log) -> bool:
    """Write what `close` would, and sync nothing of it; False where nothing is to be synced. Raises LogFailedError.

    For who closes thousands of logs: syncs all that is below their directory at once, calls `take_places`, syncs all again,
    tells `synced`, and closes.
    """
    files = log.shared.files
    try:
        is_founding = log.founding is not None and log.founding.put_beside()
        # What a power cut may damage must be behind the recovery point: there the next start believes no index.
        _save_indexes(log, files.write_file, below=log.recovery_point)
        has_put = _save_indexes(log, files.put_file, below=log.end_offset)
        has_put = _save_snapshot(log, files.put_file) or has_put
        if not log.epochs.is_saved():
            log.epochs.put_beside()
    except OSError as error:
        raise log.fail(error) from error
    return has_put or is_founding or not _is_on_disk(log)


def take_places(log: Log) -> bool:
    """What `prepare_close` put beside files is on disk, and takes their places. False: it was nothing. Raises LogFailedError."""
    try:
        is_founded = log.founding is not None and log.founding.take_place()
        return log.epochs.take_place() or is_founded
    except OSError as error:
        raise log.fail(error) from error


def close(log: Log) -> None:
    """Flush, write the active segment's indexes, close (also when it raises LogFailedError)."""
    try:
        if not log.failed:
            _settle(log)
            if not _is_on_disk(log):
                flush(log)
            _save_indexes(log, log.shared.files.write_file, below=log.end_offset)
            _save_snapshot(log, log.shared.files.write_file)
    except OSError as error:
        raise log.fail(error) from error
    finally:
        abandon(log)


def abandon(log: Log, *, waits: bool = True) -> None:
    """Close the files and leave them as they are: the log has failed, or is about to be closed.

    What is being written in its directory is waited for, which may be some files. `waits`: False where the disk may never
    come to an end, and nobody makes another log of the name there.
    """
    log.failed = True
    for segment in log.segments:
        segment.end_saves(waits=waits)
    _end(log, waits=waits)


def withdraw(log: Log) -> None:
    """The same where the log is about to be deleted or moved: of indexes that are being written one file is waited for."""
    log.failed = True
    for segment in (*log.late_saves, *log.segments):
        segment.drop_saves()
    _end(log, waits=True)


def leave(log: Log, segment: Segment) -> None:
    """It is no segment of the log any more: nothing of it is written from now on.

    Nobody waits here for what is being written. Whoever deletes the log does: another of the name may follow.
    """
    if segment.drop_saves(waits=False):
        log.late_saves = [*(late for late in log.late_saves if late.is_being_saved()), segment]
    segment.close()


def _end(log: Log, *, waits: bool) -> None:
    log.presence.end(waits=waits)
    log.epochs.abandon(waits=waits)
    if log.founding is not None:
        log.founding.abandon(waits=waits)
    for segment in log.segments:
        segment.close()


def _is_on_disk(log: Log) -> bool:
    return log.recovery_point >= log.end_offset and log.epochs.is_saved() and log.cut_work is None


def _settle(log: Log) -> None:
    if log.founding is not None:
        log.founding.settle()


def _save_indexes(log: Log, write: Write, *, below: int) -> bool:
    """Of the segments that end there; False where all are saved."""
    has_written = False
    for index, segment in enumerate(log.segments):
        if log.segment_end(index) <= below and segment.has_unsaved_index():
            segment.index_saver(write)()
            has_written = True
    return has_written


def _save_snapshot(log: Log, write: Write) -> bool:
    known = log.producer_state.snapshots
    if log.end_offset in known or log.end_offset == log.segments[0].base_offset:
        return False
    log.presence.run(partial(write, *snapshot(log)))  # the same one may be written in the background now
    known.append(log.end_offset)
    return True
