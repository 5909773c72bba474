"""Whether what is asked for fits. Pure: (limits, what the others take, before, after) -> what is exceeded.

Vocabulary. A *resource* is what an instance takes of a cluster or counts as of an organisation: `CLUSTER` and
`ORGANISATION` name them. *Room* is what one broker has of a resource, and the *overcommit* factor by which more is sold
than there is. A cluster's *capacity* is room times factor times brokers. A *cap* is what an organisation may have.

Strategy. One comparison, `exceeded`, for both. What is taken is added up anew each time from the instances that are
there, and kept nowhere. Sums of floats are math.fsum's: the same whatever the order, so that what was admitted is never
found to be too much later. Only what grows is compared: a cap that was lowered, or a broker that has gone, takes nothing
away from anybody, and an instance that is too large may always become smaller.

An instance takes bandwidth, storage and partitions once, and connections on each broker (*host*) that it gets a listener
on. Its broker time is its limit over all hosts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from controlplane.instances.spec import (
    CONNECTIONS_PER_BROKER,
    MOST_LOOP_MS_PER_S_AND_BROKER,
    operators_limits,
)

Amount = float | Decimal
Amounts = Mapping[str, Amount]
"""By the resource's name."""


@dataclass(frozen=True, slots=True)
class Resource:
    """How a resource is called in a sentence, and its unit (empty: it is counted)."""

    title: str
    unit: str = ""


INSTANCES, BANDWIDTH, STORAGE, PARTITIONS = "instances", "bandwidth_mib_per_s", "storage_gib", "partitions"
CONNECTIONS, BROKER_TIME, PRICE = "connections", "broker_time_ms_per_s", "price_per_month"
DEFAULT_CURRENCY, PRICE_IN_USD = "CNY", "price_per_month_usd"
"""The currency of `price_per_month` where caps are set and kept. REST and pages have PRICE alone, in the currency of the plan."""
RESOURCES: Mapping[str, Resource] = MappingProxyType(
    {
        INSTANCES: Resource("instances"),
        BANDWIDTH: Resource("bandwidth", "MiB/s"),
        STORAGE: Resource("storage", "GiB"),
        PARTITIONS: Resource("partitions"),
        CONNECTIONS: Resource("connections"),
        BROKER_TIME: Resource("broker time", "ms/s"),
        PRICE: Resource("spend", "a month"),
    }
)
CLUSTER = (INSTANCES, BANDWIDTH, STORAGE, PARTITIONS, CONNECTIONS, BROKER_TIME)
ORGANISATION = (INSTANCES, BANDWIDTH, STORAGE, PARTITIONS, PRICE)
SIZES = (BANDWIDTH, STORAGE, PARTITIONS)
"""Which a purchase names itself; the others follow from them."""
MOST = 10**12
"""Of any room or cap: far beyond what there is, and exact in a float and in the tables."""


@dataclass(frozen=True, slots=True)
class Room:
    """What one broker has of a resource, and how many times as much is sold."""

    per_broker: float
    overcommit: float


DEFAULT_ROOM: Mapping[str, Room] = MappingProxyType(
    {
        BANDWIDTH: Room(300, 2),
        STORAGE: Room(1000, 2),
        PARTITIONS: Room(10_000, 4),
        # Both are limits that hardly anybody comes near: an instance may have 1,000 connections on each broker.
        CONNECTIONS: Room(10_000, 50),
        BROKER_TIME: Room(MOST_LOOP_MS_PER_S_AND_BROKER, 100),
    }
)
"""Where operators have said nothing else. How many instances a cluster has is not counted by broker (ports are)."""
DEFAULT_CAPS: Mapping[str, Decimal] = MappingProxyType(
    {
        INSTANCES: Decimal(20),
        BANDWIDTH: Decimal(400),
        STORAGE: Decimal(4000),
        PARTITIONS: Decimal(6000),
        PRICE: Decimal(30_000),
        PRICE_IN_USD: Decimal(4300),
    }
)
"""Of an organisation for which operators have set nothing else. There is a price for each currency, and none is converted."""
DEFAULT_CONFIRMED_ABOVE: Mapping[str, Decimal] = MappingProxyType(
    {DEFAULT_CURRENCY: Decimal("5000.00"), "USD": Decimal("700.00")}
)
"""A price a month, by currency, above which a purchase must be confirmed. In a currency that is not here every price must."""


@dataclass(frozen=True, slots=True)
class Exceeded:
    """One resource of which too little is left."""

    resource: str
    limit: Amount
    used: Amount  # now, by this instance too
    asked: Amount  # how much more

    def document(self) -> dict[str, object]:
        """As problems carry it."""
        numbers = {"limit": self.limit, "used": self.used, "asked": self.asked}
        return {"resource": self.resource, **{name: number(amount) for name, amount in numbers.items()}}


def price_cap(currency: str) -> str:
    """The name under which caps of spend in a currency are set and kept."""
    return PRICE if currency == DEFAULT_CURRENCY else f"{PRICE}_{currency.lower()}"


def in_currency(caps: Mapping[str, Decimal], currency: str) -> dict[str, Decimal]:
    """Each of ORGANISATION: of the caps of spend, that in a currency; nothing may be spent in one that has none."""
    return {name: caps.get(price_cap(currency), Decimal(0)) if name == PRICE else caps[name] for name in ORGANISATION}


def sizes_taken(*, bandwidth_mib_per_s: float, storage_gib: float, partitions: int) -> dict[str, Amount]:
    """What counts in a cluster and in an organisation alike."""
    return {INSTANCES: 1, BANDWIDTH: bandwidth_mib_per_s, STORAGE: storage_gib, PARTITIONS: partitions}


def taken_of_cluster(
    *,
    bandwidth_mib_per_s: float,
    storage_gib: float,
    partitions: int,
    hosts: int,
    operators: Mapping[str, int | None] = MappingProxyType({}),
) -> dict[str, Amount]:
    """All that an instance takes of a cluster in which it has a listener on each of `hosts` brokers.

    `operators` has the limits that an operator has set. Unlimited broker time is all that anybody can get.
    """
    loop_ms = operators_limits(bandwidth_mib_per_s, operators=operators, brokers=hosts)["loop_ms_per_s"]
    most_ms = MOST_LOOP_MS_PER_S_AND_BROKER * hosts
    return {
        **sizes_taken(bandwidth_mib_per_s=bandwidth_mib_per_s, storage_gib=storage_gib, partitions=partitions),
        CONNECTIONS: CONNECTIONS_PER_BROKER * hosts,
        BROKER_TIME: most_ms if loop_ms is None else min(loop_ms, most_ms),
    }


def capacity_of(room: Mapping[str, Room], *, brokers: int, instances: int) -> dict[str, Amount]:
    """What may be sold of a cluster."""
    sold = {name: each.per_broker * each.overcommit * brokers for name, each in room.items()}
    return {INSTANCES: instances, **sold}


def total(taken: Iterable[Amounts], resource: str) -> Amount:
    """How much of a resource is taken: exact for whole numbers and decimals, rounded once for floats."""
    amounts = [each[resource] for each in taken]
    if any(isinstance(amount, Decimal) for amount in amounts):
        return sum((Decimal(amount) for amount in amounts), Decimal(0))
    return math.fsum(amounts)


def exceeded(
    limits: Amounts, others: Iterable[Amounts], *, after: Amounts, before: Amounts | None = None
) -> tuple[Exceeded, ...]:
    """Each resource that grows beyond its limit. `before`: what the same instance takes now; None: it is a new one."""
    others = list(others)
    found = []
    for resource, limit in limits.items():
        now = [each for each in (*others, before) if each is not None]
        growth = _difference(after[resource], before[resource] if before else 0)
        if growth > 0 and total([*others, after], resource) > limit:
            found.append(Exceeded(resource, limit, total(now, resource), growth))
    return tuple(found)


def _difference(after: Amount, before: Amount) -> Amount:
    if isinstance(after, Decimal) or isinstance(before, Decimal):
        return Decimal(after) - Decimal(before)
    return after - before


def number(amount: Amount) -> int | float | str:
    """As JSON has it: money as text, as everywhere, and 20 for 20.0."""
    if isinstance(amount, Decimal):
        return f"{amount:f}"
    return int(amount) if float(amount).is_integer() else float(f"{amount:.12g}")


def text_of(amount: Amount, unit: str = "") -> str:
    """`1,200 MiB/s`."""
    plain = f"{amount:,.2f}" if isinstance(amount, Decimal) else f"{float(amount):,.6f}".rstrip("0").rstrip(".")
    return f"{plain} {unit}".strip()


def sentence_of(each: Exceeded, *, has: str, currency: str = "") -> str:
    """`bandwidth: the organisation may have 400 MiB/s (in use: 390 MiB/s; asked for: 20 MiB/s more)`.

    `has` is subject and verb.
    """
    limit, used, asked = (shown(each.resource, amount, currency) for amount in (each.limit, each.used, each.asked))
    return f"{RESOURCES[each.resource].title}: {has} {limit} (in use: {used}; asked for: {asked} more)"


def shown(resource: str, amount: Amount, currency: str = "") -> str:
    """With its unit: `400 MiB/s`, `CNY 30,000.00 a month`."""
    unit = RESOURCES[resource].unit
    return f"{currency} {text_of(amount)} {unit}".strip() if resource == PRICE else text_of(amount, unit)
