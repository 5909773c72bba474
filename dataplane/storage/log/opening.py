"""From a directory to a log: what recovery finds there, held against what the checkpoints say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.epochs import Epochs
from dataplane.storage.log import aborting, rolling
from dataplane.storage.log.cutting import reset, write_cut_mark
from dataplane.storage.log.producing import producers_of
from dataplane.storage.log.state import Log, Shared
from dataplane.storage.segments.batch_file import ABORTED_INDEX
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.storage.config import LogConfig
    from dataplane.storage.segments.segment import Segment


class LastKnown(NamedTuple):
    """What the checkpoints say of one log; of a log that they do not speak of, nothing."""

    recovery_point: int = 0
    start_offset: int = 0  # where a new log begins
    cleaned_to: int = 0  # where compaction's last round ended

    def at_most(self, offset: int) -> LastKnown:
        """The log was cut there since."""
        return LastKnown(*(min(known, offset) for known in self))


NOTHING = LastKnown()


def open_log(
    shared: Shared,
    directory: str,
    *,
    topic: str,
    partition: int,
    topic_id: UUID,
    config: LogConfig,
    clean: bool = False,
    is_new: bool = False,
    last_known: LastKnown = NOTHING,
    newcomers: Callable[[int], None] | None = None,
) -> Log:
    """Open the log in `directory`, which exists. Raises OSError.

    `clean` says that it was closed in order; if not, what lies behind the recovery point is checked and a torn or
    corrupt tail is cut. `is_new`: the directory has just been made. `newcomers` hears of producers that are new to it.
    """
    marks: tuple[str, ...] = ()
    if not clean:
        names, lowest = truncation_marks.read(shared.files, directory)
        marks = tuple(names)
        last_known = last_known if lowest is None else last_known.at_most(lowest)
    epochs = Epochs(shared.files, directory, is_new=is_new)
    if is_new:
        found = recovery.new(shared.files, directory, shared.descriptors)
    else:
        found = recovery.load(
            shared.files,
            directory,
            epochs,
            config,
            topic_id=topic_id,
            clean=clean,
            recovery_point=last_known.recovery_point,
            start_offset=last_known.start_offset,
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
        found=found,
        newcomers=newcomers,
    )
    log.cut_marks = marks
    _believe(log, last_known, clean=clean)
    rolling.configure(log, config)
    if found.without_aborted:
        _make_aborted_again(log, found.without_aborted)
    if log.end_offset not in found.snapshots:
        if log.size_bytes:
            _ = producers_of(log)  # the headers have just been read, or there are few of them
        elif not found.snapshots:
            log.transactions.clear()
    if not clean:
        _after_unclean_stop(log, last_known)
    return log


def _make_aborted_again(log: Log, segments: list[Segment]) -> None:
    aborting.make_again(log, segments)
    if any(segment.has_aborted for segment in segments):
        log.last_aborted = log.end_offset - 1
    for segment in segments:
        if segment.has_aborted and segment is not log.active:
            log.shared.files.write_file(segment.path + ABORTED_INDEX, segment.aborted().pack())
            segment.forget_index()


def _believe(log: Log, last_known: LastKnown, *, clean: bool) -> None:
    """What the checkpoints say, as far as it can be meant of the log that was found."""
    recovery_point, start_offset, cleaned_to = last_known
    first, end = log.segments[0].base_offset, log.end_offset
    log.start_offset = min(max(start_offset, first), end)
    log.cleaned_to = cleaned_to if cleaned_to <= end else 0
    if recovery_point > end:  # it is of another log, or damaged: it says nothing of what is on disk
        recovery_point = 0
    log.recovery_point = end if clean else min(max(recovery_point, log.compacted_to, first), end)


def _after_unclean_stop(log: Log, last_known: LastKnown) -> None:
    # What was created, renamed or removed before the stop, and by recovery, is as good as what is synced later.
    log.shared.files.sync_directory(log.directory)
    if log.size_bytes and log.recovery_point >= log.end_offset:
        # So is its end: it may have been cut there, before the stop or by recovery, and what is behind the recovery point may
        # begin with the next segment. No later sync would be of this one, and after a power cut what was cut would be back.
        log.active.file.sync()
    # Recovery may have ended the log below what the checkpoints say. Offsets that were deleted are not given again.
    if last_known.start_offset > log.end_offset:
        reset(log, last_known.start_offset)
    elif last_known.recovery_point > log.end_offset:
        write_cut_mark(log, log.end_offset)
    _cover_front(log)
    log.epochs.truncate_from_start(log.start_offset)  # which may not have been written before the stop


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
