"""A bill by topic, or by user, to the cent. Pure.

Each item of a bill, within the hours of each plan, is shared among topics, or users, by what is metered of them in these hours:

=====================  ===============================================  =====================================================
item                   among topics by                                  among users by
=====================  ===============================================  =====================================================
produced, consumed     the topic's bytes produced, or consumed          bytes that came from the user's clients, or went to them
stored, disk           what the topic stored, times how long            nothing: what is stored is nobody's
bandwidth              the topic's bytes produced and consumed together bytes that came and went together
elastic_produced, …    as produced, consumed                            as produced, consumed
guarantee_credit       as bandwidth                                     as bandwidth
=====================  ===============================================  =====================================================

Bytes of topics are those of records, bytes of users all that came and went on the wire: brokers do not count which user's
request had which topic's records. So the two ways of sharing have sums in common, and nothing else.

What cannot be shared stands in lines of its own: partitions, which are metered neither by topic nor by user, and what is stored,
among users; an item of hours in which nobody did anything that it is shared by; what was paid in advance, which is of other hours
too; adjustments of earlier months; and the tax, which is on all of it.

Amounts are shared in whole cents by the largest remainder: each share is rounded down, and the cents that are left go one by
one to those that lost most by the rounding; of equal ones to the larger, then by name. So shares add up to the item, and
items to the bill, and no share is more than a cent away from its exact amount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Generic, Protocol, Self, TypeVar

from controlplane.billing.pricing.money import CENT, total_of
from controlplane.billing.pricing.rating import CREDIT, PREPAID, TAX, Line, Span, Used
from quota.contracts.usage import NO_USER, OTHER_USERS
from quota.core import remainders

NOT_METERED, NO_USAGE, ADJUSTMENT, IN_ADVANCE, TAXED = "not_metered", "no_usage", "adjustment", "in_advance", "tax"
REASONS = (NOT_METERED, NO_USAGE, ADJUSTMENT, IN_ADVANCE, TAXED)

USER_KINDS = ("signed_in", "not_signed_in", "not_kept_apart")
"""Whose a user's part is: a user's, that of connections without one, and that of users together beyond those that a broker counts
one by one."""


def user_kind(name: str) -> str:
    """One of USER_KINDS, by the name in usage records."""
    return {NO_USER: "not_signed_in", OTHER_USERS: "not_kept_apart"}.get(name, "signed_in")


class Addable(Protocol):
    """What somebody used: parts of it can be added up."""

    def __add__(self, other: Self, /) -> Self: ...


U = TypeVar("U", bound=Addable)


@dataclass(frozen=True, slots=True)
class UserUsed:
    """What a user moved within some hours, on the wire."""

    wire_in_bytes: int = 0
    wire_out_bytes: int = 0
    requests: int = 0

    def __add__(self, other: UserUsed) -> UserUsed:
        return UserUsed(
            self.wire_in_bytes + other.wire_in_bytes,
            self.wire_out_bytes + other.wire_out_bytes,
            self.requests + other.requests,
        )


@dataclass(frozen=True, slots=True)
class Part(Generic[U]):
    """A topic's or a user's part of a bill, by item, and what it used."""

    name: str
    amount: Decimal
    items: Mapping[str, Decimal]
    used: U


@dataclass(frozen=True, slots=True)
class Unshared:
    """What nobody can be given, and why: one of REASONS."""

    item: str
    amount: Decimal
    reason: str


@dataclass(frozen=True, slots=True)
class Shares(Generic[U]):
    """A bill in parts, the dearest first, and the rest: together `total`, to the cent."""

    parts: tuple[Part[U], ...]
    unshared: tuple[Unshared, ...]
    total: Decimal


def by_topic(lines: Sequence[Line], spans: Sequence[Span], used: Mapping[datetime, Mapping[str, Used]]) -> Shares[Used]:
    """`used`: what topics used within each span, under the hour that it begins with."""
    return _shares(lines, spans, used, _topic_weight, not_metered=("partitions",))


def by_user(
    lines: Sequence[Line], spans: Sequence[Span], used: Mapping[datetime, Mapping[str, UserUsed]]
) -> Shares[UserUsed]:
    """`used`: what users moved within each span, likewise."""
    return _shares(lines, spans, used, _user_weight, not_metered=("partitions", "disk", "stored"))


def _shares(
    lines: Sequence[Line],
    spans: Sequence[Span],
    used: Mapping[datetime, Mapping[str, U]],
    weight: Callable[[str, U], int],
    not_metered: Sequence[str],
) -> Shares[U]:
    """`weight`: what somebody's part of an item is by. `not_metered`: items of which nothing says whose they are."""
    amounts: dict[tuple[datetime | None, str], Decimal] = {}
    for line in lines:
        shares = not line.adjusts and line.item not in (*PREPAID, TAX)
        begin = next(span.start for span in spans if span.start <= line.start < span.end) if shares else None
        place = (begin, line.item)
        amounts[place] = amounts.get(place, Decimal("0.00")) + line.amount
    items: dict[str, dict[str, Decimal]] = {}
    unshared: dict[tuple[str, str], Decimal] = {}
    for (begin, item), amount in amounts.items():
        is_metered = item not in not_metered
        found = used.get(begin, {}) if begin is not None and is_metered else {}
        weights = {name: weight(item, each) for name, each in found.items()}
        if any(weights.values()):
            for name, share in shared(amount, weights).items():
                of_name = items.setdefault(name, {})
                of_name[item] = of_name.get(item, Decimal("0.00")) + share
        elif amount:
            reason = _reason(item, has_span=begin is not None, is_metered=is_metered)
            unshared[item, reason] = unshared.get((item, reason), Decimal("0.00")) + amount
    parts = [
        Part(name, total_of(items.get(name, {}).values()), items.get(name, {}), each)
        for name, each in _together(used).items()
    ]
    parts.sort(key=lambda part: (-part.amount, part.name))
    rest = tuple(Unshared(item, amount, reason) for (item, reason), amount in unshared.items())
    return Shares(tuple(parts), rest, total_of(line.amount for line in lines))


def shared(amount: Decimal, weights: Mapping[str, int]) -> dict[str, Decimal]:
    """An amount in whole cents by the largest remainder. Raises ValueError where no weight is above 0, or one below."""
    sign = -1 if amount < 0 else 1
    return {name: sign * share * CENT for name, share in remainders.shared(int(abs(amount) / CENT), weights).items()}


def _reason(item: str, *, has_span: bool, is_metered: bool) -> str:
    if item in PREPAID:
        return IN_ADVANCE
    if item == TAX:
        return TAXED
    if not has_span:
        return ADJUSTMENT
    return NO_USAGE if is_metered else NOT_METERED


def _topic_weight(item: str, used: Used) -> int:
    if item in ("bandwidth", CREDIT):
        return used.produced_bytes + used.consumed_bytes
    return used.of("stored" if item == "disk" else item.removeprefix("elastic_"))


def _user_weight(item: str, used: UserUsed) -> int:
    if item in ("bandwidth", CREDIT):
        return used.wire_in_bytes + used.wire_out_bytes
    return used.wire_in_bytes if item.removeprefix("elastic_") == "produced" else used.wire_out_bytes


def _together(used: Mapping[datetime, Mapping[str, U]]) -> dict[str, U]:
    found: dict[str, U] = {}
    for parts in used.values():
        for name, each in parts.items():
            found[name] = found[name] + each if name in found else each
    return found
