"""Ending a segment and beginning the next; the rule is in `boundaries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.config import FOREVER, LogConfig
from dataplane.storage.log import boundaries
from dataplane.storage.log.flushing import syncer
from dataplane.storage.segments.batch_file import NO_TIMESTAMP, Note
from dataplane.storage.segments.index import entries_that_fit
from dataplane.storage.segments.segment import Segment

if TYPE_CHECKING:
    from dataplane.storage.log.state import Log
    from dataplane.tasks import Future

_BY_CLOCK, _UNKNOWN = -2, -3
"""Instead of the timestamp after which a segment ends. Below all timestamps, so that every batch asks."""


def configure(log: Log, config: LogConfig) -> None:
    """What is set about this log. May be done at any time."""
    log.config = config
    log.rollover.easy_bytes = boundaries.easy_bytes(config, entries_that_fit(config.segment_index_bytes))
    look_at_time_again(log)


def look_at_time_again(log: Log) -> None:
    """The active segment is another, or another time is set for it."""
    log.rollover.last_timestamp = _UNKNOWN if log.active.size else FOREVER


def begins(log: Log, first_timestamp: int) -> None:
    """The active segment's first batch is written: from its timestamp on its time is counted."""
    log.rollover.last_timestamp = _end_of_time(log, first_timestamp)


def must_roll(log: Log, base: int, size: int, note: Note) -> bool:
    """Whether the active segment, `size` bytes with what is to be written to it, ends before this batch."""
    config, rollover, active = log.config, log.rollover, log.active
    if not boundaries.has_room(config, base, size + note[2], note[1]):
        return True
    if not active.size:
        return False
    try:
        if rollover.last_timestamp == _UNKNOWN:
            rollover.last_timestamp = _end_of_time(log, active.first_timestamp())
        if rollover.last_timestamp == _BY_CLOCK:
            late = log.shared.now_ms() - rollover.begun_ms > _longest_ms(log)
        else:
            late = note[3] > rollover.last_timestamp and _is_old_enough(log)
        return late or (size > rollover.easy_bytes and active.is_index_full(config.segment_index_bytes))
    except OSError as error:
        raise log.fail(error) from error


def _is_old_enough(log: Log) -> bool:
    least = log.config.least_roll_ms
    return not least or log.shared.now_ms() - log.rollover.begun_ms >= least


def _end_of_time(log: Log, first_timestamp: int) -> int:
    """After which timestamp a segment whose first batch has this one ends."""
    return _BY_CLOCK if first_timestamp == NO_TIMESTAMP else first_timestamp + _longest_ms(log)


def _longest_ms(log: Log) -> int:
    return boundaries.longest_ms(log.config, f"{log.topic}-{log.partition}-{log.active.base_offset}")


def new_active(log: Log, base_offset: int) -> None:
    """A segment without a batch, which is written to from now on. The caller puts it in its place."""
    log.active = Segment(log.shared.files, log.directory, base_offset, log.shared.descriptors)
    for late in log.late_saves:
        if late.base_offset == base_offset:
            log.active.comes_after(late)


def begin_time(log: Log) -> None:
    """The active segment is new, and empty."""
    log.rollover.begun_ms, log.rollover.last_timestamp = log.shared.now_ms(), FOREVER


def roll(log: Log, base_offset: int) -> None:
    """Begin a new segment. The old one goes to disk in the background; then recovery need not look at it."""
    sealed = log.active
    sync = syncer(log)
    new_active(log, base_offset)
    log.segments.append(log.active)
    begin_time(log)
    try:
        _ = log.active.file
    except OSError as error:
        raise log.fail(error) from error
    save_indexes, truncations, presence = sealed.index_saver(), log.truncations, log.presence

    def settle() -> None:
        sync()
        presence.run(save_indexes)

    def settled(future: Future[None]) -> None:
        if isinstance(future.error, OSError):
            log.fail(future.error)
        elif future.error is None and truncations == log.truncations:
            log.recovery_point = max(log.recovery_point, base_offset)
            sealed.release()
            sealed.close()

    log.shared.background.run(settle).then(settled)
