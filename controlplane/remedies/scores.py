"""The noisy-neighbour score: how much of a spike of an instance's latency fell together with others' use of its broker. Pure.

Of one instance on one broker, and of one kind of requests, of the ten seconds of a minute in which these were slowest::

    score = 100 * (1 - usual / p99) * (time of the broker's loop that went to other instances / the ten seconds)

`p99` is what 99 of 100 requests took at most in their local part, where they waited for nothing but this broker; `usual` is the
median of that over the minutes of the last hour in which there were such requests, without those that have a score themselves.
Each factor is from 0 to 1: how much of the time is above what is usual, and how much of the broker others had meanwhile. It
is of the loop's time only, and says what came together, not what caused it: an instance that is slow by itself on a busy broker
has a score as well, and others may have delayed one more than their part of the time suggests. There is none (0) without a spike:
where `p99` is not twice what is usual and 2 ms more, or of the last hour fewer than ten minutes are known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES, LEAST_MORE_US = 2, 2_000
"""A spike is so many times what is usual, and so much more: a Fetch of 0.1 ms that took 0.3 is none."""
LEAST_KNOWN = 10
"""Minutes of the last hour."""
APART_S = 60
MINUTE_S = 60
LEAST_SCORE = 10
"""What is less is told to nobody: others had little of the broker."""


class Kind(StrEnum):
    """Of requests."""

    PRODUCE = "produce"
    FETCH = "fetch"


@dataclass(frozen=True, slots=True)
class Slow:
    """Ten seconds, in microseconds; 0: there were no such requests, or too few. Of a minute each kind has its slowest ones."""

    produce_p99_us: int
    fetch_p99_us: int
    own_us: int  # of the loop, for this instance
    others_us: int
    elapsed_us: int

    def p99_us(self, kind: Kind) -> int:
        """Of one kind."""
        return self.produce_p99_us if kind is Kind.PRODUCE else self.fetch_p99_us

    def only(self, kind: Kind) -> Slow:
        """Without the other kind's requests."""
        produce, fetch = (self.p99_us(each) if each is kind else 0 for each in (Kind.PRODUCE, Kind.FETCH))
        return replace(self, produce_p99_us=produce, fetch_p99_us=fetch)


@dataclass(frozen=True, slots=True)
class Score:
    """Of the kind of requests for which it is highest."""

    score: int
    kind: Kind
    usual_us: int


NONE = Score(0, Kind.PRODUCE, 0)


def score_of(slow: Slow, before: Sequence[Slow]) -> Score:
    """Of a minute, by those of the hour before it."""
    found = NONE
    for kind in Kind:
        p99_us = slow.p99_us(kind)
        known = [each.p99_us(kind) for each in before if each.p99_us(kind)]
        if not p99_us or len(known) < LEAST_KNOWN:
            continue
        usual_us = round(median(known))
        if p99_us < TIMES * usual_us or p99_us < usual_us + LEAST_MORE_US:
            continue
        share = min(1.0, slow.others_us / max(1, slow.elapsed_us))
        score = round(100 * (1 - usual_us / p99_us) * share)
        if score > found.score:
            found = Score(score, kind, usual_us)
    return found


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute with a score, on one broker."""

    instance: str
    broker: int
    at: int  # seconds since 1970
    slow: Slow
    score: Score


@dataclass(frozen=True, slots=True)
class Spell:
    """Minutes in a row. The figures are those of the one with the highest score."""

    minutes: tuple[Minute, ...]

    @property
    def worst(self) -> Minute:
        """With the highest score; of equals the first."""
        return max(self.minutes, key=lambda each: (each.score.score, -each.at))

    @property
    def started_at(self) -> int:
        """Seconds since 1970."""
        return self.minutes[0].at

    @property
    def ended_at(self) -> int:
        """The last minute's end."""
        return self.minutes[-1].at + MINUTE_S

    @property
    def p99_us(self) -> int:
        """Of the worst."""
        return self.worst.slow.p99_us(self.worst.score.kind)

    @property
    def others_percent(self) -> int:
        """Of the broker's time."""
        return min(100, round(100 * self.worst.slow.others_us / max(1, self.worst.slow.elapsed_us)))

    @property
    def own_percent(self) -> int:
        """Likewise."""
        return min(100, round(100 * self.worst.slow.own_us / max(1, self.worst.slow.elapsed_us)))


def spells(minutes: Sequence[Minute]) -> list[Spell]:
    """Those in a row, of one instance, broker and kind of requests, together; the newest first."""
    runs: list[list[Minute]] = []
    open_ones: dict[tuple[str, int, Kind], list[Minute]] = {}
    for minute in sorted(minutes, key=lambda each: (each.at, each.instance, each.broker)):
        key = (minute.instance, minute.broker, minute.score.kind)
        run = open_ones.get(key)
        if run is not None and minute.at - run[-1].at <= APART_S:
            run.append(minute)
        else:
            open_ones[key] = run = [minute]
            runs.append(run)
    found = [Spell(tuple(run)) for run in runs]
    return sorted(found, key=lambda spell: (-spell.started_at, -spell.worst.score.score, spell.worst.broker))
