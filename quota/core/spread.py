"""What brokers said of one row of the ledger, turned into columns, and how its limits are divided between them. Pure.

A hundred brokers report a few at a time, and the answer to each depends on what all of them said. So that it costs what
has changed and not what there is, the flows of those that lead stand in columns, which a report changes in place; a
division adds up a column once, and says what a broker gets when that one is answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quota.contracts.report import Flow, InstanceReport

Row = tuple[InstanceReport, int]
"""What a broker last said of an instance, and over how many milliseconds."""


class Cells(NamedTuple):
    """One direction divided, by the places of its leaders."""

    amount: Callable[[int], int | None]
    branches: list[str]


class Spread:
    """One instance, or throttle rule, over all brokers that report on it.

    `places` and columns are those of `lay_out`; `divided`, `divided_at` and `changed_at` are the ledger's.
    """

    __slots__ = ("changed_at", "consume", "divided", "divided_at", "leaders", "places", "produce", "rows")

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.places: dict[int, int] | None = None  # None: who leads has changed
        self.leaders: list[int] = []
        self.produce: list[int] = []  # bytes/s
        self.consume: list[int] = []
        self.changed_at = 0
        self.divided: tuple[Cells, Cells] | None = None
        self.divided_at = -1

    def put(self, broker: int, entry: InstanceReport, period_ms: int) -> None:
        self.rows[broker] = (entry, period_ms)
        if self.places is None:
            return
        # Fields by their places, here and in the ledger: a master does this 200,000 times a second.
        place, leaders = self.places.get(broker), entry[0][3]
        if place is None:
            if leaders:
                self.places = None
        elif self.leaders[place] != leaders:
            self.places = None
        else:
            self.produce[place] = entry[0][0] * 1000 // (period_ms or 1)
            self.consume[place] = entry[1][0] * 1000 // (period_ms or 1)

    def drop(self, broker: int) -> None:
        self.rows.pop(broker, None)
        self.places = None

    def lay_out(self) -> dict[int, int]:
        """The places of those that lead something, in the order of their numbers; the columns are theirs."""
        if self.places is None:
            leading = sorted(broker for broker, (entry, _) in self.rows.items() if entry[0][3] > 0)
            rows = [self.rows[broker] for broker in leading]
            self.leaders = [entry[0][3] for entry, _ in rows]
            self.produce = [_per_second(entry[0], period_ms) for entry, period_ms in rows]
            self.consume = [_per_second(entry[1], period_ms) for entry, period_ms in rows]
            self.places = {broker: place for place, broker in enumerate(leading)}
        return self.places

    def waits(self, direction: str) -> list[bool]:
        """Whether somebody waited at each leader."""
        flows = (self.rows[broker][0].flow(direction) for broker in self.lay_out())
        return [flow.throttled_ms > 0 or flow.queued_bytes > 0 for flow in flows]

    def totals(self) -> tuple[int, int]:
        """Produce and consume over all brokers in bytes/s, also over those that do not lead any more."""
        places = self.lay_out()
        produce, consume = sum(self.produce), sum(self.consume)
        if len(places) < len(self.rows):
            for broker, (entry, period_ms) in self.rows.items():
                if broker not in places:
                    produce += _per_second(entry.produce, period_ms)
                    consume += _per_second(entry.consume, period_ms)
        return produce, consume


def _per_second(flow: Flow, period_ms: int) -> int:
    return flow[0] * 1000 // (period_ms or 1)
