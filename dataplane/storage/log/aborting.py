"""The aborted transactions of a log: noted with their markers, found for readers, made of the log again where a file is lost.

A marker says whose transaction it aborts, not where that began. So the entries of a segment are made by replaying the producers
from a snapshot before it on. Of transactions whose records compaction has removed nothing is left to be made an entry of, and
nothing has to be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.segments.aborted import AbortedIndex, AbortedIndexError
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.storage.checkpoints.transactions import AbortedTransaction
    from dataplane.storage.log.state import Log
    from dataplane.storage.segments.segment import Segment


def note_aborted(log: Log) -> None:
    """Markers were written to the active segment. Raises LogFailedError."""
    waiting = log.staged.aborted
    written = [aborted for aborted in waiting if aborted.last_offset < log.end_offset]
    del waiting[: len(written)]
    active = log.active
    try:
        if active.has_aborted:
            _ = aborted_in(log, active)
        for aborted in written:
            active.note_aborted(aborted)
    except OSError as error:
        raise log.fail(error) from error
    if written:
        log.last_aborted = written[-1].last_offset


def aborted_in(log: Log, segment: Segment) -> AbortedIndex:
    """Those whose markers are in a segment that has some. Raises OSError."""
    try:
        return segment.aborted()
    except (AbortedIndexError, FileNotFoundError):
        make_again(log, [segment])
        return segment.aborted() if segment.has_aborted else AbortedIndex()


def aborted_between(log: Log, start: int, bound: int) -> list[AbortedTransaction]:
    """What whoever reads the offsets [start, bound) has to leave out. Raises OSError."""
    found: list[AbortedTransaction] = []
    if start > log.last_aborted:
        return found
    for segment in log.segments[log.segment_index(start) :]:
        if segment.has_aborted and aborted_in(log, segment).find(start, bound, found):
            break
    return found


def make_again(log: Log, segments: Sequence[Segment]) -> None:
    """The indexes of these segments, in ascending order, from the log. Raises OSError."""
    first = segments[0].base_offset
    usable = [offset for offset in log.producer_state.snapshots if offset <= first]
    files, end = log.shared.files, log.end_offset
    everything = recovery.load_producers(Producers(), files, log.directory, usable, log.segments, end)
    for segment in segments:
        index = AbortedIndex()
        following = log.segment_end(log.segment_index(segment.base_offset))
        for aborted in everything:
            if segment.base_offset <= aborted.last_offset < following:
                index.add(aborted)
        segment.set_aborted(index)


def cut_aborted(log: Log, end: int) -> None:
    """The log ends here now, in its active segment. Raises OSError."""
    log.last_aborted = min(log.last_aborted, end - 1)
    if log.active.has_aborted:
        index = aborted_in(log, log.active)
        index.cut(end)
        log.active.set_aborted(index)
