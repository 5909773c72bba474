"""The orderly end of the logs in one data directory: everything that only memory has goes to disk, with one sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import closing, flushing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.doors import Files
    from dataplane.storage.log import Log


def close_together(files: Files, home: str, logs: Sequence[Log]) -> bool:
    """Whether all of them are closed, and on disk. One that cannot be does not keep the others from it."""
    for log in logs:
        log.on_failure = None  # what can still be saved of the others is
    _sync_together(files, home, logs)
    return all([_closes(log) for log in logs])  # noqa: C419 - every log is closed, also after a failure


def _sync_together(files: Files, home: str, logs: Sequence[Log]) -> None:
    """With two calls at most. Each of ten thousand logs would sync eight times and more, one after the other."""
    unsynced = [log for log in logs if not log.failed and _succeeds(closing.prepare_close, log)]
    try:
        if unsynced:
            files.sync_below(home)
    except OSError:
        return  # each syncs what it can when it is closed
    # Only now: a file that is replaced before the new one is on disk may be lost with a power cut.
    renamed = [log for log in unsynced if _succeeds(closing.take_places, log)]
    try:
        if renamed:
            files.sync_below(home)
    except OSError as error:
        for log in renamed:
            log.fail(error)  # which of the two files the disk has, nobody knows
    for log in unsynced:
        flushing.synced(log, log.end_offset, log.truncations)


def _succeeds(step: Callable[[Log], bool], log: Log) -> bool:
    try:
        return step(log)
    except LogFailedError:
        return False  # the log is marked, and not closed in order


def _closes(log: Log) -> bool:
    if log.failed:
        closing.abandon(log)
        return False
    try:
        closing.close(log)
    except OSError:
        return False
    return True
