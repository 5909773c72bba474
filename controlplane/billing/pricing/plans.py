"""Price plans as declarations, dated: add one here and every bill, estimate and invoice knows it.

Vocabulary. A *plan* prices up to seven *items*. Three are for what is reserved (`bandwidth`, `disk`, `partitions`) and
are billed by the hour; four are for what is used (`produced`, `consumed`, `stored`: record bytes and byte-hours from the
usage rows). An item without a price is listed at 0 where it says something about use, and left out where it is not sold.

A *band* of bandwidth goes from `from_mb_per_s` to `to_mb_per_s` and costs `price` at its beginning; each further
`step_mb_per_s` adds `step_price`. Between two sizes on sale the larger is billed: 5 MB/s cost what 20 do, 110 what 120
do. Disk and partitions are sold in whole hundreds; partitions only above the band's `free_partitions`.

`PRO` holds the public hourly list prices (CNY) of the service this one is modelled on. That list gives the free
partitions of two sizes only (1 600 at 240 MB/s; 1 800 partitions cost nothing extra at 320 MB/s); the other bands'
`free_partitions` are ours. Prices there are for MB/s and GB; an instance is bought in MiB/s and GiB, and the number that
was bought is the number that is priced.

`TRAFFIC` reserves nothing: it bills record bytes by the GB (10**9 bytes) and what is stored by the GB and hour. Prices
are ours.

`PRO_USD` and `TRAFFIC_USD` are these two, paid in another currency. Their prices are our own decision, and nobody's list: each
unit price in CNY divided by 7, rounded half up to four decimals. They were computed once and are plain constants: no rate of
exchange is read anywhere, and no amount is converted. A plan has one currency, and whatever is priced by it has it too.

Versions of a plan coexist in `EDITIONS`, each with the day from which it is sold. A month is priced by the versions that
its first day found, so that a new price never changes a month that began under the old one, and an invoice is computed
again with the version that it names. So prices that were published never change: a new price is a new `version` with a
day to come, which tests/controlplane/billing/test_price_versions.py insists on. Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

GB = 10**9
HUNDRED = 100


@dataclass(frozen=True, slots=True)
class Band:
    """Sizes of bandwidth that one base price and one step price cover."""

    from_mb_per_s: int
    to_mb_per_s: int  # included
    price: Decimal  # per hour, at the beginning of the band; of a list for months (prepaid_prices.py), per month
    step_mb_per_s: int
    step_price: Decimal  # the same
    free_partitions: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One price list. A price of None: the item is not sold under this plan."""

    name: str
    version: int
    title: str
    currency: str
    bands: tuple[Band, ...]  # rising; empty: bandwidth is not billed
    disk_per_100_gb_hour: Decimal | None
    partitions_per_100_hour: Decimal | None
    produced_per_gb: Decimal
    consumed_per_gb: Decimal
    stored_per_gb_hour: Decimal

    def document(self) -> dict[str, object]:
        """JSON of everything that decides a price: part of an invoice's input hash."""
        members = asdict(self)
        members["bands"] = [{name: _plain(value) for name, value in band.items()} for band in members["bands"]]
        return {name: _plain(value) for name, value in members.items()}


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Decimal) else value


def _band(from_to: tuple[int, int], price: str, step_mb_per_s: int, step_price: str, free_partitions: int) -> Band:
    return Band(*from_to, Decimal(price), step_mb_per_s, Decimal(step_price), free_partitions)


PRO = Plan(
    name="pro",
    version=1,
    title="Pro, by the hour",
    currency="CNY",
    bands=(
        _band((20, 20), "1.34", 20, "0", 400),
        _band((40, 100), "3.04", 20, "0.46", 800),
        _band((120, 300), "5.16", 20, "0.45", 1600),
        _band((320, 600), "9.4", 20, "0.43", 2400),
        _band((620, 900), "17.85", 20, "0.38", 3600),
        _band((920, 1200), "23.49", 20, "0.30", 4800),
        _band((1600, 100_000), "31.33", 200, "3.7", 6000),
    ),
    disk_per_100_gb_hour=Decimal("0.25"),
    partitions_per_100_hour=Decimal("0.31"),
    produced_per_gb=Decimal(0),
    consumed_per_gb=Decimal(0),
    stored_per_gb_hour=Decimal(0),
)

TRAFFIC = Plan(
    name="traffic",
    version=1,
    title="By traffic",
    currency="CNY",
    bands=(),
    disk_per_100_gb_hour=None,
    partitions_per_100_hour=None,
    produced_per_gb=Decimal("0.60"),
    consumed_per_gb=Decimal("0.25"),
    stored_per_gb_hour=Decimal("0.0025"),
)

PRO_USD = Plan(
    name="pro-usd",
    version=1,
    title="Pro, by the hour, in USD",
    currency="USD",
    bands=(
        _band((20, 20), "0.1914", 20, "0", 400),
        _band((40, 100), "0.4343", 20, "0.0657", 800),
        _band((120, 300), "0.7371", 20, "0.0643", 1600),
        _band((320, 600), "1.3429", 20, "0.0614", 2400),
        _band((620, 900), "2.5500", 20, "0.0543", 3600),
        _band((920, 1200), "3.3557", 20, "0.0429", 4800),
        _band((1600, 100_000), "4.4757", 200, "0.5286", 6000),
    ),
    disk_per_100_gb_hour=Decimal("0.0357"),
    partitions_per_100_hour=Decimal("0.0443"),
    produced_per_gb=Decimal(0),
    consumed_per_gb=Decimal(0),
    stored_per_gb_hour=Decimal(0),
)

TRAFFIC_USD = Plan(
    name="traffic-usd",
    version=1,
    title="By traffic, in USD",
    currency="USD",
    bands=(),
    disk_per_100_gb_hour=None,
    partitions_per_100_hour=None,
    produced_per_gb=Decimal("0.0857"),
    consumed_per_gb=Decimal("0.0357"),
    stored_per_gb_hour=Decimal("0.0004"),
)

FROM_THE_BEGINNING = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class Edition:
    """A version of a plan, and since when it is sold."""

    valid_from: date
    plan: Plan


EDITIONS: tuple[Edition, ...] = tuple(
    Edition(FROM_THE_BEGINNING, plan) for plan in (PRO, TRAFFIC, PRO_USD, TRAFFIC_USD)
)
NAMES: tuple[str, ...] = tuple(dict.fromkeys(edition.plan.name for edition in EDITIONS))
DEFAULT_PLAN = PRO.name


def plan_on(name: str, day: date) -> Plan:
    """The version that prices a month beginning on this day. Raises LookupError where the plan is not sold yet."""
    sold = [edition for edition in EDITIONS if edition.plan.name == name and edition.valid_from <= day]
    if not sold:
        raise LookupError(f"no plan {name!r} is sold in a month that begins on {day}")
    return max(sold, key=lambda edition: (edition.valid_from, edition.plan.version)).plan


def plans_on(day: date) -> tuple[Plan, ...]:
    """Every plan that can be chosen for a month beginning on this day, each in its version."""
    names = dict.fromkeys(edition.plan.name for edition in EDITIONS if edition.valid_from <= day)
    return tuple(plan_on(name, day) for name in names)


def plan_version(name: str, version: int) -> Plan:
    """A version by its number, however old. Raises LookupError."""
    for edition in EDITIONS:
        if (edition.plan.name, edition.plan.version) == (name, version):
            return edition.plan
    raise LookupError(f"no version {version} of the plan {name!r} is on record")


def month_day(moment: datetime) -> date:
    """The first day of a moment's month, in UTC."""
    return moment.astimezone(UTC).date().replace(day=1)


@dataclass(frozen=True, slots=True)
class Hourly:
    """What one item costs in each hour: `units` of `unit`, each at `unit_price`."""

    item: str
    units: Decimal
    unit: str
    unit_price: Decimal


def hourly(plan: Plan, *, bandwidth_mb_per_s: Decimal, disk_gb: Decimal, partitions: int) -> tuple[Hourly, ...]:
    """The hourly items of an instance of this size."""
    found = []
    free_partitions = 0
    if plan.bands:
        band = band_of(plan, bandwidth_mb_per_s)
        free_partitions = band.free_partitions
        found.append(Hourly("bandwidth", Decimal(1), "hour", bandwidth_price(band, bandwidth_mb_per_s)))
    if plan.disk_per_100_gb_hour is not None:
        found.append(Hourly("disk", steps_of(disk_gb, HUNDRED), "100 GB hour", plan.disk_per_100_gb_hour))
    if plan.partitions_per_100_hour is not None and partitions > free_partitions:
        above = steps_of(Decimal(partitions - free_partitions), HUNDRED)
        found.append(Hourly("partitions", above, "100 partitions hour", plan.partitions_per_100_hour))
    return tuple(found)


def band_of(plan: Plan, bandwidth_mb_per_s: Decimal) -> Band:
    """The first band that reaches so far; beyond the last one its steps go on."""
    return next((band for band in plan.bands if bandwidth_mb_per_s <= band.to_mb_per_s), plan.bands[-1])


def bandwidth_price(band: Band, bandwidth_mb_per_s: Decimal) -> Decimal:
    """Per hour, of the smallest size on sale that is not below what was asked for."""
    above = max(Decimal(0), bandwidth_mb_per_s - band.from_mb_per_s)
    return band.price + band.step_price * steps_of(above, band.step_mb_per_s)


def bandwidth_on_sale(plan: Plan, bandwidth_mb_per_s: Decimal) -> Decimal | None:
    """The smallest size on sale that is not below what was asked for: what is billed. None: bandwidth is not billed."""
    if not plan.bands:
        return None
    band = band_of(plan, bandwidth_mb_per_s)
    above = max(Decimal(0), bandwidth_mb_per_s - band.from_mb_per_s)
    return band.from_mb_per_s + band.step_mb_per_s * steps_of(above, band.step_mb_per_s)


def steps_of(amount: Decimal, step: int) -> Decimal:
    """How many whole steps hold the amount."""
    whole, rest = divmod(amount, step)
    return whole + (1 if rest else 0)
