"""The flight recorder: what happened whenever an instance had to wait, with all that the decision was made from. Pure.

Told of every report (`take`, for the waiting, of which each report has its own part) and once a period of the ledger
(`tick`), it answers the intervals that are to be written. An interval is one direction of an instance or of a throttle
rule, from the first period in which somebody waited to the last one; an instance also has one where it carried more than
2 % above its limit:

=============  =========================================================================================================
ends           after 2 s without either, after a minute, when what was bought has changed, or when storage has become full
is written     when it ends, and every 10 s before: a master that is killed loses no more than that
holds          sums over its periods, and every figure of one period: that in which most was waited, give or take a tenth
costs          nothing for an instance that flows below its limit but its minute of sums; at most 12 lines a minute for
               one that waits for ever, and 100 intervals at a time with all its rules and their single clients
=============  =========================================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from quota.contracts.grant import BLOCKED_STORAGE
from quota.contracts.report import DIRECTIONS, Flow, FlowReport
from quota.contracts.rows import Row, Unit
from quota.contracts.throttled import WINDOWS_S, BrokerInputs, Moment, ThrottledInterval
from quota.core.ledger import Ledger
from quota.core.over import OverAdmission

QUIET_MS = 2_000
WRITE_EVERY_MS = 10_000
LONGEST_MS = 60_000
OVER_PERCENT = 2.0
UNDER_PERCENT = 95
WORSE = 1.1
MOST_OPEN = 100  # of one instance

Key = tuple[str, str]
"""Of a row (`quota.contracts.rows`), and direction."""
Waits = dict[int, tuple[int, int]]
"""Milliseconds waited and bytes still waiting, by broker, in one period."""


class _Period(NamedTuple):
    """One period of one direction."""

    limit: int
    strategy: str
    waits: Waits
    flow: int  # of the whole instance, bytes/s
    over: tuple[float, ...]
    began_ms: int
    ended_ms: int
    short: frozenset[int]  # brokers that waited for more than they held, while the limit had more for them
    blocked: str | None = None  # why all of it was refused

    @property
    def waited_ms(self) -> int:
        """By all brokers."""
        return sum(waited for waited, _ in self.waits.values())

    def longest_ms(self, brokers: Iterable[int]) -> int:
        """The longest wait of some brokers, up to the period itself."""
        longest = max((self.waits[broker][0] for broker in brokers), default=0)
        return min(longest, self.ended_ms - self.began_ms)

    def is_worse_than(self, other: _Period) -> bool:
        """Whether it is rather this one's inputs that are kept: collecting them is not done for a trifle."""
        if self.waited_ms or other.waited_ms:
            return self.waited_ms > WORSE * other.waited_ms
        return self.over[0] > WORSE * other.over[0]


@dataclass(slots=True)
class _Open:
    """An interval that may go on."""

    first: _Period
    worst: _Period
    moment: Moment  # of the worst
    written_at_ms: int
    ended_at_ms: int = 0
    throttled_ms: int = 0
    under_limit_ms: int = 0
    over_percent: list[float] = field(default_factory=lambda: [0.0] * len(WINDOWS_S))
    waits_ms: dict[int, int] = field(default_factory=dict)

    def add(self, period: _Period) -> None:
        self.ended_at_ms = period.ended_ms
        self.throttled_ms += period.longest_ms(period.waits)
        if period.blocked is None and period.flow * 100 < period.limit * UNDER_PERCENT:
            self.under_limit_ms += period.longest_ms(period.short)
        self.over_percent = [max(pair) for pair in zip(self.over_percent, period.over, strict=True)]
        for broker, (waited, _) in period.waits.items():
            self.waits_ms[broker] = self.waits_ms.get(broker, 0) + waited

    def goes_on(self, period: _Period) -> bool:
        """Whether the period belongs into this interval."""
        lasts = self.first.began_ms <= period.began_ms < self.first.began_ms + LONGEST_MS
        first = self.first
        same = (first.limit, first.strategy, first.blocked) == (period.limit, period.strategy, period.blocked)
        return lasts and same


class Recorder:
    """Of one mastership, beside its ledger."""

    def __init__(self, *, period_ms: int) -> None:
        self._period_ms = period_ms
        self._waits: dict[Key, Waits] = {}  # since the last tick
        self._over: dict[Key, OverAdmission] = {}
        self._open: dict[Key, _Open] = {}
        self._opened: Counter[str] = Counter()  # of each instance, its rules included

    def take(self, report: FlowReport) -> None:
        """Note who waited. Reports cover overlapping periods, but no waiting twice."""
        # Places instead of names, and first a look without any work: a master reads 200,000 rows a second.
        waited = [(name, entry) for name, entry in report.instances.items() if entry[0][1] or entry[1][1]]
        for instance, (produce, consume, _, _) in waited:
            if produce.throttled_ms:
                self._wait((instance, "produce"), report.broker, produce)
            if consume.throttled_ms:
                self._wait((instance, "consume"), report.broker, consume)

    def tick(self, ledger: Ledger, now: float, now_ms: int) -> list[ThrottledInterval]:
        """A period has passed: what is to be written. `now` is the ledger's clock, `now_ms` the one on the wall."""
        waits, self._waits = self._waits, {}
        flows = _flows(ledger)
        due: list[ThrottledInterval] = []
        for key in sorted({*waits, *self._over, *flows}):
            limited = ledger.limited(key[0])
            limit = None if limited is None else limited.limit(key[1])
            flow = flows.get(key, 0)
            over, limit = self._windows(key, flow, limit)
            if limited and limit is not None and (key in waits or over[0] > OVER_PERCENT):
                began_ms = now_ms - self._period_ms
                blocked = BLOCKED_STORAGE if _is_refused(ledger, key) else None
                waited = waits.get(key, {})
                short = _short(ledger, key, waited, flow, limit)
                period = _Period(limit, limited.strategy, waited, flow, over, began_ms, now_ms, short, blocked)
                due += self._took(ledger, key, period, now)
        for key, interval in list(self._open.items()):
            if now_ms - interval.ended_at_ms >= QUIET_MS:
                due.append(self._close(ledger.epoch, key))
            elif now_ms - interval.written_at_ms >= WRITE_EVERY_MS:
                interval.written_at_ms = now_ms
                due.append(_frozen(ledger.epoch, key, interval))
        return due

    def close(self, epoch: int) -> list[ThrottledInterval]:
        """The mastership ends: what was still open."""
        return [self._close(epoch, key) for key in list(self._open)]

    # --- inside -------------------------------------------------------------------------------------------------------

    def _wait(self, key: Key, broker: int, flow: Flow) -> None:
        waits = self._waits.setdefault(key, {})
        waits[broker] = (waits.get(broker, (0, 0))[0] + flow.throttled_ms, flow.queued_bytes)

    def _windows(self, key: Key, flow: int, limit: int | None) -> tuple[tuple[float, ...], int | None]:
        """How far above what was bought it went, and the limit that was in force: for a moment, a higher one from before."""
        if not limit or "/" in key[0]:  # what is bought is the instance's; a rule is its tenant's own
            self._over.pop(key, None)
            return (0.0,) * len(WINDOWS_S), limit
        windows = self._over.get(key)
        if windows is None:
            windows = self._over[key] = OverAdmission(self._period_ms)
        over = windows.add(flow, limit)
        if windows.empty:
            del self._over[key]
        return over, windows.in_force

    def _took(self, ledger: Ledger, key: Key, period: _Period, now: float) -> list[ThrottledInterval]:
        """A period that belongs into an interval, the open one or a new one; the one that had to end for it."""
        interval = self._open.get(key)
        ended = [self._close(ledger.epoch, key)] if interval and not interval.goes_on(period) else []
        if interval is None or ended:
            if self._opened[_instance(key)] >= MOST_OPEN:
                return ended
            self._opened[_instance(key)] += 1
            moment = _moment(ledger, key, period, now)
            interval = self._open[key] = _Open(period, period, moment, written_at_ms=period.ended_ms)
        elif period.is_worse_than(interval.worst):
            interval.worst, interval.moment = period, _moment(ledger, key, period, now)
        interval.add(period)
        return ended

    def _close(self, epoch: int, key: Key) -> ThrottledInterval:
        self._opened[_instance(key)] -= 1
        if not self._opened[_instance(key)]:
            del self._opened[_instance(key)]
        return _frozen(epoch, key, self._open.pop(key))


def _short(ledger: Ledger, key: Key, waits: Waits, flow: int, limit: int) -> frozenset[int]:
    """Of the brokers that waited, those that waited for the division: more could have flowed, and they did not hold it.

    A broker that holds all that the others leave makes a burst wait for the limit itself, however little flows in the period.
    """
    found = set()
    for broker in waits:
        held, own = ledger.holds(*key, broker)
        if held is None or held * 100 < (limit - (flow - own)) * UNDER_PERCENT:
            found.add(broker)
    return frozenset(found)


def _is_refused(ledger: Ledger, key: Key) -> bool:
    """Whether what waited was records that no full storage takes; requests, and the time they cost, wait for themselves."""
    row, direction = Row.parse(key[0]), key[1]
    return direction == "produce" and row.unit is Unit.BYTES and ledger.storage_full(row.instance)


def _instance(key: Key) -> str:
    return Row.parse(key[0]).instance


def _flows(ledger: Ledger) -> dict[Key, int]:
    """What flows of each instance in each direction, bytes/s, where anything does."""
    return {
        (instance, direction): flow
        for instance, *both in ledger.totals()
        for direction, flow in zip(DIRECTIONS, both, strict=True)
        if flow
    }


def _moment(ledger: Ledger, key: Key, period: _Period, now: float) -> Moment:
    """Everything that this period's decision is made from, and the decision."""
    allocation, held = ledger.allocation(*key, now), ledger.held(*key)
    brokers = []
    for share in allocation.shares:
        in_force = held.get(share.broker)
        waited_ms, waiting_bytes = period.waits.get(share.broker, (0, 0))
        brokers.append(
            BrokerInputs(
                share.broker,
                share.leaders,
                share.initial_bytes_per_s,
                share.flow_bytes_per_s,
                share.initial_bytes_per_s if in_force is None else in_force,
                share.allocation_bytes_per_s,
                share.branch.value,
                waited_ms,
                waiting_bytes,
            )
        )
    return Moment(period.ended_ms, tuple(brokers))


def _frozen(epoch: int, key: Key, interval: _Open) -> ThrottledInterval:
    row = Row.parse(key[0])
    return ThrottledInterval(
        instance=row.instance,
        rule=row.name,
        direction=key[1],
        epoch=epoch,
        strategy=interval.first.strategy,
        started_at_ms=interval.first.began_ms,
        ended_at_ms=interval.ended_at_ms,
        limit=interval.first.limit,
        throttled_ms=interval.throttled_ms,
        under_limit_ms=interval.under_limit_ms,
        over_percent=tuple(interval.over_percent),
        waits_ms=dict(sorted(interval.waits_ms.items())),
        moment=interval.moment,
        blocked=interval.first.blocked,
    )
