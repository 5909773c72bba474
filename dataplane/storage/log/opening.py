"""From a directory to a log: what recovery finds there, held against what the checkpoints say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.epochs import Epochs
from dataplane.storage.log import rolling
from dataplane.storage.log.cutting import reset, write_cut_mark
from dataplane.storage.log.producing import producers_of
from dataplane.storage.log.state import Log, ProducerState, Shared
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.storage.config import LogConfig


def open_log(
    shared: Shared,
    directory: str,
    *,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    clean: bool = False,
    recovery_point: int = 0,
    start_offset: int = 0,
    cleaned_to: int = 0,
    newcomers: Callable[[int], None] | None = None,
) -> Log:
    """Open the log in `directory`, which exists. Raises OSError.

    `clean` says that it was closed in order; if not, what lies behind `recovery_point` is checked and a torn or
    corrupt tail is cut. A new log begins at `start_offset`. Compaction's last round ended at `cleaned_to`.
    `newcomers` hears of producers that are new to it.
    """
    files = shared.files
    marks: tuple[str, ...] = ()
    if not clean:
        names, lowest = truncation_marks.read(files, directory)
        marks = tuple(names)
        if lowest is not None:
            recovery_point, start_offset = min(recovery_point, lowest), min(start_offset, lowest)
            cleaned_to = min(cleaned_to, lowest)
    epochs = Epochs(files, directory)
    loaded = recovery.load(
        files,
        directory,
        epochs,
        config,
        topic_id=topic_id,
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
        descriptors=shared.descriptors,
    )
    log = Log(
        shared,
        directory,
        topic=topic,
        partition=partition,
        topic_id=topic_id,
        config=config,
        epochs=epochs,
        segments=loaded.segments,
        end_offset=loaded.end_offset,
        producer_state=ProducerState(loaded.end_offset, loaded.snapshots, newcomers),
    )
    log.bytes_cut, log.compacted_to, log.cut_marks = loaded.bytes_cut, loaded.compacted_to, marks
    _believe(log, clean=clean, recovery_point=recovery_point, start_offset=start_offset, cleaned_to=cleaned_to)
    rolling.configure(log, config)
    if log.size_bytes and log.end_offset not in loaded.snapshots:
        _ = producers_of(log)  # the headers have just been read, or there are few of them
    if not clean:
        # What was created, renamed or removed before the stop, and by recovery, is as good as what is synced later.
        files.sync_directory(directory)
        _keep_up_with_checkpoints(log, recovery_point, start_offset)
        _cover_front(log)
        log.epochs.truncate_from_start(log.start_offset)  # which may not have been written before the stop
    return log


def _believe(log: Log, *, clean: bool, recovery_point: int, start_offset: int, cleaned_to: int) -> None:
    """What the checkpoints say, as far as the log that was found can be meant."""
    first, end = log.segments[0].base_offset, log.end_offset
    log.start_offset = min(max(start_offset, first), end)
    log.cleaned_to = cleaned_to if cleaned_to <= end else 0
    if recovery_point > end:  # it is of another log, or damaged: it says nothing of what is on disk
        recovery_point = 0
    log.recovery_point = end if clean else min(max(recovery_point, log.compacted_to, first), end)


def _keep_up_with_checkpoints(log: Log, recovery_point: int, start_offset: int) -> None:
    """Recovery has ended the log below what the checkpoints say. Offsets that were deleted are not given again."""
    if start_offset > log.end_offset:
        reset(log, start_offset)
    elif recovery_point > log.end_offset:
        write_cut_mark(log, log.end_offset)


def _cover_front(log: Log) -> None:
    """Segments that were removed may come back, without the epochs that were forgotten with them."""
    first = log.epochs.first_start()
    if log.start_offset < (log.end_offset if first is None else first):
        found: list[tuple[int, int]] = []
        for segment in log.segments:
            for header, _ in segment.headers():
                if first is not None and header.base_offset >= first:
                    break
                if not found or header.leader_epoch > found[-1][0]:
                    found.append((header.leader_epoch, header.base_offset))
        log.epochs.extend_front(found)
