"""What instances with elastic bandwidth carry above what they bought, counted where all brokers' flows are known. Pure.

Rule. In each period the flow of an instance is that of all its brokers together, as their last reports say it, of those that
have reported lately: nobody pays for what a broker that is silent may have carried. What counts is::

    max(0, min(flow, cap) - limit)          bytes a second, for the length of the period

What goes above the cap (the documented rule may hand out more than a limit in sum) is given away, so that the cap is the most
that a second can cost. A limit, or a cap, that was lowered a moment ago still counts as it was while brokers come to hear of it.
While a new master is learning it counts nothing: it cannot know whether its predecessor still does.

Sums are whole numbers of byte-milliseconds, divided once, when a line is written: whatever the length of a period, a minute's
bytes are exact.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quota.contracts.elastic import MINUTE_MS, ElasticUse
from quota.contracts.report import DIRECTIONS
from quota.core.over import SETTLES_MS

if TYPE_CHECKING:
    from quota.contracts.instance import InstanceSpec
    from quota.core.ledger import Ledger

WRITE_EVERY_MS = 10_000
Key = tuple[str, str]
"""Instance and direction."""


@dataclass(slots=True)
class _Minute:
    """Of one key: the sum of a minute, and what of it was written."""

    minute_ms: int
    byte_ms: int = 0
    written_bytes: int = 0


@dataclass(slots=True)
class _Bounds:
    """What was bought and the cap, in the last periods."""

    lately: deque[tuple[int, int]] = field(default_factory=deque)

    def add(self, limit: int, cap: int, most: int) -> tuple[int, int]:
        """Those in force: the largest of the last `most` periods."""
        self.lately.append((limit, cap))
        while len(self.lately) > most:
            self.lately.popleft()
        return max(each[0] for each in self.lately), max(each[1] for each in self.lately)


class ElasticMeter:
    """Of one mastership, beside its ledger."""

    def __init__(self, *, period_ms: int) -> None:
        self._period_ms = period_ms
        self._settles = 1 + max(1, SETTLES_MS // period_ms)
        self._bounds: dict[Key, _Bounds] = {}
        self._minutes: dict[Key, _Minute] = {}
        self._written_at_ms = 0

    def tick(self, ledger: Ledger, now: float, now_ms: int) -> list[ElasticUse]:
        """A period has passed: what is to be written. `now` is the ledger's clock, `now_ms` the one on the wall."""
        due = self._begin_minute(ledger.epoch, now_ms)
        elastic = {} if ledger.learning(now) else {name: spec for name, spec in ledger.specs.items() if spec.is_elastic}
        for name, spec in elastic.items():
            self._count(spec, ledger.flowing(name, now), now_ms)
        self._forget({(name, direction) for name in elastic for direction in DIRECTIONS})
        if now_ms - self._written_at_ms >= WRITE_EVERY_MS:
            self._written_at_ms = now_ms
            due += self._lines(ledger.epoch)
        return due

    def close(self, epoch: int) -> list[ElasticUse]:
        """The mastership ends: what was not written yet."""
        return self._lines(epoch)

    def _begin_minute(self, epoch: int, now_ms: int) -> list[ElasticUse]:
        """Minutes that are over are written for the last time."""
        minute_ms = now_ms - now_ms % MINUTE_MS
        over = [key for key, minute in self._minutes.items() if minute.minute_ms != minute_ms]
        lines = self._lines(epoch) if over else []
        for key in over:
            del self._minutes[key]
        return lines

    def _count(self, spec: InstanceSpec, flows: tuple[int, int], now_ms: int) -> None:
        for direction, flow in zip(DIRECTIONS, flows, strict=True):
            limit, cap = spec.limits.bought(direction), spec.limits.allocated(direction)
            if limit is None or cap is None:
                continue
            key = (spec.id, direction)
            limit, cap = self._bounds.setdefault(key, _Bounds()).add(limit, cap, self._settles)
            above = max(0, min(flow, cap) - limit)
            if above:
                minute = self._minutes.setdefault(key, _Minute(now_ms - now_ms % MINUTE_MS))
                minute.byte_ms += above * self._period_ms

    def _forget(self, elastic: set[Key]) -> None:
        for key in self._bounds.keys() - elastic:
            del self._bounds[key]

    def _lines(self, epoch: int) -> list[ElasticUse]:
        """Each minute that has more than was written of it."""
        found = []
        for (instance, direction), minute in sorted(self._minutes.items()):
            used = minute.byte_ms // 1000
            if used > minute.written_bytes:
                minute.written_bytes = used
                found.append(ElasticUse(instance, direction, epoch, minute.minute_ms, used))
        return found
