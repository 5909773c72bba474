"""Budgets as JSON: decimals are strings. What a budget may say is judged in rules.py; here are only shapes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.billing.pricing.money import text_of
from controlplane.budgets.rules import (
    AMOUNT_PATTERN,
    DEFAULT_ACTUAL,
    DEFAULT_FORECAST,
    KINDS,
    MOST_PERCENT,
    MOST_RECEIVERS,
    MOST_THRESHOLDS,
    NO_AMOUNT,
    amount_of,
)
from controlplane.budgets.selectors import BudgetNow
from controlplane.core.text import LONGEST_NAME


@extend_schema_field({"type": "string", "pattern": AMOUNT_PATTERN})
class AmountField(StrictCharField):
    """Money as text. Judged here as well, so that it is refused together with what has no shape."""

    def to_internal_value(self, data: Any) -> str:
        """The text. Raises ValidationError."""
        text = super().to_internal_value(data)
        if amount_of(text) is None:
            raise serializers.ValidationError(NO_AMOUNT)
        return text


def _percents(help_text: str) -> Any:
    return serializers.ListField(
        child=StrictIntegerField(min_value=1, max_value=MOST_PERCENT),
        max_length=MOST_THRESHOLDS,
        required=False,
        help_text=help_text,
    )


class BudgetChangeSerializer(StrictSerializer):
    """PATCH: any of them. Lists that are given replace those before."""

    not_empty = True

    name = StrictCharField(max_length=LONGEST_NAME, required=False)
    amount = AmountField(max_length=16, required=False, help_text='a month\'s, such as "1500.00"')
    actual_percents = _percents(
        f"receivers are told when the cost so far reaches so many percent; by default {list(DEFAULT_ACTUAL)}"
    )
    forecast_percents = _percents(
        f"and when the forecast does, while the cost so far does not; by default {list(DEFAULT_FORECAST)}"
    )
    receivers = serializers.ListField(
        child=StrictCharField(max_length=20),
        max_length=MOST_RECEIVERS,
        required=False,
        help_text="ids of receivers of any instance of the organisation",
    )


class BudgetCreateSerializer(BudgetChangeSerializer):
    """POST: a name and an amount at least."""

    not_empty = False

    name = StrictCharField(max_length=LONGEST_NAME)
    amount = AmountField(max_length=16, help_text='a month\'s, such as "1500.00", in the currency of the plan')
    instance_id = StrictCharField(
        max_length=32, allow_null=True, required=False, default=None, help_text="null: all instances together"
    )


class BudgetSerializer(serializers.Serializer[Any]):
    """A budget and how it stands this month. Amounts are as last computed, about every quarter of an hour."""

    id = serializers.CharField()
    name = serializers.CharField()
    instance_id = serializers.CharField(allow_null=True, help_text="null: all instances together")
    amount = serializers.CharField()
    currency = serializers.CharField()
    actual_percents = serializers.ListField(child=serializers.IntegerField())
    forecast_percents = serializers.ListField(child=serializers.IntegerField())
    receivers = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    month = serializers.CharField(help_text="of what follows")
    so_far = serializers.CharField(
        allow_null=True, help_text="null: not computed yet, or the month is billed in another currency"
    )
    forecast = serializers.CharField(allow_null=True)
    percent = serializers.IntegerField(allow_null=True, help_text="so far, of the amount; rounded down")
    forecast_percent = serializers.IntegerField(allow_null=True)
    counted_until = serializers.DateTimeField(
        allow_null=True, help_text="hours before are in `so_far`, as far as is known"
    )


class BudgetPageSerializer(serializers.Serializer[Any]):
    """A page of budgets."""

    items = BudgetSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class BudgetAlertSerializer(serializers.Serializer[Any]):
    """A threshold that was reached, and what was so then."""

    at = serializers.DateTimeField()
    month = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS, help_text="the cost so far, or the forecast")
    percent = serializers.IntegerField()
    amount = serializers.CharField(help_text="the budget's, then")
    so_far = serializers.CharField()
    forecast = serializers.CharField()
    counted_until = serializers.DateTimeField()
    messages = serializers.IntegerField(
        help_text="so many receivers were written to; 0 also where the message of a higher threshold says it"
    )


class BudgetAlertPageSerializer(serializers.Serializer[Any]):
    """A page of them, the newest first."""

    items = BudgetAlertSerializer(many=True)
    next = serializers.CharField(allow_null=True)


def budget_body(now: BudgetNow) -> dict[str, Any]:
    """As BudgetSerializer has it."""
    budget, stand = now.budget, now.stand
    return {
        "id": budget.pk,
        "name": budget.name,
        "instance_id": budget.instance_id,
        "amount": text_of(budget.amount),
        "currency": budget.currency,
        "actual_percents": budget.actual_percents,
        "forecast_percents": budget.forecast_percents,
        "receivers": [each.pk for each in now.receivers],
        "created_at": budget.created_at,
        "month": str(now.month),
        "so_far": stand and text_of(stand.so_far),
        "forecast": stand and text_of(stand.forecast),
        "percent": now.percent,
        "forecast_percent": now.forecast_percent,
        "counted_until": stand and stand.counted_until,
    }
