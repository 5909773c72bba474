"""What a group has still to read, how fast it reads, and when it will have caught up. Pure.

Lag counts what can still be read: from the committed offset, or from where the partition begins now if records before it
have expired, to the end of the partition. A rate takes two observations: offsets then, and offsets now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Place = tuple[str, int]
"""A topic and a partition's number."""

SECOND_MS = 1000
LEAST_MS = 2 * SECOND_MS
"""Between two observations that are compared: what a consumer commits every 5 s looks like a leap in less."""
STEP_MS = 15 * SECOND_MS
LONGEST_MS = 90 * SECOND_MS
"""An observation is kept for this long, one in STEP_MS: so a rate is over the last 15 to 90 seconds where somebody looks on."""


def lag_messages(offset: int, start: int, end: int) -> int:
    """Records, marks of transactions included, that can still be read."""
    return max(0, end - max(offset, start))


@dataclass(frozen=True, slots=True)
class Observation:
    """Where a group was, and where its partitions ended."""

    at_ms: int
    offsets: Mapping[Place, int]
    ends: Mapping[Place, int]


@dataclass(frozen=True, slots=True)
class Pace:
    """Records a second over the last `over_s` seconds."""

    consumed_per_s: float
    produced_per_s: float
    over_s: float


def pace(before: Observation, now: Observation) -> Pace | None:
    """Of the partitions that both saw; None where they are too near to each other, or share none."""
    passed_ms = now.at_ms - before.at_ms
    shared = [place for place in now.offsets if place in before.offsets and place in now.ends and place in before.ends]
    # An offset or an end that has gone back was set by somebody, or is another topic's: that is no reading.
    shared = [p for p in shared if now.offsets[p] >= before.offsets[p] and now.ends[p] >= before.ends[p]]
    if passed_ms < LEAST_MS or not shared:
        return None
    seconds = passed_ms / SECOND_MS
    consumed = sum(now.offsets[place] - before.offsets[place] for place in shared)
    produced = sum(now.ends[place] - before.ends[place] for place in shared)
    return Pace(consumed / seconds, produced / seconds, seconds)


def paces(before: Observation, now: Observation) -> dict[Place, Pace]:
    """Of each partition that both saw, where its offset and end have not gone back."""
    found = {}
    for place in now.offsets:
        one = pace(_alone(before, place), _alone(now, place))
        if one is not None:
            found[place] = one
    return found


def _alone(seen: Observation, place: Place) -> Observation:
    return Observation(
        seen.at_ms,
        {place: seen.offsets[place]} if place in seen.offsets else {},
        {place: seen.ends[place]} if place in seen.ends else {},
    )


def gain_per_s(lag_before: int, lag_now: int, passed_s: float) -> float | None:
    """How many records a second a group comes nearer to the end; negative: it falls behind. None: too short a time."""
    return None if passed_s < STEP_MS / SECOND_MS else (lag_before - lag_now) / passed_s


def drain_seconds(lag: int | None, found: Pace | None, gain: float | None = None) -> float | None:
    """Until nothing is left if both rates stay as they are; None where that is not known, or never.

    `gain`: records a second that it comes nearer to the end, where only that is known.
    """
    if lag == 0:
        return 0.0
    nearer = gain if found is None else found.consumed_per_s - found.produced_per_s
    if lag is None or nearer is None or nearer <= 0:
        return None
    return lag / nearer


def falls_behind(lag: int | None, found: Pace | None, gain: float | None = None) -> bool:
    """Whether it is known that the group will not catch up at these rates."""
    nearer = gain if found is None else found.consumed_per_s - found.produced_per_s
    return bool(lag) and nearer is not None and nearer <= 0


def oldest_of(kept: Sequence[Observation], now: Observation) -> Observation | None:
    """Which of the observations kept to compare with: the oldest that is not out of date."""
    return next((seen for seen in kept if now.at_ms - LONGEST_MS <= seen.at_ms <= now.at_ms - LEAST_MS), None)


def kept_with(kept: Sequence[Observation], now: Observation) -> list[Observation]:
    """What to keep for the next look, oldest first."""
    recent = [seen for seen in kept if now.at_ms - LONGEST_MS <= seen.at_ms < now.at_ms]
    return recent if recent and now.at_ms - recent[-1].at_ms < STEP_MS else [*recent, now]
