"""What is paid in advance: from events and the history of sizes to what is covered and what is charged. Pure.

Vocabulary. An *account* begins when months are bought for an instance and ends when they are used up or given back. It
consists of *terms*, one behind the other without a gap: the one that was bought, then one for each renewal. A term is so
many calendar months, from a full hour on; ends are counted from the account's first hour, so that what begins on
31 January and was renewed twice ends on 30 April. *Covered* hours cost nothing by the hour.

::

    bought ──> waiting ──open for use──> paid ──┬── renewed ──> paid, longer
      │           │ cancelled                   ├── it grows: the difference for the rest of each term is charged
      └── open ───┼──from the next full hour──> │
                  v                             ├── isolated or closed: given back, the rest is paid back
                (nothing)                       ├── expired: its end has come and it is isolated; nothing is paid back
                                                └── postpaid: its end has come and it goes on by the hour

Rules.

* Nothing is charged for an instance that never was open: a term begins in the hour in which the instance is opened (or
  restored), and of one that is open already in the next full hour.
* A renewal is charged when it is ordered, at the size of that moment, and begins where the account ends.
* An instance that grows pays the difference of the two prices for the hours that are left of each term, from the hour
  that has begun, at the prices with which the term was paid.
* What is given back is paid back by charge: ``refund = charge - used / total x charge``, in days, of which one that has
  begun counts whole, as the vendor does it. Days are counted back from the term's end, so that all charges of a term have
  equally many left. A term that has not begun is paid back whole. Under the five-day rule everything is; whether an organisation
  may use it is not known here: an event says so.
* Where an account has come to its end and nobody has said yet what becomes of it (the clock is late), the hours behind its
  end are covered, unless it is to go on by the hour: nobody pays for what the service was late with. They stay covered,
  whatever is said then, so that an invoice that was written meanwhile is right.

Every charge is one line: a quantity times a unit price, rounded once. A refund has the item, the unit price and the negative
of a part of the quantity of its charge, so that no more is ever paid back than was paid.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from controlplane.billing.pricing.money import amount_of, in_units, part_of
from controlplane.billing.pricing.prepaid_prices import Monthly, MonthlyPrices, monthly
from controlplane.billing.pricing.rating import HOUR, Charged, Line, Paid, Period, Size, ceiled, floored

BOUGHT, RENEWED, CANCELLED = "bought", "renewed", "cancelled"
DECIDED, FIVE_DAYS, EXPIRED, POSTPAID = "decided", "five_days", "expired", "postpaid"
EVENTS = (BOUGHT, RENEWED, CANCELLED, DECIDED, FIVE_DAYS, EXPIRED, POSTPAID)
"""What can happen to an account. `decided`: something else becomes of it at its end. `five_days` says that giving back what
follows is under the five-day rule."""
EXPIRE, RENEW = "expire", "renew"
AT_END = (EXPIRE, RENEW, POSTPAID)
"""What becomes of an instance when its account ends: it is isolated, renewed, or goes on by the hour."""
PURCHASE, RENEWAL, GROWTH, REFUND = "purchase", "renewal", "growth", "refund"
CHARGES = (PURCHASE, RENEWAL, GROWTH, REFUND)
"""Why a line came to be."""
DAY = timedelta(days=1)
FIVE_DAYS_OF_TRYING = timedelta(days=5)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to an account. `months` and `prices` are of BOUGHT and RENEWED, `at_end` of BOUGHT and DECIDED."""

    kind: str
    at: datetime
    months: int = 0
    prices: MonthlyPrices | None = None
    at_end: str = EXPIRE


DAYS_FROM_EACH_START, DAYS_FROM_THE_END = 1, 2
"""How days are counted of what is given back. By the first, which sealed invoices may have, each charge had days from its start:
of a term with a growth that made something cheaper more could be charged for giving back than was paid back."""


@dataclass(frozen=True, slots=True)
class Prepaid:
    """All that is known of how an instance is paid in advance. Without events it is paid by the hour."""

    events: tuple[Event, ...] = ()
    rule: int = DAYS_FROM_THE_END


BY_THE_HOUR = Prepaid()


@dataclass(frozen=True, slots=True)
class PaidTerm:
    """Whole months between two full hours, and the prices with which they were paid."""

    start: datetime
    end: datetime
    months: int
    prices: MonthlyPrices

    @property
    def hours(self) -> int:
        """Of all of it."""
        return (self.end - self.start) // HOUR


@dataclass(frozen=True, slots=True)
class Account:
    """How it stands at a moment. Without terms the instance is paid by the hour, or waits until it is open."""

    paid: Paid
    terms: tuple[PaidTerm, ...] = ()
    is_waiting: bool = False
    bought_at: datetime | None = None  # when the account began to be charged

    @property
    def ends_at(self) -> datetime | None:
        """Up to when it is paid; None: it is not, or waits."""
        return self.terms[-1].end if self.terms else None

    @property
    def is_prepaid(self) -> bool:
        """Whether it is paid in advance now, or will be once it is open."""
        return bool(self.terms) or self.is_waiting


def account_of(prepaid: Prepaid, periods: Sequence[Period], now: datetime) -> Account:
    """From all that has happened by `now`. `periods`: the history of sizes, in order."""
    if not prepaid.events:
        return Account(Paid())
    book = _Book(prepaid.rule)
    for at, _, happen in sorted(_steps(prepaid, periods), key=lambda step: step[:2]):
        if at <= now:
            happen(book)
    return book.account(now)


def months_after(start: datetime, months: int) -> datetime:
    """So many calendar months later, at the same hour; on the last day of a month that is too short."""
    month = 12 * start.year + start.month - 1 + months
    year, month = month // 12, month % 12 + 1
    return start.replace(year=year, month=month, day=min(start.day, calendar.monthrange(year, month)[1]))


def price_of(prices: MonthlyPrices, size: Size, months: int) -> Decimal:
    """What so many months of a size cost: the sum of the lines that a purchase would have."""
    amounts = (amount_of(Decimal(entry.units * months), entry.unit_price) for entry in _entries(prices, size))
    return sum(amounts, Decimal("0.00"))


def _entries(prices: MonthlyPrices, size: Size) -> tuple[Monthly, ...]:
    return monthly(prices, bandwidth_mb_per_s=size.bandwidth_mb_per_s, disk_gb=size.disk_gb, partitions=size.partitions)


@dataclass(slots=True)
class _Book:
    """The account while its history is read."""

    rule: int
    at_end: str = EXPIRE
    size: Size | None = None  # None: the instance is not open
    waiting: Event | None = None
    terms: list[PaidTerm] = field(default_factory=list)
    own: list[Line] = field(default_factory=list)  # charges of this account, which are paid back by it
    bought_at: datetime | None = None
    is_five_days: bool = False
    is_expired: bool = False
    lines: list[Line] = field(default_factory=list)
    covered: list[tuple[datetime, datetime]] = field(default_factory=list)

    def account(self, now: datetime) -> Account:
        covered = list(self.covered)
        if self.terms:
            start, end = self.terms[0].start, self.terms[-1].end
            covered.append((start, end if self.at_end == POSTPAID else max(end, ceiled(now))))
        paid = Paid(tuple(covered), tuple(self.lines))
        return Account(paid, tuple(self.terms), self.waiting is not None, self.bought_at)

    # --- what happens to the instance -----------------------------------------------------------------------------

    def opened(self, at: datetime, size: Size) -> None:
        """For the first time, or again."""
        self.size = size
        if self.waiting is not None:
            event, self.waiting = self.waiting, None
            start = floored(at)
            if any(begin <= start < end for begin, end in self.covered):  # by an account that ended in this hour
                start += HOUR
            self._begin(event, start, at)

    def resized(self, at: datetime, size: Size) -> None:
        before, self.size = self.size, size
        if before is None:
            return
        for term in self.terms:
            start = max(term.start, floored(at))
            left = (term.end - start) // HOUR
            if left > 0:
                self._grow(term, before, size, start, left, at)

    def closed(self, at: datetime) -> None:
        """Isolated, or gone: what is left is given back, unless its end had come."""
        self.size = None
        if self.terms:
            if not self.is_expired:
                for line in tuple(self.own):
                    self._pay_back(line, at)
            end = ceiled(at)
            if self.at_end == POSTPAID and not self.is_expired:
                end = min(end, self.terms[-1].end)
            self._end(end)

    # --- what happens to the account --------------------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """One of EVENTS."""
        if event.kind == BOUGHT and not self.terms:
            self.at_end = event.at_end
            if self.size is None:
                self.waiting = event
            else:
                self._begin(event, ceiled(event.at), event.at)
        elif event.kind == RENEWED and self.terms:
            self._extend(event, RENEWAL, event.at)
        elif event.kind == DECIDED:
            self.at_end = event.at_end
        elif event.kind == CANCELLED:
            self.waiting = None
        elif event.kind == FIVE_DAYS and self.terms:
            self.is_five_days = True
        elif event.kind == EXPIRED and self.terms:
            self.is_expired = True
        elif event.kind == POSTPAID and self.terms:
            end = self.terms[-1].end
            self._end(end if self.at_end == POSTPAID else max(end, ceiled(event.at)))

    # --- what they come to -------------------------------------------------------------------------------------------

    def _begin(self, event: Event, start: datetime, at: datetime) -> None:
        self.bought_at = at
        self._extend(event, PURCHASE, at, first=start)

    def _extend(self, event: Event, kind: str, at: datetime, *, first: datetime | None = None) -> None:
        assert event.prices is not None, "of what is bought or renewed"
        anchor = first or self.terms[0].start
        start = first or self.terms[-1].end
        months = sum(term.months for term in self.terms) + event.months
        term = PaidTerm(start, months_after(anchor, months), event.months, event.prices)
        self.terms.append(term)
        assert self.size is not None, "it is open"
        for entry in _entries(event.prices, self.size):
            quantity = Decimal(entry.units * event.months)
            self._charge(kind, at, entry, quantity, entry.unit_price, term.start, term)

    def _grow(self, term: PaidTerm, before: Size, after: Size, start: datetime, left: int, at: datetime) -> None:
        """The difference of two sizes for `left` hours of a term: where prices are the same, of units; else of prices."""
        for old, new in zip(_entries(term.prices, before), _entries(term.prices, after), strict=True):
            if old.unit_price == new.unit_price:
                units, price = new.units - old.units, new.unit_price
            else:
                units, price = new.units, new.unit_price - old.unit_price
            quantity = in_units(units * term.months * left, term.hours)
            self._charge(GROWTH, at, new, quantity, price, start, term)

    def _charge(
        self,
        kind: str,
        at: datetime,
        entry: Monthly,
        quantity: Decimal,
        price: Decimal,
        start: datetime,
        term: PaidTerm,
    ) -> None:
        if not quantity or not price:
            return
        names = (term.prices.name, term.prices.version)
        line = Line(
            entry.item, quantity, entry.unit, price, amount_of(quantity, price), start, term.end, *names,
            charged=Charged(kind, at),
        )  # fmt: skip
        self.own.append(line)
        self.lines.append(line)

    def _pay_back(self, line: Line, at: datetime) -> None:
        total = -((line.start - line.end) // DAY)
        if self.rule == DAYS_FROM_EACH_START:
            left = total - max(0, -((line.start - at) // DAY))
            start = line.start + (total - left) * DAY
        else:
            left = (line.end - at) // DAY
            start = line.end - left * DAY
        left = total if self.is_five_days else min(total, max(0, left))
        quantity = -part_of(line.quantity, left, total)
        if not quantity:
            return
        start = line.start if left == total else min(line.end, start)
        amount, refund = (
            amount_of(quantity, line.unit_price),
            Charged(REFUND, at, line.charged.at if line.charged else None),
        )
        self.lines.append(replace(line, quantity=quantity, amount=amount, start=start, charged=refund))

    def _end(self, end: datetime) -> None:
        self.covered.append((self.terms[0].start, end))
        self.terms, self.own = [], []
        self.bought_at, self.is_five_days, self.is_expired = None, False, False


def _steps(prepaid: Prepaid, periods: Iterable[Period]) -> Iterator[tuple[datetime, int, Callable[[_Book], None]]]:
    """All that has happened. Of what happened at one moment: events, then what closed, then what opened."""
    for event in prepaid.events:
        yield event.at, 0, partial(_Book.take, event=event)
    before: Period | None = None
    for period in periods:
        follows = before is not None and before.until == period.start
        if before is not None and before.until is not None and not follows:
            yield before.until, 1, partial(_Book.closed, at=before.until)
        if not follows:
            yield period.start, 2, partial(_Book.opened, at=period.start, size=period.size)
        elif before is not None and before.size != period.size:
            yield period.start, 2, partial(_Book.resized, at=period.start, size=period.size)
        before = period
    if before is not None and before.until is not None:
        yield before.until, 1, partial(_Book.closed, at=before.until)
