"""Cutting a log at its end: a follower's that parted from its leader's, or that begins again elsewhere.

What is cut must be gone from the disk before anything is written in its place: after a power failure the removed batches
must not come back as if they belonged to a newer epoch. Before the cut, a mark is left where the checkpoints say more of
the log than will be true (`truncation_marks`). `truncate` waits for both; a loop does it in three steps, between which it goes
on with everything else:

    mark_of_cut    the mark to be written by a job, or None where none is needed
    cut            at once
    Log.cut_work   a job, or None; until it is done, and `cut_settled` told, nobody stages anything. `settle_cut_now`: for
                   whoever cannot wait for it
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.log import rolling
from dataplane.storage.log.aborting import aborted_in, cut_aborted
from dataplane.storage.log.compacting import lower_compacted_to
from dataplane.storage.log.producing import cut_producers, forget_snapshots
from dataplane.storage.log.removing import remove

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.storage.log.state import Log


class Mark(NamedTuple):
    """Of a cut that is about to be made: a file's name, and the work that writes it durably."""

    name: str
    write: Callable[[], None]


def truncate(log: Log, offset: int) -> None:
    """Remove every batch with a record at or after `offset`: on disk when this returns. Raises LogFailedError."""
    mark = mark_of_cut(log, offset)
    if mark is not None:
        _now(log, mark.write)
    cut(log, offset, mark)
    settle_cut_now(log)


def mark_of_cut(log: Log, offset: int) -> Mark | None:
    """To be written before `cut` where it is not None: the checkpoints may say more than will be true."""
    if not _checkpoints_may_say_more(log, offset):
        return None
    name = truncation_marks.next_name(log.cut_marks)
    work = partial(log.shared.files.write_file, f"{log.directory}/{name}", truncation_marks.content(offset))
    return Mark(name, partial(log.presence.run, work))


def cut(log: Log, offset: int, mark: Mark | None) -> None:
    """Remove every batch with a record at or after `offset`. Raises LogFailedError.

    `mark` is what `mark_of_cut` has said, and is written. What was synced since may make one necessary.
    """
    had_staged = log.is_staging
    log.drop_staged()
    if mark is None and (mark := mark_of_cut(log, offset)) is not None:
        _now(log, mark.write)
    if mark is not None:
        log.cut_marks = (*log.cut_marks, mark.name)
    try:
        if offset < log.end_offset:
            _truncate(log, max(offset, log.segments[0].base_offset))
        else:
            # Nothing to cut, but an epoch that began at the very end may contradict the leader's (KAFKA-10706).
            _add_cut_work(log, log.epochs.cut(offset))
            if had_staged:  # by producers who have not written it
                cut_producers(log, log.end_offset)
    except OSError as error:
        raise log.fail(error) from error


def cut_settled(log: Log, work: Callable[[], None]) -> None:
    """What `Log.cut_work` was is done."""
    if log.cut_work is work:
        log.cut_work = None
        log.epochs.cut_saved()


def settle_cut_now(log: Log) -> None:
    """Before anything is staged by others than the caller that cut. Blocks where it is not done. Raises LogFailedError."""
    work = log.cut_work
    if work is not None:
        _now(log, work)
        cut_settled(log, work)


def _now(log: Log, work: Callable[[], None]) -> None:
    try:
        work()
    except OSError as error:
        raise log.fail(error) from error


def _add_cut_work(log: Log, *more: Callable[[], None] | None) -> None:
    """Behind what an earlier cut has left to do."""
    steps = [step for step in (log.cut_work, *more) if step is not None]
    if more and steps:
        log.cut_work = partial(log.presence.run, partial(_do_all, steps))


def _truncate(log: Log, offset: int) -> None:
    keep = log.segment_index(offset) + 1
    log.truncations += 1
    gone, log.segments = log.segments[keep:], log.segments[:keep]
    forget_snapshots(log, [known for known in log.producer_state.snapshots if known > offset])
    remove(log, gone[::-1])  # the newest first: a crash leaves no gap
    log.active = log.segments[-1]
    position = log.active.position_of(offset)
    first_gone = next(log.active.headers(position), None)
    # A batch that reaches across the offset goes whole.
    end = offset if first_gone is None else min(offset, first_gone[0].base_offset)
    if log.active.has_aborted:
        _ = aborted_in(log, log.active)  # into memory: the files go
    log.active.truncate(position, sync=False)
    log.size_bytes = sum(segment.size for segment in log.segments)
    log.end_offset = log.staged_end = end
    cut_aborted(log, end)
    log.recovery_point = min(log.recovery_point, end)
    log.cleaned_to = min(log.cleaned_to, end)
    lower_compacted_to(log, end)
    log.start_offset = min(log.start_offset, end)
    sync_names = partial(log.shared.files.sync_directory, log.directory)
    _add_cut_work(log, log.active.file.sync, sync_names, log.epochs.cut(end))
    rolling.look_at_time_again(log)
    cut_producers(log, end)


def reset(log: Log, start_offset: int) -> None:
    """Throw everything away and begin again at `start_offset`. Raises LogFailedError."""
    log.drop_staged()
    log.truncations += 1
    try:
        if _checkpoints_may_say_more(log, start_offset):
            write_cut_mark(log, start_offset)
        forget_snapshots(log, log.producer_state.snapshots[:])
        remove(log, log.segments)
        rolling.new_active(log, start_offset)
        log.segments = [log.active]
        _ = log.active.file
        log.shared.files.sync_directory(log.directory)
        log.epochs.clear()
        lower_compacted_to(log, 0)
    except OSError as error:
        raise log.fail(error) from error
    log.cut_work = None
    log.transactions.clear()
    log.producer_state.known = Producers(log.producer_state.newcomers, log.transactions)
    log.last_aborted = -1
    rolling.begin_time(log)
    log.cleaned_to = 0
    log.size_bytes = 0
    log.start_offset = log.end_offset = log.staged_end = log.recovery_point = start_offset


def _checkpoints_may_say_more(log: Log, offset: int) -> bool:
    """Than will be true of a log that is cut at `offset` (see `truncation_marks`)."""
    return offset < max(log.recovery_point, log.start_offset)


def write_cut_mark(log: Log, offset: int) -> None:
    """At once, before anything is cut. Raises OSError."""
    name = truncation_marks.write(log.shared.files, log.directory, log.cut_marks, offset)
    log.cut_marks = (*log.cut_marks, name)


def forget_cut_marks(log: Log, names: tuple[str, ...]) -> None:
    """They are removed."""
    log.cut_marks = tuple(name for name in log.cut_marks if name not in names)


def _do_all(steps: Sequence[Callable[[], None]]) -> None:
    for step in steps:
        step()
