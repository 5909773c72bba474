"""Elastic bandwidth: what was carried above the bought limit, by the GB. Pure.

A price list belongs to a plan under which bandwidth is bought, and has its currency; prices are ours, and those in USD what
plans.py says of its own: CNY divided by 7, rounded half up to four decimals. Versions coexist, dated as plans are: a month is
priced by the versions that its first day found, and an inputs document carries them, so prices that were published never change.

Each plan of a month prices the hours in which it was in force; what was carried in hours of a plan without such a list costs
nothing. Quantities are exact: bytes that the master counted, by the hour, in GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from controlplane.billing.pricing.money import amount_of, in_units
from controlplane.billing.pricing.plans import FROM_THE_BEGINNING, GB, PRO, PRO_USD, month_day
from controlplane.billing.pricing.rating import ELASTIC, HOUR, Line, Month, Term, spans_of

ElasticHours = Mapping[datetime, tuple[int, int]]
"""Bytes above what was bought, produced and consumed, by the beginning of the UTC hour."""


@dataclass(frozen=True, slots=True)
class ElasticPrices:
    """One price list."""

    name: str
    version: int
    currency: str
    produced_per_gb: Decimal
    consumed_per_gb: Decimal

    def document(self) -> dict[str, Any]:
        """JSON of everything that decides a price."""
        return {name: str(value) if isinstance(value, Decimal) else value for name, value in asdict(self).items()}


def elastic_prices_in(document: Mapping[str, Any]) -> ElasticPrices:
    """The other way."""
    return ElasticPrices(
        name=document["name"],
        version=document["version"],
        currency=document["currency"],
        produced_per_gb=Decimal(document["produced_per_gb"]),
        consumed_per_gb=Decimal(document["consumed_per_gb"]),
    )


PRO_ELASTIC = ElasticPrices("pro_elastic", 1, "CNY", Decimal("0.08"), Decimal("0.08"))
"""An hour at 20 MB/s above the limit is 72 GB: 5.76, where 20 MB/s more would cost between 0.30 and 1.70 for each hour."""
PRO_ELASTIC_USD = ElasticPrices("pro_elastic_usd", 1, "USD", Decimal("0.0114"), Decimal("0.0114"))


@dataclass(frozen=True, slots=True)
class ElasticEdition:
    """A version of a list, the plan that it belongs to, and since when it is sold."""

    plan: str
    valid_from: date
    prices: ElasticPrices


ELASTIC_EDITIONS: tuple[ElasticEdition, ...] = (
    ElasticEdition(PRO.name, FROM_THE_BEGINNING, PRO_ELASTIC),
    ElasticEdition(PRO_USD.name, FROM_THE_BEGINNING, PRO_ELASTIC_USD),
)


def elastic_prices_on(plan: str, day: date) -> ElasticPrices | None:
    """The list of a plan in a month that begins on this day; None: under it bandwidth is not bought, and not elastic."""
    sold = [edition for edition in ELASTIC_EDITIONS if edition.plan == plan and edition.valid_from <= day]
    if not sold:
        return None
    return max(sold, key=lambda edition: (edition.valid_from, edition.prices.version)).prices


@dataclass(frozen=True, slots=True)
class Elastic:
    """What was carried above what was bought in a month, and the price lists of its plans, by their names."""

    hours: ElasticHours = field(default_factory=dict)
    prices: Mapping[str, ElasticPrices] = field(default_factory=dict)


NOT_ELASTIC = Elastic()


def elastic_of(hours: ElasticHours, terms: Sequence[Term], month: Month) -> Elastic:
    """With the lists of the plans that the month has."""
    if not hours:
        return NOT_ELASTIC
    day = month_day(month.start)
    lists = {term.plan.name: elastic_prices_on(term.plan.name, day) for term in terms}
    return Elastic(hours, {name: prices for name, prices in lists.items() if prices is not None})


def elastic_lines(elastic: Elastic, terms: Sequence[Term], month: Month) -> Iterator[Line]:
    """By the hours of each plan, produced and consumed; each covers the hours from the first to the last that had some."""
    for span in spans_of(terms, month):
        prices = elastic.prices.get(span.plan.name)
        if prices is None:
            continue
        for place, (item, price) in enumerate(
            zip(ELASTIC, (prices.produced_per_gb, prices.consumed_per_gb), strict=True)
        ):
            used = {hour: both[place] for hour, both in elastic.hours.items() if span.start <= hour < span.end}
            hours = [hour for hour, count in used.items() if count]
            quantity = in_units(sum(used.values()), GB)
            if quantity:
                ends = (min(hours), max(hours) + HOUR)
                yield Line(item, quantity, "GB", price, amount_of(quantity, price), *ends, prices.name, prices.version)


def elastic_document(elastic: Elastic) -> dict[str, Any]:
    """JSON of it: part of an inputs document."""
    return {
        "hours": [[hour.isoformat().replace("+00:00", "Z"), *both] for hour, both in sorted(elastic.hours.items())],
        "prices": {plan: prices.document() for plan, prices in sorted(elastic.prices.items())},
    }


def elastic_in(document: Mapping[str, Any] | None) -> Elastic:
    """The other way; None: there was none."""
    if document is None:
        return NOT_ELASTIC
    return Elastic(
        {datetime.fromisoformat(hour): (produced, consumed) for hour, produced, consumed in document["hours"]},
        {plan: elastic_prices_in(prices) for plan, prices in document["prices"].items()},
    )
