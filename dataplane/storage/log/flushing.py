"""To disk: what is committed.

The recovery point moves when the segments below it are on disk, and the epochs that begin there (see `epochs`), and no index
file is there that says less of aborted transactions than they do: the next start reads no batch below it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.storage.log.state import Log


def syncer(log: Log) -> Callable[[], None]:
    """Work for the background that brings what is committed now to disk; then tell `synced`. Both raise OSError.

    All that is not known to be on disk, not only what is newest: an earlier sync may be under way or never have run.
    """
    work: list[Callable[[], None]] = []
    index = len(log.segments) - 1
    while index >= 0 and log.segment_end(index) > log.recovery_point:
        work.append(log.segments[index].file.sync)
        settle_removal = log.segments[index].removal_settler()  # else a start would believe what is out of date
        if settle_removal is not None:
            work.append(partial(log.presence.run, settle_removal))
        index -= 1
    if not log.epochs.is_saved():
        work.append(log.epochs.saver())
    if log.cut_work is not None:
        work.append(log.cut_work)
    if not log.is_founded:
        assert log.founding is not None
        work.append(log.founding.settle)

    def sync() -> None:
        for step in reversed(work):
            step()

    return sync


def synced(log: Log, end: int, truncations: int) -> None:
    """What `syncer` was asked for when the log ended at `end` is on disk, unless the log was cut since."""
    if truncations == log.truncations and not log.failed:
        log.recovery_point = max(log.recovery_point, end)


def flush(log: Log) -> None:
    """Force everything committed to disk (blocks). Raises LogFailedError."""
    end = log.end_offset
    try:
        syncer(log)()
    except OSError as error:
        raise log.fail(error) from error
    log.recovery_point = end
