"""What the loop worked for each instance in a window, beside how long its requests took (`quota.contracts.loop_time`).

Nothing is done for a request: the loop's accounts have what each has used anyway, and the histograms of the window are read
when they are taken for the flow master (`windows.py`), some instances in a turn. Told with the first report after the window's
end, and then forgotten. Where a report is given up while it is made, its window is told together with the next one; so is one of
less than a second, as after the clock was set: nothing could be said of it in parts of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quota.contracts.loop_time import MOST_ROWS, MOST_WINDOWS, LoopUse, LoopWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from quota.contracts.requests import RequestCounts

US = 1_000_000
P99 = 0.99
LEAST_REQUESTS = 20
"""Of fewer nothing is said of 99 in a hundred: that would be the slowest one."""
LEAST_S = 1.0


class LoopTimes:
    """Of one broker. `worked_s`: what the loop has worked for an account since that was made; `now`: the monotonic clock."""

    def __init__(self, worked_s: Callable[[str], float], now: Callable[[], float]) -> None:
        self._worked_s, self._now = worked_s, now
        self._since = now()
        self._worked: dict[str, float] = {}  # up to which windows have told, by account
        self._rows: dict[str, LoopUse] = {}  # of the window that is being taken, by instance id
        self._told: dict[int, LoopWindow] = {}

    def note(self, instance: str, account: str, counts: RequestCounts | None) -> None:
        """One instance of a window that is over; None: it asked nothing."""
        worked_s = self._worked_s(account)
        spent_s = worked_s - self._worked.get(account, 0.0)
        if spent_s < 0:  # the account was forgotten, and made anew
            spent_s = worked_s
        if spent_s:
            self._worked[account] = worked_s
        use = LoopUse(
            round(spent_s * US),
            0 if counts is None else _p99_us(counts, "Produce"),
            0 if counts is None else _p99_us(counts, "Fetch"),
        )
        before = self._rows.get(instance)
        if before is not None:  # of a window that nobody was told of
            use = LoopUse(
                before.own_us + use.own_us,
                max(before.produce_p99_us, use.produce_p99_us),
                max(before.fetch_p99_us, use.fetch_p99_us),
            )
        if any(use):
            self._rows[instance] = use

    def close(self, at: int, accounts: set[str]) -> None:
        """All of the window that began then was noted. `accounts` are those that there are."""
        now = self._now()
        if now - self._since < LEAST_S:
            return
        rows, self._rows = self._rows, {}
        all_us = sum(use.own_us for use in rows.values())
        if len(rows) > MOST_ROWS:
            busiest = sorted(rows, key=lambda name: (-rows[name].own_us, name))[:MOST_ROWS]
            rows = {name: rows[name] for name in busiest}
        if rows:
            self._told[at] = LoopWindow(max(1, round((now - self._since) * US)), all_us, rows)
            for old in sorted(self._told)[:-MOST_WINDOWS]:
                del self._told[old]
        self._since = now
        if len(self._worked) > len(accounts):
            self._worked = {name: worked for name, worked in self._worked.items() if name in accounts}

    def take(self) -> dict[int, LoopWindow]:
        """What the next report tells."""
        told, self._told = self._told, {}
        return told


def _p99_us(counts: RequestCounts, api: str) -> int:
    if api not in counts.apis:
        return 0
    times = counts.of(api).times("local")
    found = times.percentile_us(P99) if times.count >= LEAST_REQUESTS else None
    return 0 if found is None else max(1, round(found))
