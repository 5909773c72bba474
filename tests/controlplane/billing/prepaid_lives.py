"""Lives of an instance that is paid in advance, now and then, with an account of each that is kept another way.

What happens is drawn; what it costs is added up beside, in fractions and by the sentences of the documents, without the code
that bills: `Life.expected` is that, `Life.events` and `Life.periods` are what the code is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil

from hypothesis import strategies as st

from controlplane.billing.pricing.prepaid import (
    BOUGHT,
    CANCELLED,
    DECIDED,
    EXPIRE,
    EXPIRED,
    FIVE_DAYS,
    POSTPAID,
    RENEW,
    RENEWED,
    Event,
    Prepaid,
)
from controlplane.billing.pricing.prepaid_prices import PRO_PREPAID, monthly
from controlplane.billing.pricing.rating import Period, Size

BEGIN = datetime(2026, 1, 29, 7, 31, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SIZES = tuple(
    Size(Decimal(bandwidth), Decimal(disk), partitions)
    for bandwidth, disk, partitions in (
        (5, 10, 60),
        (20, 100, 700),
        (60, 450, 900),
        (140, 2000, 1700),
        (320, 2000, 9000),
    )
)
"""Rising: what is paid in advance does not become smaller."""


@dataclass
class Charge:
    """An amount for some time, as a fraction."""

    amount: Fraction
    start: datetime
    end: datetime


@dataclass
class Term:
    """Months that are paid, and for how many."""

    start: datetime
    end: datetime
    months: int


@dataclass
class Life:
    """What has happened to an instance, and what that costs."""

    at_end: str
    now: datetime = BEGIN
    size: int = 0  # of SIZES
    events: list[Event] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    is_open: bool = False
    is_held: bool = False  # protected, or under a plan without prices: it goes on by the hour, whatever was wanted
    waiting: int = 0  # months
    terms: list[Term] = field(default_factory=list)
    charges: list[Charge] = field(default_factory=list)  # of the present account
    bought_at: datetime | None = None
    has_tried: bool = False
    free_hours: set[datetime] = field(default_factory=set)  # open hours that cost nothing by the hour
    expected: list[Fraction] = field(default_factory=list)  # every charge and refund, in order

    @property
    def prepaid(self) -> Prepaid:
        return Prepaid(tuple(self.events))

    # --- what can happen ------------------------------------------------------------------------------------------

    def wait(self, minutes: int) -> None:
        """Time passes; what ends meanwhile is looked at by a clock that may be late. No two things happen at one moment."""
        self.now += timedelta(minutes=minutes)
        while self.terms and self.terms[-1].end <= self.now:
            self._come_to_its_end()
        self.now += timedelta(minutes=1)

    def open(self) -> None:
        if self.is_open:
            return
        self.is_open = True
        self.periods.append(Period(self.now, None, SIZES[self.size]))
        if self.waiting:
            months, self.waiting = self.waiting, 0
            start = _floor(self.now)
            if start in self.free_hours:
                start += HOUR
            self._buy(months, start)

    def grow(self, steps: int) -> None:
        if self.is_open and self.size + steps < len(SIZES):
            self.resize(self.size + steps)

    def resize(self, size: int) -> None:
        """To another one of SIZES: a smaller one only where nothing is paid in advance."""
        before, self.size = _month(self.size), size
        if not self.is_open:
            return
        self._cut()
        self.periods.append(Period(self.now, None, SIZES[self.size]))
        for term in self.terms:
            start = max(term.start, _floor(self.now))
            left = (term.end - start) // HOUR
            if left > 0:
                share = Fraction(left, (term.end - term.start) // HOUR)
                self._charge((_month(self.size) - before) * term.months * share, start, term.end)

    def buy(self, months: int) -> None:
        if self.terms or self.waiting:
            return
        self.events.append(Event(BOUGHT, self.now, months, PRO_PREPAID, self.at_end))
        if self.is_open:
            self._buy(months, self.now if _floor(self.now) == self.now else _floor(self.now) + HOUR)
        else:
            self.waiting = months

    def decide(self, at_end: str) -> None:
        """Something else becomes of it at its end."""
        if self.terms or self.waiting:
            self.at_end = at_end
            self.events.append(Event(DECIDED, self.now, at_end=at_end))

    def hold(self) -> None:
        self.is_held = not self.is_held

    def renew(self, months: int) -> None:
        if self.terms:
            self.events.append(Event(RENEWED, self.now, months, PRO_PREPAID))
            self._extend(months, self.terms[-1].end)

    def delete(self) -> None:
        if self.waiting:
            self.events.append(Event(CANCELLED, self.now))
            self.waiting = 0
        if not self.is_open:
            return
        whole = (
            bool(self.terms)
            and self.bought_at is not None
            and self.now < self.bought_at + 5 * DAY
            and not self.has_tried
        )
        if whole:
            self.events.append(Event(FIVE_DAYS, self.now))
            self.has_tried = True
        self._close()
        for charge in self.charges:
            total = ceil((charge.end - charge.start) / DAY)
            left = total if whole else min(total, max(0, (charge.end - self.now) // DAY))
            if left:
                self.expected.append(-charge.amount * left / total)
        if self.terms:
            self._end(min(self.now, self.terms[-1].end) if self.at_end == POSTPAID else self.now)

    # --- what that comes to ------------------------------------------------------------------------------------------

    def _come_to_its_end(self) -> None:
        if self.at_end == POSTPAID or self.is_held:
            self.events.append(Event(POSTPAID, self.now))
            self._end(self.terms[-1].end if self.at_end == POSTPAID else self.now)
        elif self.at_end == RENEW:
            self.renew(1)
        else:
            self.events.append(Event(EXPIRED, self.now))
            self._close()
            self._end(self.now)

    def _buy(self, months: int, start: datetime) -> None:
        self.bought_at = self.now
        self._extend(months, start)

    def _extend(self, months: int, start: datetime) -> None:
        first = self.terms[0].start if self.terms else start
        count = months + sum(term.months for term in self.terms)
        self.terms.append(Term(start, _months_later(first, count), months))
        self._charge(_month(self.size) * months, start, self.terms[-1].end)

    def _charge(self, amount: Fraction, start: datetime, end: datetime) -> None:
        if amount:
            self.charges.append(Charge(amount, start, end))
            self.expected.append(amount)

    def _close(self) -> None:
        self.is_open = False
        self._cut()

    def _cut(self) -> None:
        last = self.periods.pop()
        self.periods.append(Period(last.start, self.now, last.size))

    def _end(self, until: datetime) -> None:
        self.free_hours |= _hours(self.terms[0].start, until)
        self.terms, self.charges, self.bought_at = [], [], None

    # --- what should be seen -------------------------------------------------------------------------------------------

    def open_hours(self) -> set[datetime]:
        """In which it was open, if only for a moment."""
        found: set[datetime] = set()
        for period in self.periods:
            found |= _hours(_floor(period.start), self.now if period.until is None else period.until)
        return found

    def hours_by_the_hour(self) -> set[datetime]:
        """Open hours that nothing in advance has paid."""
        free = set(self.free_hours)
        if self.terms:
            end = self.terms[-1].end  # behind it: nobody has said yet what becomes of it
            free |= _hours(self.terms[0].start, end if self.at_end == POSTPAID else max(end, self.now))
        return self.open_hours() - free


@st.composite
def lives(draw: st.DrawFn, steps: int = 14) -> Life:
    """Minutes to months between one thing and the next."""
    life = Life(draw(st.sampled_from([EXPIRE, RENEW, POSTPAID])))
    gaps = st.sampled_from([1, 29, 60, 61, 1440, 3000, 7200, 10_000, 43_200, 50_001])
    for _ in range(draw(st.integers(1, steps))):
        life.wait(draw(gaps))
        what = draw(st.sampled_from(["open", "open", "buy", "buy", "renew", "grow", "delete", "decide", "hold"]))
        if what in ("buy", "renew"):
            getattr(life, what)(draw(st.sampled_from([1, 1, 2, 3, 12])))
        elif what == "decide":
            life.decide(draw(st.sampled_from([EXPIRE, RENEW, POSTPAID])))
        elif what == "grow":
            life.grow(draw(st.integers(1, 2)))
        else:
            getattr(life, what)()
    life.wait(draw(gaps))
    return life


def _month(size: int) -> Fraction:
    chosen = SIZES[size]
    entries = monthly(
        PRO_PREPAID, bandwidth_mb_per_s=chosen.bandwidth_mb_per_s, disk_gb=chosen.disk_gb, partitions=chosen.partitions
    )
    return sum((entry.units * Fraction(entry.unit_price) for entry in entries), Fraction(0))


def _floor(moment: datetime) -> datetime:
    return moment - timedelta(minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond)


def _hours(start: datetime, end: datetime) -> set[datetime]:
    """Hours that begin before `end`."""
    return {start + number * HOUR for number in range(max(0, ceil((end - start) / HOUR)))}


def _months_later(start: datetime, months: int) -> datetime:
    """Day by day: the same day of the month, or the last one before the month is over."""
    moment, wanted = start, (start.year * 12 + start.month - 1 + months)
    while moment.year * 12 + moment.month - 1 < wanted:
        moment += DAY
    while moment.day < start.day and (moment + DAY).month == moment.month:
        moment += DAY
    return moment
