"""Throttled intervals that are alike and follow each other are one reason. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from quota.contracts.rows import Unit
from quota.core.explain import explain_interval, narrow_broker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quota.contracts.throttled import BrokerInputs, ThrottledInterval

APART_MS = 5 * 60_000
"""Of reasons that are alike: longer without waiting is a new one."""


class Remedy(StrEnum):
    """What would help."""

    BANDWIDTH = "bandwidth"  # the limit was used up
    STORAGE = "storage"
    RULE = "rule"  # a throttle rule of the tenant's own
    LEADERS = "leaders"  # one broker had too much of the traffic
    REQUESTS = "requests"  # fewer and larger ones
    NONE = ""  # nobody had to wait


@dataclass(frozen=True, slots=True)
class Why:
    """One reason: one interval, or several in a row that are alike."""

    started_at: datetime
    ended_at: datetime
    intervals: tuple[ThrottledInterval, ...]  # the newest first
    worst: ThrottledInterval  # in which most was waited
    sentence: str  # of the worst of them
    remedy: Remedy

    @property
    def times(self) -> int:
        """Intervals."""
        return len(self.intervals)

    @property
    def waited_ms(self) -> int:
        """In all of them."""
        return sum(each.throttled_ms for each in self.intervals)

    @property
    def waited_s(self) -> int:
        """In whole seconds."""
        return round(self.waited_ms / 1000)

    @property
    def seconds(self) -> int:
        """From the beginning to the end."""
        return round((self.ended_at - self.started_at).total_seconds())

    @property
    def direction(self) -> str:
        """Produce or consume."""
        return self.worst.direction

    @property
    def rule(self) -> str | None:
        """The row's name within the instance: what rates and amounts are in."""
        return self.worst.rule

    @property
    def rule_id(self) -> str:
        """Of a throttle rule; empty: the instance's own limit."""
        row = self.worst.row
        return row.rule.resource if row.unit is Unit.BYTES and self.worst.rule else ""

    @property
    def brokers(self) -> tuple[BrokerInputs, ...]:
        """As the worst of them saw each."""
        return self.worst.moment.brokers

    @property
    def broker(self) -> int | None:
        """Where most was waited in all of them; None: it is not known."""
        waits: dict[int, int] = {}
        for interval in self.intervals:
            for broker, waited_ms in interval.waits_ms.items():
                waits[broker] = waits.get(broker, 0) + waited_ms
        return max(sorted(waits), key=waits.__getitem__, default=None)


def whys(intervals: Sequence[ThrottledInterval]) -> list[Why]:
    """Why somebody waited, newest first, from intervals in that order. Those in a row that are alike are one reason.

    Alike: the same limit made wait, in the same way, and no more than `APART_MS` lies between one and the next.
    """
    runs: list[list[ThrottledInterval]] = []
    latest: dict[tuple[object, ...], list[ThrottledInterval]] = {}
    for interval in intervals:
        kind = _kind(interval)
        run = latest.get(kind)
        if run is not None and run[-1].started_at_ms - interval.ended_at_ms <= APART_MS:
            run.append(interval)
        else:
            latest[kind] = run = [interval]
            runs.append(run)
    return [_why(run) for run in runs]


def _kind(interval: ThrottledInterval) -> tuple[object, ...]:
    return (interval.direction, interval.rule, interval.limit, interval.blocked, narrow_broker(interval))


def _why(run: Sequence[ThrottledInterval]) -> Why:
    worst = max(run, key=lambda each: each.throttled_ms)
    return Why(
        started_at=_moment(min(each.started_at_ms for each in run)),
        ended_at=_moment(max(each.ended_at_ms for each in run)),
        intervals=tuple(run),
        worst=worst,
        sentence=explain_interval(worst),
        remedy=_remedy(worst),
    )


def _remedy(interval: ThrottledInterval) -> Remedy:
    if interval.blocked is not None:
        return Remedy.STORAGE
    if not interval.throttled_ms:
        return Remedy.NONE
    if interval.row.unit is not Unit.BYTES:
        return Remedy.REQUESTS
    if narrow_broker(interval) is not None:
        return Remedy.LEADERS
    return Remedy.BANDWIDTH if interval.rule is None else Remedy.RULE


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
