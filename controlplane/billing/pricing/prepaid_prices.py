"""Price lists for what is paid in advance, by the month: declarations, dated as price plans are (plans.py). Pure.

A list prices what an instance reserves (`bandwidth`, `disk`, `partitions`) for whole months. What it uses is billed by the
plan of its organisation, as ever; so a list belongs to a plan that reserves something, is named after it, and has its currency.

`PRO_PREPAID` holds the public monthly list prices (CNY) of bandwidth of the service this one is modelled on; those of storage
and partitions are ours. Its bands, and the free partitions within them, are those of the plan `pro`.

`PRO_PREPAID_USD` is that list in USD, by our own decision as in plans.py: prices divided by 7, rounded half up to four decimals.

Versions coexist in `PREPAID_EDITIONS`. A term is priced, and what grows within it or is paid back of it, by the version with
which it was paid: that stands in the event of the payment. So prices that were published never change; a new price is a new
version with a day to come (tests/controlplane/billing/test_prepaid_prices.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from controlplane.billing.pricing.plans import (
    FROM_THE_BEGINNING,
    HUNDRED,
    PRO,
    PRO_USD,
    Band,
    bandwidth_price,
    steps_of,
)

MONTH, MONTHS_OF_DISK, MONTHS_OF_PARTITIONS = "month", "100 GB month", "100 partitions month"
LEAST_MONTHS, MOST_MONTHS = 1, 36


@dataclass(frozen=True, slots=True)
class MonthlyPrices:
    """One price list. `Band.price` and `Band.step_price` are for a month here."""

    name: str
    version: int
    title: str
    currency: str
    bands: tuple[Band, ...]  # rising
    disk_per_100_gb_month: Decimal
    partitions_per_100_month: Decimal

    def document(self) -> dict[str, Any]:
        """JSON of everything that decides a price: part of an invoice's input hash."""
        members = asdict(self)
        members["bands"] = [{name: _plain(value) for name, value in band.items()} for band in members["bands"]]
        return {name: _plain(value) for name, value in members.items()}


def prices_in(document: Mapping[str, Any]) -> MonthlyPrices:
    """The other way."""
    return MonthlyPrices(
        name=document["name"],
        version=document["version"],
        title=document["title"],
        currency=document["currency"],
        bands=tuple(_band_in(band) for band in document["bands"]),
        disk_per_100_gb_month=Decimal(document["disk_per_100_gb_month"]),
        partitions_per_100_month=Decimal(document["partitions_per_100_month"]),
    )


def _band_in(document: Mapping[str, Any]) -> Band:
    members = dict(document)
    return Band(**members | {name: Decimal(members[name]) for name in ("price", "step_price")})


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Decimal) else value


def _monthly(band: Band, price: str, step_price: str) -> Band:
    return Band(
        band.from_mb_per_s,
        band.to_mb_per_s,
        Decimal(price),
        band.step_mb_per_s,
        Decimal(step_price),
        band.free_partitions,
    )


_PRICES = (
    ("890", "0"),
    ("1990", "300"),
    ("3377", "292"),
    ("6147", "280"),
    ("11687", "248"),
    ("15380", "192"),
    ("20570", "2420"),
)
PRO_PREPAID = MonthlyPrices(
    name="pro_prepaid",
    version=1,
    title="Pro, in advance",
    currency="CNY",
    bands=tuple(_monthly(band, *prices) for band, prices in zip(PRO.bands, _PRICES, strict=True)),
    disk_per_100_gb_month=Decimal(160),
    partitions_per_100_month=Decimal(200),
)
_PRICES_USD = (
    ("127.1429", "0"),
    ("284.2857", "42.8571"),
    ("482.4286", "41.7143"),
    ("878.1429", "40.0000"),
    ("1669.5714", "35.4286"),
    ("2197.1429", "27.4286"),
    ("2938.5714", "345.7143"),
)
PRO_PREPAID_USD = MonthlyPrices(
    name="pro_prepaid_usd",
    version=1,
    title="Pro, in advance, in USD",
    currency="USD",
    bands=tuple(_monthly(band, *prices) for band, prices in zip(PRO_USD.bands, _PRICES_USD, strict=True)),
    disk_per_100_gb_month=Decimal("22.8571"),
    partitions_per_100_month=Decimal("28.5714"),
)


@dataclass(frozen=True, slots=True)
class PrepaidEdition:
    """A version of a list, the plan that it belongs to, and since when it is sold."""

    plan: str
    valid_from: date
    prices: MonthlyPrices


PREPAID_EDITIONS: tuple[PrepaidEdition, ...] = (
    PrepaidEdition(PRO.name, FROM_THE_BEGINNING, PRO_PREPAID),
    PrepaidEdition(PRO_USD.name, FROM_THE_BEGINNING, PRO_PREPAID_USD),
)


def prices_on(plan: str, day: date) -> MonthlyPrices:
    """The list with which an instance of an organisation with this plan is paid in advance on a day. Raises LookupError."""
    sold = [edition for edition in PREPAID_EDITIONS if edition.plan == plan and edition.valid_from <= day]
    if not sold:
        raise LookupError(f"instances under the plan {plan!r} cannot be paid in advance")
    return max(sold, key=lambda edition: (edition.valid_from, edition.prices.version)).prices


def prices_version(name: str, version: int) -> MonthlyPrices:
    """A version by its number, however old. Raises LookupError."""
    for edition in PREPAID_EDITIONS:
        if (edition.prices.name, edition.prices.version) == (name, version):
            return edition.prices
    raise LookupError(f"no version {version} of the price list {name!r} is on record")


@dataclass(frozen=True, slots=True)
class Monthly:
    """What one item costs in each month: `units` of `unit`, each at `unit_price`."""

    item: str
    units: int
    unit: str
    unit_price: Decimal


def monthly(
    prices: MonthlyPrices, *, bandwidth_mb_per_s: Decimal, disk_gb: Decimal, partitions: int
) -> tuple[Monthly, ...]:
    """The items of an instance of this size, all three of them: an item that costs nothing has no units."""
    band = _band_of(prices.bands, bandwidth_mb_per_s)
    above = max(0, partitions - band.free_partitions)
    return (
        Monthly("prepaid_bandwidth", 1, MONTH, bandwidth_price(band, bandwidth_mb_per_s)),
        Monthly("prepaid_disk", int(steps_of(disk_gb, HUNDRED)), MONTHS_OF_DISK, prices.disk_per_100_gb_month),
        Monthly(
            "prepaid_partitions",
            int(steps_of(Decimal(above), HUNDRED)),
            MONTHS_OF_PARTITIONS,
            prices.partitions_per_100_month,
        ),
    )


def _band_of(bands: Sequence[Band], bandwidth_mb_per_s: Decimal) -> Band:
    return next((band for band in bands if bandwidth_mb_per_s <= band.to_mb_per_s), bands[-1])
