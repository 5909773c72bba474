"""Credits: what is given back of a day on which the bandwidth that was bought could not be had. Pure.

Rule. The quota report says of each day and direction for how long clients waited although they were below their limit, and how
much of the day was seen. The larger share of the two directions decides how much of the day's bandwidth is given back, by the
steps of the terms. The price of the day's bandwidth is what its hours cost by the hour, in advance or not: of what was paid in
advance, and for less, more may be given back than was paid for the day. Hours in which the instance was not there, or under a
plan that sells no bandwidth, have no price, and a day without a price has no credit.

Terms are versions, dated as plans are: a month has those that its first day found, and an inputs document carries them and what
was measured, so the same document gives the same credits on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from controlplane.billing.pricing.money import amount_of, product_of, total_of
from controlplane.billing.pricing.plans import month_day
from controlplane.billing.pricing.rating import CREDIT, HOUR, Line, Month, Period, Term, priced_slots

DAY = timedelta(days=1)
PERMILLE, PERCENT = 1000, 100


class Missed(NamedTuple):
    """How much of a day, in one direction, clients waited below their limit."""

    waited_ms: int
    seen_ms: int

    @property
    def share(self) -> Fraction:
        """Of the time that was seen. All connections of all brokers together may wait longer than that."""
        return Fraction(self.waited_ms, self.seen_ms) if self.seen_ms else Fraction(0)


MissedDays = Mapping[date, Sequence[Missed]]
"""Days on which the guarantee was missed, each with its directions."""


@dataclass(frozen=True, slots=True)
class CreditTerms:
    """Who waited for more than so many thousandths of a day gets so many percent of the day's bandwidth back: rising steps."""

    name: str
    version: int
    steps: tuple[tuple[int, int], ...]

    def percent_of(self, share: Fraction) -> int:
        """Of a day's price; 0: nothing is given back."""
        return max((percent for permille, percent in self.steps if share * PERMILLE > permille), default=0)

    def document(self) -> dict[str, Any]:
        """JSON of everything that decides a credit."""
        return {**asdict(self), "steps": [list(step) for step in self.steps]}


def credit_terms_in(document: Mapping[str, Any]) -> CreditTerms:
    """The other way."""
    return CreditTerms(
        document["name"], document["version"], tuple((above, percent) for above, percent in document["steps"])
    )


GUARANTEE = CreditTerms("guarantee", 1, ((1, 10), (10, 25), (50, 100)))
"""The first step is where the report calls the guarantee missed: a minute and a half of a day."""
CREDIT_EDITIONS: tuple[tuple[date, CreditTerms], ...] = ((date(2026, 12, 1), GUARANTEE),)
"""Since when each is in force. In months before the first nothing is given back."""


def credit_terms_of(month: Month) -> CreditTerms | None:
    """Those that a month's first day found; None: nothing is given back in it."""
    editions = [edition for edition in CREDIT_EDITIONS if edition[0] <= month_day(month.start)]
    return max(editions, key=lambda edition: (edition[0], edition[1].version))[1] if editions else None


@dataclass(frozen=True, slots=True)
class Credits:
    """The days of a month on which the guarantee was missed, and the terms."""

    days: MissedDays = field(default_factory=dict)
    terms: CreditTerms = GUARANTEE


NO_CREDITS = Credits()


def credits_of(days: MissedDays, month: Month) -> Credits:
    """With the terms of the month, if it has any."""
    terms = credit_terms_of(month)
    return Credits(days, terms) if days and terms is not None else NO_CREDITS


def credit_lines(
    credits_: Credits, terms: Sequence[Term], periods: Sequence[Period], month: Month, now: datetime
) -> Iterator[Line]:
    """One for each day that something is given back for: minus so many days, at what the day's bandwidth cost."""
    if not credits_.days:
        return
    prices = priced_slots("bandwidth", terms, periods, month, now)
    for day, directions in sorted(credits_.days.items()):
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        hours = {slot: entry for slot, entry in prices.items() if start <= slot < start + DAY}
        price = total_of(product_of(entry.units, entry.unit_price) for entry in hours.values())
        percent = credits_.terms.percent_of(max(missed.share for missed in directions))
        if price and percent:
            quantity = Decimal(-percent) / PERCENT
            ends = (min(hours), max(hours) + HOUR)
            named = (credits_.terms.name, credits_.terms.version)
            yield Line(CREDIT, quantity, "day", price, amount_of(quantity, price), *ends, *named)


def credits_document(credits_: Credits) -> dict[str, Any]:
    """JSON of it: part of an inputs document."""
    return {
        "days": [[day.isoformat(), [list(each) for each in found]] for day, found in sorted(credits_.days.items())],
        "terms": credits_.terms.document(),
    }


def credits_in(document: Mapping[str, Any] | None) -> Credits:
    """The other way; None: there were none."""
    if document is None:
        return NO_CREDITS
    days = {date.fromisoformat(day): tuple(Missed(*each) for each in found) for day, found in document["days"]}
    return Credits(days, credit_terms_in(document["terms"]))
