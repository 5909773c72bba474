"""Another size or plan that is only asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from controlplane.console.forms.base import ConsoleForm
from controlplane.console.wording import worded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.billing.pricing.plans import Plan


def _number(**attributes: str) -> forms.NumberInput:
    return forms.NumberInput({"inputmode": "decimal", "min": "0", **attributes})


class WhatIfForm(ConsoleForm):
    """Fields that are empty stay as they were."""

    bandwidth_mib_per_s = forms.FloatField(label="Bandwidth", required=False, widget=_number(step="any"))
    storage_gib = forms.FloatField(label="Storage", required=False, widget=_number(step="any"))
    partitions = forms.IntegerField(label="Partitions", required=False, widget=_number(step="1"))
    plan = forms.ChoiceField(label="Plan", required=False)

    def __init__(self, data: Any = None, *, plans: Iterable[Plan]) -> None:
        super().__init__(data)
        self.fields["plan"].choices = [("", worded("As it was")), *((plan.name, worded(plan.title)) for plan in plans)]  # type: ignore[attr-defined]

    def wanted(self) -> dict[str, Any]:
        """What `what_if_get` takes."""
        found = dict(self.cleaned_data)
        plan = found.pop("plan") or None
        return {"size": found, "plan": plan}
