"""How much in the last minute: rates of counters that only grow, without looking at a clock when they do.

Whoever counts adds a number and nothing more. Two earlier readings are kept beside the counters, and are replaced when somebody
looks: a sweep that goes round all connections once a minute, or a question. So what came lately is what came since the older
reading, half a minute to two minutes ago, and what nobody looks at costs nothing. Pure.
"""

from __future__ import annotations

READING_S = 30.0
"""A reading that is as old makes room for another."""

Counters = tuple[int, ...]


class Readings:
    """The two earlier readings of some counters, which began at `zeros` at `began_s` (monotonic).

    A connection has one for as long as it lives, so the zeros are everybody's.
    """

    __slots__ = ("_newer", "_older")

    def __init__(self, began_s: float, zeros: Counters) -> None:
        self._older = self._newer = (began_s, zeros)

    def look(self, now_s: float, counters: Counters) -> tuple[float, Counters]:
        """Over how many seconds, and what was counted in them: since the older reading, or since the beginning."""
        if now_s - self._newer[0] >= READING_S:
            self._older, self._newer = self._newer, (now_s, counters)
        then_s, then = self._older
        return now_s - then_s, tuple(count - before for count, before in zip(counters, then, strict=True))
