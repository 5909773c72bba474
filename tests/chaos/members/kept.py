"""What must hold of all that the members of a group have said: pure, of what `running` has collected."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Commit:
    """Acknowledged: everything below the offset is done. Times are those of the question and of the answer."""

    member: str
    asked_s: float
    answered_s: float
    partition: int
    offset: int


@dataclass(frozen=True)
class Beginning:
    """A member has a partition since then, and the first it read of it is at the offset."""

    member: str
    assigned_s: float
    partition: int
    offset: int


@dataclass(frozen=True)
class Taken:
    """A member has read these, the last one included."""

    member: str
    partition: int
    first: int
    last: int


Said = Commit | Beginning | Taken
AT_MOST = 10
"""Sentences of a kind."""


def wrong(said: Sequence[Said], ends: Mapping[int, int], committed: Mapping[int, int]) -> list[str]:
    """Sentences; empty: all is well. `ends` of the partitions when all was over, and what the group had `committed` then."""
    return [
        *_unread([what for what in said if isinstance(what, Taken)], ends),
        *_read_again(said)[:AT_MOST],
        *_taken_back(said)[:AT_MOST],
        *(
            f"partition {partition}: {committed.get(partition, 0)} is committed at last, of {end}"
            for partition, end in ends.items()
            if committed.get(partition, 0) != end
        ),
    ]


def _unread(taken: Sequence[Taken], ends: Mapping[int, int]) -> list[str]:
    found = []
    for partition, end in ends.items():
        place, missing = 0, 0
        for first, last in sorted((what.first, what.last) for what in taken if what.partition == partition):
            missing += max(0, first - place)
            place = max(place, last + 1)
        missing += max(0, end - place)
        if missing:
            found.append(f"partition {partition}: {missing} records of {end} were read by nobody")
    return found


def _read_again(said: Sequence[Said]) -> list[str]:
    """A partition that came to a member after a commit was acknowledged is read from there on, not from before."""
    found, known = [], _Acknowledged(said)
    for what in said:
        if isinstance(what, Beginning):
            before = known.at(what.partition, what.assigned_s)
            if before is not None and what.offset < before.offset:
                found.append(
                    f"partition {what.partition}: {what.member} began at {what.offset}, {before.member} had committed "
                    f"{before.offset} {what.assigned_s - before.answered_s:.3f} s before it was assigned"
                )
    return found


def _taken_back(said: Sequence[Said]) -> list[str]:
    """A commit that was asked for after another was acknowledged is not below it: no generation that is over commits."""
    found, known = [], _Acknowledged(said)
    for what in said:
        if isinstance(what, Commit):
            before = known.at(what.partition, what.asked_s)
            if before is not None and what.offset < before.offset:
                found.append(
                    f"partition {what.partition}: {what.member} committed {what.offset} after {before.member} had "
                    f"committed {before.offset}"
                )
    return found


class _Acknowledged:
    """Of each partition, the highest commit that had been acknowledged by a moment."""

    def __init__(self, said: Sequence[Said]) -> None:
        self._highest: dict[int, list[Commit]] = {}
        self._answered_s: dict[int, list[float]] = {}
        for commit in sorted((what for what in said if isinstance(what, Commit)), key=lambda what: what.answered_s):
            highest = self._highest.setdefault(commit.partition, [])
            is_higher = not highest or commit.offset > highest[-1].offset
            highest.append(commit if is_higher else highest[-1])
            self._answered_s.setdefault(commit.partition, []).append(commit.answered_s)

    def at(self, partition: int, moment_s: float) -> Commit | None:
        count = bisect_left(self._answered_s.get(partition, []), moment_s)
        return self._highest[partition][count - 1] if count else None
