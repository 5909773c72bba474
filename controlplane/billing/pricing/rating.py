"""From an instance's plans and sizes over time to the lines of a bill. Pure: (terms, periods, month, now, hours, paid) -> lines.

Vocabulary. A *period* is a stretch of time in which an instance had one size. A *term* begins where a plan comes into
force, at a full hour, and lasts until the next one begins. A *slot* is one UTC hour. A *run* is a stretch of slots in
which one item costs the same in each.

Strategy. Every slot that a period touches is billed in full: the start is floored and the end ceiled to the hour. Where
two periods touch one slot (a resize in the middle of an hour), the slot is billed once, at the largest bandwidth, disk
and partitions in it: the floored start of a growth and the ceiled end of a shrinking say the same. Runs, not periods,
become lines, so a period cut in two makes the same bill. A slot belongs to the month its beginning lies in, and one that
has not begun by `now` is not billed yet.

A change of plan ends every run: the hours before are billed by the old plan, those after it by the new one, what is
reserved and what is used alike. A term cut in two makes the same bill.

Traffic lines count the usage rows of each term's hours (metering), under a free plan too: there they cost nothing and
show what was used. Every line carries the hours it covers; the usage rows of those hours are where it can be looked up.

What was paid in advance (`Paid`, which prepaid.py makes) has lines of its own, in the month in which each was charged; the
slots that it covers cost nothing by the hour. So a slot in which an instance was open is paid once, in one way or the other.

`rate` is the only way from inputs to lines: bills so far, invoices, their verification and what-ifs all take it.
adjustments.py rates what came after an invoice, as the difference of two such ratings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import groupby

from controlplane.billing.pricing.money import amount_of, in_units, total_of
from controlplane.billing.pricing.plans import GB, Hourly, Plan, hourly

HOUR = timedelta(hours=1)
SECONDS_PER_HOUR = 3600
RESERVED = ("bandwidth", "disk", "partitions")
USED = ("produced", "consumed", "stored")
PREPAID = ("prepaid_bandwidth", "prepaid_disk", "prepaid_partitions")
"""What is reserved, where it is paid in advance."""
ELASTIC = ("elastic_produced", "elastic_consumed")
"""What was carried above the bandwidth that was bought (elastic.py)."""
CREDIT = "guarantee_credit"
"""What is given back of days on which the bandwidth that was bought could not be had (credits.py)."""
TAX = "tax"
"""On all of it (taxes.py)."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large an instance is at one moment: what it has bought."""

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

    def before(self, count: int) -> Month:
        """So many months earlier."""
        months = 12 * self.year + self.month - 1 - count
        return Month(months // 12, months % 12 + 1)

    @classmethod
    def of(cls, moment: datetime) -> Month:
        """The month that a moment lies in."""
        moment = moment.astimezone(UTC)
        return cls(moment.year, moment.month)

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.month:02d}"


@dataclass(frozen=True, slots=True)
class Term:
    """A plan that is in force from `start`, a full hour, until the next term begins."""

    start: datetime  # UTC
    plan: Plan


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a month that one plan prices."""

    start: datetime
    end: datetime
    plan: Plan


@dataclass(frozen=True, slots=True)
class Used:
    """What was used within some hours: sums over their usage rows."""

    produced_bytes: int = 0
    consumed_bytes: int = 0
    stored_byte_seconds: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(
            self.produced_bytes + other.produced_bytes,
            self.consumed_bytes + other.consumed_bytes,
            self.stored_byte_seconds + other.stored_byte_seconds,
        )

    def __sub__(self, other: Used) -> Used:
        return Used(
            self.produced_bytes - other.produced_bytes,
            self.consumed_bytes - other.consumed_bytes,
            self.stored_byte_seconds - other.stored_byte_seconds,
        )

    def or_larger(self, other: Used) -> Used:
        """The larger of each member."""
        return Used(
            max(self.produced_bytes, other.produced_bytes),
            max(self.consumed_bytes, other.consumed_bytes),
            max(self.stored_byte_seconds, other.stored_byte_seconds),
        )

    def of(self, item: str) -> int:
        """One of USED."""
        return (self.produced_bytes, self.consumed_bytes, self.stored_byte_seconds)[USED.index(item)]


Hours = Mapping[datetime, Used]
"""What was used, by the beginning of the UTC hour."""


@dataclass(frozen=True, slots=True)
class Adjusts:
    """The line of an invoice that another one adjusts. `line` counts from 1; None: the invoice has no such line."""

    invoice: str
    month: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Charged:
    """Why and when a line of PREPAID came to be: one of prepaid.CHARGES. A refund has a negative quantity."""

    kind: str
    at: datetime
    of: datetime | None = field(default=None, compare=False)  # of a refund: when that was charged which it pays back


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill: quantity times unit price, rounded once.

    Where it adjusts another, quantity and amount are the differences to what was billed, so their quotient may be a
    rounding away from the unit price.
    """

    item: str
    quantity: Decimal
    unit: str
    unit_price: Decimal
    amount: Decimal
    start: datetime
    end: datetime
    plan: str
    plan_version: int
    adjusts: Adjusts | None = None
    charged: Charged | None = None  # of PREPAID alone


@dataclass(frozen=True, slots=True)
class Paid:
    """What was paid in advance, up to a moment: slots that cost nothing by the hour, and charges in order."""

    covered: tuple[tuple[datetime, datetime], ...] = ()  # full hours; from, included, to, not included
    charges: tuple[Line, ...] = ()

    def covers(self, slot: datetime) -> bool:
        """Whether a slot is paid already."""
        return any(start <= slot < end for start, end in self.covered)

    def within(self, month: Month) -> tuple[Line, ...]:
        """What was charged, or paid back, in a month."""
        return tuple(line for line in self.charges if line.charged and month.start <= line.charged.at < month.end)


NOTHING_PAID = Paid()


def rate(
    terms: Sequence[Term],
    periods: Sequence[Period],
    month: Month,
    now: datetime,
    hours: Hours,
    paid: Paid = NOTHING_PAID,
) -> tuple[Line, ...]:
    """The bill's lines: reserved items by the time they began, what was paid in advance, then what was used.

    The first term covers the month's start.
    """
    spans = spans_of(terms, month)
    slots = {slot: size for slot, size in slots_of(periods, month, now).items() if not paid.covers(slot)}
    reserved = []
    for span in spans:
        priced = _priced_within(span, slots)
        reserved += [line for item in RESERVED for line in _runs(item, span.plan, priced)]
    reserved.sort(key=lambda line: (line.start, RESERVED.index(line.item)))
    return (*reserved, *paid.within(month), *traffic(spans, now, hours))


def spans_of(terms: Sequence[Term], month: Month) -> tuple[Span, ...]:
    """The month by plans, in order; terms in a row with the same version of a plan are one."""
    found: list[Span] = []
    ordered = sorted(terms, key=lambda term: term.start)
    ends = [*(term.start for term in ordered[1:]), month.end]
    for term, until in zip(ordered, ends, strict=True):
        start, end = max(term.start, month.start), min(until, month.end)
        if start >= end:
            continue
        if found and found[-1].plan == term.plan:
            found[-1] = Span(found[-1].start, end, term.plan)
        else:
            found.append(Span(start, end, term.plan))
    return tuple(found)


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


def priced_slots(
    item: str, terms: Sequence[Term], periods: Sequence[Period], month: Month, now: datetime
) -> dict[datetime, Hourly]:
    """What each billed hour of the month costs of one of RESERVED, paid in advance or not; hours in which it is sold."""
    slots = slots_of(periods, month, now)
    priced = (each for span in spans_of(terms, month) for each in _priced_within(span, slots).items())
    return {slot: by_item[item] for slot, by_item in priced if item in by_item}


def floored(moment: datetime) -> datetime:
    """The beginning of the UTC hour."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def ceiled(moment: datetime) -> datetime:
    """The next full hour; of a full hour itself."""
    begun = floored(moment)
    return begun if begun == moment else begun + HOUR


def _priced_within(span: Span, slots: Mapping[datetime, Size]) -> dict[datetime, dict[str, Hourly]]:
    """Those of a span, in order, with what each costs by item."""
    sizes = {slot: size for slot, size in slots.items() if span.start <= slot < span.end}
    prices = {size: _priced(span.plan, size) for size in set(sizes.values())}  # a month has few of them
    return {slot: prices[size] for slot, size in sizes.items()}


def _priced(plan: Plan, size: Size) -> dict[str, Hourly]:
    entries = hourly(plan, bandwidth_mb_per_s=size.bandwidth_mb_per_s, disk_gb=size.disk_gb, partitions=size.partitions)
    return {entry.item: entry for entry in entries}


def _runs(item: str, plan: Plan, priced: Mapping[datetime, Mapping[str, Hourly]]) -> Iterator[Line]:
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
        ends = (slots[0], slots[-1] + HOUR)
        yield Line(item, quantity, entry.unit, entry.unit_price, amount, *ends, plan.name, plan.version)


def traffic(spans: Sequence[Span], now: datetime, hours: Hours) -> Iterator[Line]:
    """What was used, by span and item. `now` only ends the last line of a month that is not over."""
    for span in spans:
        used = sum((used for hour, used in hours.items() if span.start <= hour < span.end), Used())
        end = max(span.start, min(span.end, floored(now) + HOUR))
        for item, (count_per_unit, unit, price) in _rates(span.plan).items():
            quantity = in_units(used.of(item), count_per_unit)
            if quantity:
                amount = amount_of(quantity, price)
                yield Line(item, quantity, unit, price, amount, span.start, end, span.plan.name, span.plan.version)


def _rates(plan: Plan) -> dict[str, tuple[int, str, Decimal]]:
    """Of each of USED: how much one unit is, its name and its price."""
    return {
        "produced": (GB, "GB", plan.produced_per_gb),
        "consumed": (GB, "GB", plan.consumed_per_gb),
        "stored": (GB * SECONDS_PER_HOUR, "GB hour", plan.stored_per_gb_hour),
    }
