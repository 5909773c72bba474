"""Which thresholds of a budget are reached, and which of them are told. Pure.

A *threshold* is a whole percentage of the budget's amount. One of ACTUAL is reached once the cost so far is at least that
much; one of FORECAST once the forecast is, while the cost so far is not: what has happened needs no forecast. In a month
that is over there is nothing left to forecast.

Each threshold is alerted once in a month for one amount of the budget. Where a look finds several reached at once (the first
look at a budget, a jump), all are noted, and of each kind the highest is told: one message says what the others would.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal

from controlplane.core.errors import FieldProblem

ACTUAL, FORECAST = "actual", "forecast"
KINDS = (ACTUAL, FORECAST)
DEFAULT_ACTUAL, DEFAULT_FORECAST = (50, 80, 100), (100,)
MOST_BUDGETS = 50
MOST_THRESHOLDS, MOST_PERCENT = 10, 1000
MOST_RECEIVERS = 10
MOST_AMOUNT = Decimal(10) ** 12
NO_AMOUNT = f"must be an amount above 0 with at most two decimals, up to {MOST_AMOUNT:f}"
AMOUNT_PATTERN = r"^[0-9]{1,13}(\.[0-9]{1,2})?$"


@dataclass(frozen=True, slots=True, order=True)
class Threshold:
    """A percentage of the cost so far, or of the forecast."""

    kind: str  # one of KINDS
    percent: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a month has cost so far and will have cost, in the budget's currency."""

    so_far: Decimal
    forecast: Decimal
    is_over: bool = False  # the month is


def reached(amount: Decimal, standing: Standing, thresholds: Iterable[Threshold]) -> frozenset[Threshold]:
    """Those of the thresholds that are reached. `amount` is above 0."""

    def is_reached(threshold: Threshold) -> bool:
        least = amount * threshold.percent
        if threshold.kind == ACTUAL:
            return standing.so_far * 100 >= least
        return not standing.is_over and standing.so_far * 100 < least <= standing.forecast * 100

    return frozenset(threshold for threshold in thresholds if is_reached(threshold))


def told(fresh: Collection[Threshold]) -> list[Threshold]:
    """Of thresholds that are reached for the first time: the highest of each kind."""
    return [max(kind) for name in KINDS if (kind := [each for each in fresh if each.kind == name])]


def percent_of(part: Decimal, amount: Decimal) -> int:
    """Whole percent, rounded down: 100 is never said before the amount is used up."""
    return int(part * 100 // amount)


def amount_of(text: object) -> Decimal | None:
    """A budget's amount, plain digits with at most two decimals; None where it is none."""
    if not isinstance(text, str) or re.fullmatch(AMOUNT_PATTERN, text) is None:
        return None
    amount = Decimal(text).quantize(Decimal("0.01"))
    return amount if 0 < amount <= MOST_AMOUNT else None


def percents_problems(field: str, percents: Iterable[object]) -> list[FieldProblem]:
    """What is wrong with thresholds of one kind."""
    found = list(percents)
    if len(found) > MOST_THRESHOLDS:
        return [FieldProblem(field, f"at most {MOST_THRESHOLDS}")]
    if not all(type(each) is int and 1 <= each <= MOST_PERCENT for each in found):
        return [FieldProblem(field, f"must be whole numbers from 1 to {MOST_PERCENT}")]
    return [FieldProblem(field, "names one twice")] if len(set(found)) < len(found) else []
