"""How long the loop's turns are: nobody else is served during one.

The longest is kept until it is asked for (a flow report takes it each second, the metrics show it); one longer than
`LONG_S` is a line on standard error with the account that had most of it, at most `LINES_PER_SECOND` of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dataplane.network.accounts import Account

LONG_S = 0.05
LINES_PER_SECOND = 5


class TurnFigures(NamedTuple):
    """Since it was asked for last."""

    longest_s: float
    longest_of: str  # the account that had most of it; "": the cluster's own
    busy_s: float
    turns: int


class Turns:
    """The longest turn of one loop since it was last asked for; a turn that was too long is reported."""

    __slots__ = ("_busy_s", "_count", "_longest_of", "_longest_s", "_report", "_said")

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._longest_s, self._longest_of = 0.0, ""
        self._busy_s, self._count = 0.0, 0
        self._said = (0, 0)  # in which second, how often

    def ended(self, now: float, seconds: float, most: Account | None) -> None:
        """A turn is over that took so long; `most` had most of what is charged to somebody."""
        self._count += 1
        self._busy_s += seconds
        if seconds > self._longest_s:
            self._longest_s, self._longest_of = seconds, most.name if most is not None else ""
            if seconds > LONG_S:
                self._say(int(now), seconds, most)

    def _say(self, second: int, seconds: float, most: Account | None) -> None:
        if second != self._said[0]:
            self._said = (second, 0)
        self._said = (second, self._said[1] + 1)
        if self._said[1] <= LINES_PER_SECOND:
            whose = most.name if most is not None and most.name else "the cluster itself"
            self._report(f"a turn of the loop took {seconds * 1000:.0f} ms, most of it for {whose}")

    def take(self) -> TurnFigures:
        """The figures, and begin anew."""
        figures = TurnFigures(self._longest_s, self._longest_of, self._busy_s, self._count)
        self._longest_s, self._longest_of = 0.0, ""
        self._busy_s, self._count = 0.0, 0
        return figures
