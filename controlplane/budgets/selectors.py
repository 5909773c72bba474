"""Reading budgets, and how they stand this month."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from controlplane.billing.costs import cost_list
from controlplane.billing.pricing.money import total_of
from controlplane.billing.pricing.rating import Month
from controlplane.budgets.models import Budget, BudgetAlert, BudgetReceiver
from controlplane.budgets.rules import percent_of
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.alarms.models import Receiver
    from controlplane.billing.models import MonthCost
    from controlplane.tenants.models import Organisation

Place = tuple[str | None, str]
"""The id of an instance, None for all together; and a currency."""


@dataclass(frozen=True, slots=True)
class Stand:
    """What a budget is compared with, as last computed; amounts are in its currency."""

    so_far: Decimal
    forecast: Decimal
    counted_until: datetime  # the least
    computed_at: datetime  # the oldest


@dataclass(frozen=True, slots=True)
class BudgetNow:
    """A budget, whom it tells, and how it stands in a month."""

    budget: Budget
    receivers: tuple[Receiver, ...]
    month: Month
    stand: Stand | None  # None: nothing of its currency has been computed yet

    @property
    def percent(self) -> int | None:
        """How much of the amount is used up: whole percent, rounded down."""
        return None if self.stand is None else percent_of(self.stand.so_far, self.budget.amount)

    @property
    def forecast_percent(self) -> int | None:
        """The same at the month's end."""
        return None if self.stand is None else percent_of(self.stand.forecast, self.budget.amount)


def budget_list(*, organisation: Organisation, prefix: str = "", instance_id: str = "") -> QuerySet[Budget]:
    """An organisation's budgets, with their instances: all, or those whose names begin so, or of one instance."""
    rows = Budget.objects.for_organisation(organisation).select_related("instance")
    wanted = {"name__startswith": prefix, "instance_id": instance_id}
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def budget_get(*, organisation: Organisation, budget_id: str) -> Budget:
    """One of them. Raises NotFound."""
    row = budget_list(organisation=organisation).filter(pk=budget_id).first()
    if row is None:
        raise NotFound(f"no budget {budget_id}")
    return row


def budgets_now(
    budgets: Sequence[Budget], *, organisation: Organisation, clock: Clock = SYSTEM_CLOCK
) -> list[BudgetNow]:
    """These budgets of an organisation as they stand this month, in two queries however many there are."""
    month = Month.of(clock.now())
    stands = stands_of(cost_list(organisation=organisation, month=month)) if budgets else {}
    told = receivers_of(budgets)
    return [BudgetNow(budget, tuple(told.get(budget.pk, ())), month, stand_of(budget, stands)) for budget in budgets]


def alert_list(*, organisation: Organisation, budget_id: str) -> QuerySet[BudgetAlert]:
    """What a budget told, in all its months. Raises NotFound."""
    budget = budget_get(organisation=organisation, budget_id=budget_id)
    return BudgetAlert.objects.for_organisation(organisation).filter(budget=budget)


def receivers_of(budgets: Iterable[Budget]) -> Mapping[str, list[Receiver]]:
    """Whom each tells, by its id, those first that were made first."""
    rows = BudgetReceiver.objects.unscoped("the caller has found the budgets").filter(budget__in=list(budgets))
    found: dict[str, list[Receiver]] = {}
    for row in rows.select_related("receiver", "receiver__instance").order_by("receiver__created_at", "receiver_id"):
        found.setdefault(row.budget_id, []).append(row.receiver)
    return found


def stands_of(costs: Iterable[MonthCost]) -> Mapping[Place, Stand]:
    """Of each instance, and of all together, from the costs of an organisation's month."""
    found: dict[Place, Stand] = {}
    by_currency: dict[str, list[MonthCost]] = {}
    for row in costs:
        found[row.instance_id, row.currency] = Stand(row.so_far, row.forecast, row.counted_until, row.computed_at)
        by_currency.setdefault(row.currency, []).append(row)
    for currency, rows in by_currency.items():
        found[None, currency] = Stand(
            total_of(row.so_far for row in rows),
            total_of(row.forecast for row in rows),
            min(row.counted_until for row in rows),
            min(row.computed_at for row in rows),
        )
    return found


def stand_of(budget: Budget, stands: Mapping[Place, Stand]) -> Stand | None:
    """Of its instance or of all, in its currency; None: there is nothing to compare it with."""
    return stands.get((budget.instance_id, budget.currency))
