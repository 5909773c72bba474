"""Elastic bandwidth."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django import forms

from controlplane.console.forms.base import ConsoleForm

if TYPE_CHECKING:
    from controlplane.admission.elastic import ElasticNow


class ElasticForm(ConsoleForm):
    """A cap and a budget; empty is off, and none. `wanted()` is what the service takes."""

    cap_mib_per_s = forms.FloatField(
        label="Cap",
        required=False,
        help_text="Of each direction: above the bandwidth limit, and at most twice as much. Empty: off.",
        widget=forms.NumberInput({"min": "0", "step": "any", "inputmode": "decimal"}),
    )
    budget_per_month = forms.DecimalField(
        label="Budget of a month",
        required=False,
        min_value=Decimal("0.01"),
        max_digits=16,
        decimal_places=2,
        help_text="When it is used up, it is off until the month ends. Empty: no budget.",
        widget=forms.NumberInput({"min": "0.01", "step": "0.01", "inputmode": "decimal"}),
    )

    def __init__(self, data: Any = None, *, now: ElasticNow) -> None:
        instance = now.instance
        super().__init__(
            data,
            initial={"cap_mib_per_s": instance.elastic_mib_per_s, "budget_per_month": instance.elastic_budget},
        )

    def wanted(self) -> dict[str, Any]:
        """Both."""
        return {name: self.cleaned_data[name] for name in ("cap_mib_per_s", "budget_per_month")}
