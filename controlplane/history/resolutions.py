"""How fine rows are, how long they are kept, and which of them fit a question. Pure; moments are seconds since 1970.

A step begins at a multiple of its length since 1970, so hours and days are those of UTC, and a minute never belongs to two
hours. Rows are kept a little longer than is promised: who asks for the last hour asks a moment later than he means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_POINTS = 1000
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
DAY_S = _DAY
STEPS = (
    10, 20, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE,
    _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY,
)  # fmt: skip
"""What is chosen from where no step is asked for."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Rows of one length."""

    step_s: int
    kept_s: int
    grace_s: int
    words: str  # how long that is

    def oldest(self, now_s: int) -> int:
        """Rows from then on are there."""
        return now_s - self.kept_s - self.grace_s


SAMPLES = Resolution(10, _HOUR, 2 * _MINUTE, "1 hour")
MINUTES = Resolution(_MINUTE, 15 * _DAY, _HOUR, "15 days")
HOURS = Resolution(_HOUR, 400 * _DAY, _DAY, "400 days")
RESOLUTIONS = (SAMPLES, MINUTES, HOURS)


class RangeError(ValueError):
    """Nothing fits; `field` is what is wrong with the question."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps from `start` up to `end`, each made of rows of `resolution`."""

    start: int
    end: int
    step_s: int
    resolution: Resolution

    @property
    def moments(self) -> range:
        """When each step begins."""
        return range(self.start, self.end, self.step_s)


def floor(at: int, step_s: int) -> int:
    """Where the step of a moment begins."""
    return at - at % step_s


def plan_of(
    start: int, end: int, step_s: int | None, now_s: int, resolutions: Sequence[Resolution] = RESOLUTIONS
) -> Plan:
    """How [start, end) is answered: from the finest rows that are kept for all of it. Raises RangeError."""
    kept = [each for each in resolutions if start >= each.oldest(now_s)]
    if not kept:
        raise RangeError("from", f"must not be more than {HOURS.words} ago: nothing older is kept")
    if end <= start:
        raise RangeError("from", "must be earlier than to, and not in the future")
    if step_s is None:
        return _chosen(start, end, kept[0])
    finest_s = resolutions[0].step_s
    if step_s <= 0 or step_s % finest_s:
        raise RangeError("step", f"must be a multiple of {finest_s} seconds")
    fitting = [each for each in kept if step_s % each.step_s == 0]
    if not fitting:
        finest = kept[0]
        raise RangeError(
            "step",
            f"must be a multiple of {finest.step_s} seconds for a range that begins so long ago: "
            f"finer rows are kept for {resolutions[resolutions.index(finest) - 1].words}",
        )
    plan = _plan(start, end, step_s, fitting[0])
    if len(plan.moments) > MOST_POINTS:
        raise RangeError("step", f"makes {len(plan.moments)} points of this range; {MOST_POINTS} are the most")
    return plan


def _chosen(start: int, end: int, resolution: Resolution) -> Plan:
    plans = (_plan(start, end, step_s, resolution) for step_s in STEPS if step_s >= resolution.step_s)
    return next(plan for plan in plans if len(plan.moments) <= MOST_POINTS and not plan.step_s % resolution.step_s)


def _plan(start: int, end: int, step_s: int, resolution: Resolution) -> Plan:
    return Plan(floor(start, step_s), -floor(-end, step_s), step_s, resolution)
