"""Bills of a month that has one plan and whose usage is known as a sum: what most rules of rating are shown on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.billing.pricing.rating import Line, Month, Period, Term, Used, rate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.billing.pricing.plans import Plan


def rate_under(
    plan: Plan, periods: Sequence[Period], month: Month, now: datetime, used: Used | None = None
) -> tuple[Line, ...]:
    return rate((Term(month.start, plan),), periods, month, now, {month.start: used or Used()})
