"""A bill by topic, to the cent. Pure.

Each item of a bill, within the hours of each plan, is shared among topics by what is metered of them in these hours:

=====================  ===============================================
item                   shared by
=====================  ===============================================
produced, consumed     the topic's bytes produced, or consumed
stored, disk           what the topic stored, times how long
bandwidth              the topic's bytes produced and consumed together
elastic_produced, …    the topic's bytes produced, or consumed
guarantee_credit       as bandwidth
=====================  ===============================================

What cannot be shared stands in lines of its own: partitions, which are not metered by topic; an item of hours in which
no topic did anything that it is shared by; what was paid in advance, which is of other hours too; and adjustments of
earlier months.

Amounts are shared in whole cents by the largest remainder: each share is rounded down, and the cents that are left go one by
one to those that lost most by the rounding; of equal ones to the larger topic, then by name. So shares add up to the item, and
items to the bill, and no topic is more than a cent away from its exact share.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from controlplane.billing.pricing.money import CENT, total_of
from controlplane.billing.pricing.rating import CREDIT, PREPAID, Line, Span, Used

NOT_METERED, NO_USAGE, ADJUSTMENT, IN_ADVANCE = "not_metered", "no_usage", "adjustment", "in_advance"
REASONS = (NOT_METERED, NO_USAGE, ADJUSTMENT, IN_ADVANCE)

Topics = Mapping[str, Used]
"""What each topic used."""


@dataclass(frozen=True, slots=True)
class TopicCost:
    """A topic's part of a bill, by item, and what it used."""

    topic: str
    amount: Decimal
    items: Mapping[str, Decimal]
    used: Used


@dataclass(frozen=True, slots=True)
class Unshared:
    """What no topic can be given, and why: one of REASONS."""

    item: str
    amount: Decimal
    reason: str


@dataclass(frozen=True, slots=True)
class Shares:
    """A bill by topic, the dearest first, and the rest: together `total`, to the cent."""

    topics: tuple[TopicCost, ...]
    unshared: tuple[Unshared, ...]
    total: Decimal


def by_topic(lines: Sequence[Line], spans: Sequence[Span], used: Mapping[datetime, Topics]) -> Shares:
    """`used`: what topics used within each span, under the hour that it begins with."""
    amounts: dict[tuple[datetime | None, str], Decimal] = {}
    for line in lines:
        shares = not line.adjusts and line.item not in PREPAID
        begin = next(span.start for span in spans if span.start <= line.start < span.end) if shares else None
        place = (begin, line.item)
        amounts[place] = amounts.get(place, Decimal("0.00")) + line.amount
    items: dict[str, dict[str, Decimal]] = {}
    unshared: dict[tuple[str, str], Decimal] = {}
    for (begin, item), amount in amounts.items():
        topics = {} if begin is None else used.get(begin, {})
        weights = (
            {topic: _weight(item, each) for topic, each in topics.items()} if begin and item != "partitions" else {}
        )
        if any(weights.values()):
            for topic, share in shared(amount, weights).items():
                of_topic = items.setdefault(topic, {})
                of_topic[item] = of_topic.get(item, Decimal("0.00")) + share
        elif amount:
            reason = _reason(item, has_span=begin is not None)
            unshared[item, reason] = unshared.get((item, reason), Decimal("0.00")) + amount
    costs = [
        TopicCost(topic, total_of(items.get(topic, {}).values()), items.get(topic, {}), each)
        for topic, each in _together(used).items()
    ]
    costs.sort(key=lambda cost: (-cost.amount, cost.topic))
    rest = tuple(Unshared(item, amount, reason) for (item, reason), amount in unshared.items())
    return Shares(tuple(costs), rest, total_of(line.amount for line in lines))


def shared(amount: Decimal, weights: Mapping[str, int]) -> dict[str, Decimal]:
    """An amount in whole cents by the largest remainder. Raises ValueError where no weight is above 0, or one below."""
    whole = sum(weights.values())
    if whole <= 0 or min(weights.values()) < 0:
        raise ValueError("shares need a weight above 0, and none below")
    negative, cents = amount < 0, int(abs(amount) / CENT)
    parts = {name: divmod(cents * weight, whole) for name, weight in weights.items()}
    left = cents - sum(share for share, _ in parts.values())
    lucky = heapq.nsmallest(left, parts, key=lambda name: (-parts[name][1], -weights[name], name))
    found = {name: share for name, (share, _) in parts.items()}
    for name in lucky:
        found[name] += 1
    return {name: (-share if negative else share) * CENT for name, share in found.items()}


def _reason(item: str, *, has_span: bool) -> str:
    if item in PREPAID:
        return IN_ADVANCE
    if not has_span:
        return ADJUSTMENT
    return NOT_METERED if item == "partitions" else NO_USAGE


def _weight(item: str, used: Used) -> int:
    if item in ("bandwidth", CREDIT):
        return used.produced_bytes + used.consumed_bytes
    return used.of("stored" if item == "disk" else item.removeprefix("elastic_"))


def _together(used: Mapping[datetime, Topics]) -> dict[str, Used]:
    found: dict[str, Used] = {}
    for topics in used.values():
        for topic, each in topics.items():
            found[topic] = found.get(topic, Used()) + each
    return found
