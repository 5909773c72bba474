"""From an instance's sizes over time to the lines of a bill. Pure: (plan, periods, month, now, usage) -> lines.

Vocabulary. A *period* is a stretch of time in which an instance had one size. A *slot* is one UTC hour. A *run* is a
stretch of slots in which one item costs the same in each.

Strategy. Every slot that a period touches is billed in full: the start is floored and the end ceiled to the hour. Where
two periods touch one slot (a resize in the middle of an hour), the slot is billed once, at the largest bandwidth, disk
and partitions in it: the floored start of a growth and the ceiled end of a shrinking say the same. Runs, not periods,
become lines, so a period cut in two makes the same bill. A slot belongs to the month its beginning lies in, and one that
has not begun by `now` is not billed yet.

Traffic lines count the usage rows of the month (metering), under a free plan too: there they cost nothing and show what
was used. Every line carries the hours it covers; the usage rows of those hours are where it can be looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby

from controlplane.billing.money import amount_of, in_units, total_of
from controlplane.billing.plans import GB, Hourly, Plan, hourly

HOUR = timedelta(hours=1)
SECONDS_PER_HOUR = 3600
RESERVED = ("bandwidth", "disk", "partitions")
USED = ("produced", "consumed", "stored")


@dataclass(frozen=True, slots=True)
class Size:
    """What was bought."""

    bandwidth_mb_per_s: Decimal
    disk_gb: Decimal
    partitions: int

    def or_larger(self, other: Size) -> Size:
        """The larger of each member."""
        return Size(
            max(self.bandwidth_mb_per_s, other.bandwidth_mb_per_s),
            max(self.disk_gb, other.disk_gb),
            max(self.partitions, other.partitions),
        )


@dataclass(frozen=True, slots=True)
class Period:
    """One size over time; `until` None: still."""

    start: datetime  # UTC
    until: datetime | None
    size: Size


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month in UTC."""

    year: int
    month: int

    @property
    def start(self) -> datetime:
        """Its first moment."""
        return datetime(self.year, self.month, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """The first moment of the next."""
        return Month.of(self.start + timedelta(days=31)).start

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """The month that a moment lies in."""
        moment = moment.astimezone(UTC)
        return cls(moment.year, moment.month)

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}"


@dataclass(frozen=True, slots=True)
class Used:
    """What was used within a month: sums over its usage rows."""

    produced_bytes: int = 0
    consumed_bytes: int = 0
    stored_byte_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill: quantity times unit price, rounded once."""

    item: str
    quantity: Decimal
    unit: str
    unit_price: Decimal
    amount: Decimal
    start: datetime
    end: datetime


def rate(plan: Plan, periods: Sequence[Period], month: Month, now: datetime, used: Used) -> tuple[Line, ...]:
    """The bill's lines: reserved items by the time they began, then what was used."""
    priced = {slot: _priced(plan, size) for slot, size in slots_of(periods, month, now).items()}
    reserved = [line for item in RESERVED for line in _runs(item, priced)]
    reserved.sort(key=lambda line: (line.start, RESERVED.index(line.item)))
    return (*reserved, *_traffic(plan, month, now, used))


def total(lines: Iterable[Line]) -> Decimal:
    """The sum of the lines' amounts."""
    return total_of(line.amount for line in lines)


def slots_of(periods: Sequence[Period], month: Month, now: datetime) -> dict[datetime, Size]:
    """Each billed hour of the month, in order, with the largest size in force within it."""
    slots: dict[datetime, Size] = {}
    for period in periods:
        until = now if period.until is None else min(period.until, now)
        slot = max(floored(period.start), month.start)
        while slot < min(until, month.end):
            slots[slot] = period.size.or_larger(slots.get(slot, period.size))
            slot += HOUR
    return dict(sorted(slots.items()))


def floored(moment: datetime) -> datetime:
    """The beginning of the UTC hour."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _priced(plan: Plan, size: Size) -> dict[str, Hourly]:
    entries = hourly(plan, bandwidth_mb_per_s=size.bandwidth_mb_per_s, disk_gb=size.disk_gb, partitions=size.partitions)
    return {entry.item: entry for entry in entries}


def _runs(item: str, priced: Mapping[datetime, Mapping[str, Hourly]]) -> Iterator[Line]:
    """Consecutive slots at one price become one line."""
    entries = [(slot, by_item[item]) for slot, by_item in priced.items() if item in by_item]

    def run_of(numbered: tuple[int, tuple[datetime, Hourly]]) -> tuple[Hourly, datetime]:
        # Time minus position stays the same while no hour is missing.
        position, (slot, entry) = numbered
        return entry, slot - position * HOUR

    for (entry, _), group in groupby(enumerate(entries), key=run_of):
        slots = [slot for _, (slot, _) in group]
        quantity = entry.units * len(slots)
        amount = amount_of(quantity, entry.unit_price)
        yield Line(item, quantity, entry.unit, entry.unit_price, amount, slots[0], slots[-1] + HOUR)


def _traffic(plan: Plan, month: Month, now: datetime, used: Used) -> Iterator[Line]:
    end = max(month.start, min(month.end, floored(now) + HOUR))
    quantities = (
        ("produced", in_units(used.produced_bytes, GB), "GB", plan.produced_per_gb),
        ("consumed", in_units(used.consumed_bytes, GB), "GB", plan.consumed_per_gb),
        ("stored", in_units(used.stored_byte_seconds, GB * SECONDS_PER_HOUR), "GB hour", plan.stored_per_gb_hour),
    )
    for item, quantity, unit, price in quantities:
        if quantity:
            yield Line(item, quantity, unit, price, amount_of(quantity, price), month.start, end)
