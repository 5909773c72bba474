"""Costs of months and budgets as rows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from controlplane.billing.models import MonthCost
from controlplane.budgets.models import Budget, BudgetAlert, BudgetReceiver

if TYPE_CHECKING:
    from controlplane.alarms.models import Receiver
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

LONG_AGO = datetime(2026, 4, 2, tzinfo=UTC)
ROWS = "a test"


def budget_row(
    organisation: Organisation, *receivers: Receiver, budget_id: str = "bud-000000000001", **members: object
) -> Budget:
    """1,000.00 a month of all instances, with the usual thresholds, unless it is said otherwise."""
    row = Budget(
        id=budget_id,
        organisation=organisation,
        **{
            "name": "all of it",
            "amount": Decimal(1000),
            "currency": "CNY",
            "actual_percents": [50, 80, 100],
            "forecast_percents": [100],
            "created_at": LONG_AGO,
            "decided_at": LONG_AGO,
            **members,
        },
    )
    row.save(force_insert=True)
    for receiver in receivers:
        BudgetReceiver(organisation=organisation, budget=row, receiver=receiver).save(force_insert=True)
    return row


def alert_row(budget: Budget, **members: object) -> BudgetAlert:
    """The cost so far has reached 50 %."""
    row = BudgetAlert(
        organisation=budget.organisation,
        budget=budget,
        **{
            "month": "2026-05",
            "kind": "actual",
            "percent": 50,
            "amount": budget.amount,
            "so_far": Decimal("512.30"),
            "forecast": Decimal("980.00"),
            "counted_until": datetime(2026, 5, 14, tzinfo=UTC),
            "at": datetime(2026, 5, 14, 0, 20, tzinfo=UTC),
            "messages": 1,
            **members,
        },
    )
    row.save(force_insert=True)
    return row


def cost_row(
    instance: Instance, so_far: object, forecast: object, *, month: str = "2026-05", **members: object
) -> None:
    """What a month of an instance costs, as last computed; takes the place of what was computed before."""
    at = datetime(2026, 5, 14, tzinfo=UTC)
    defaults = {
        "organisation": instance.organisation,
        "currency": "CNY",
        "so_far": Decimal(str(so_far)),
        "forecast": Decimal(str(forecast)),
        "counted_until": at,
        "computed_at": at,
        **members,
    }
    MonthCost.objects.unscoped(ROWS).update_or_create(instance=instance, month=month, defaults=defaults)
