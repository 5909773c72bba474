"""Budgets, the receivers that they tell, and the alerts of each month."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.budgets.rules import ACTUAL, FORECAST, Threshold
from controlplane.core.scope import TenantManager


class Budget(models.Model):
    """What a month may cost: of all instances of an organisation, or of one."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, null=True, related_name="+")  # null: all of them
    name = models.CharField(max_length=128)
    amount = models.DecimalField(max_digits=24, decimal_places=2)
    currency = models.CharField(max_length=3)  # of the plan when it was made
    actual_percents = models.JSONField(default=list)  # whole numbers, rising
    forecast_percents = models.JSONField(default=list)
    created_at = models.DateTimeField()
    decided_at = (
        models.DateTimeField()
    )  # when amount or thresholds were set last: months before were not judged by them

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Listed by organisation, in the order in which they were made."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organisation", "created_at"], name="budgets_of_organisation")
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.amount} {self.currency} a month"

    @property
    def thresholds(self) -> tuple[Threshold, ...]:
        """All of them."""
        return (
            *(Threshold(ACTUAL, percent) for percent in self.actual_percents),
            *(Threshold(FORECAST, percent) for percent in self.forecast_percents),
        )


class BudgetReceiver(models.Model):
    """A receiver that is told. It goes with the budget, and with the receiver."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    budget = models.ForeignKey(Budget, models.CASCADE, related_name="+")
    receiver = models.ForeignKey("alarms.Receiver", models.CASCADE, related_name="+")

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Told once."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["budget", "receiver"], name="one_receiver_of_a_budget")
        ]

    def __str__(self) -> str:
        return f"{self.receiver_id} of {self.budget_id}"


class BudgetAlert(models.Model):
    """A threshold that was reached in a month, with what the month had cost then. Never changed; gone with its budget."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    budget = models.ForeignKey(Budget, models.CASCADE, related_name="+")
    month = models.CharField(max_length=7)
    kind = models.CharField(max_length=8)  # one of rules.KINDS
    percent = models.PositiveIntegerField()
    amount = models.DecimalField(max_digits=24, decimal_places=2)  # the budget's, then
    so_far = models.DecimalField(max_digits=24, decimal_places=2)
    forecast = models.DecimalField(max_digits=24, decimal_places=2)
    counted_until = models.DateTimeField()
    at = models.DateTimeField()
    messages = (
        models.PositiveIntegerField()
    )  # so many receivers were written to; 0: a higher threshold's message says it

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Once for each threshold and month, until the amount is another one."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["budget", "month", "kind", "percent", "amount"], name="one_alert_a_month")
        ]
        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["budget", "at"], name="alerts_of_a_budget")]

    def __str__(self) -> str:
        return f"{self.percent} % of {self.budget_id} in {self.month} ({self.kind})"
