"""What an instance does by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from controlplane.console.forms.instances import PricedForm
from controlplane.instances.validation import MOST_STORAGE_GIB
from controlplane.policies.rules import (
    EXPANSION,
    LEAST_FLOOR_MIN,
    LEAST_LEVEL,
    LEAST_STEP,
    MOST_FLOOR_MIN,
    MOST_LEVEL,
    MOST_STEP,
    NONE,
    RETENTION,
    Rule,
)

if TYPE_CHECKING:
    from controlplane.policies.selectors import DiskView

_NAMES = ("policy", "level_percent", "step_percent", "floor_minutes", "spare_unread", "max_storage_gib")


def _whole(least: int, most: int) -> dict[str, Any]:
    attributes = {"min": str(least), "max": str(most), "step": "1", "inputmode": "numeric"}
    return {"min_value": least, "max_value": most, "widget": forms.NumberInput(attributes)}


class DiskPolicyForm(PricedForm):
    """What is done when the disk fills up. `wanted()` is what the service takes."""

    policy = forms.ChoiceField(
        label="When the disk fills up",
        choices=[
            (NONE, "Nothing is done: when storage is full, producing is refused"),
            (RETENTION, "Retention becomes shorter: the oldest records are deleted earlier"),
            (EXPANSION, "More storage is bought"),
        ],
        widget=forms.RadioSelect,
    )
    level_percent = forms.IntegerField(
        label="When so much is used", help_text="Of the storage limit.", **_whole(LEAST_LEVEL, MOST_LEVEL)
    )
    step_percent = forms.IntegerField(
        label="Step",
        help_text="By so much retention becomes shorter, or storage larger, at a time.",
        **_whole(LEAST_STEP, MOST_STEP),
    )
    floor_minutes = forms.IntegerField(
        label="Never shorter than",
        help_text="Topics that keep records for less, or keep everything, stay as they are.",
        **_whole(LEAST_FLOOR_MIN, MOST_FLOOR_MIN),
    )
    spare_unread = forms.BooleanField(
        label="Spare what groups have still to read",
        required=False,
        help_text="A topic is left as it is while a group has not read what would go. Then storage may become full.",
    )
    max_storage_gib = forms.FloatField(
        label="Never more than",
        required=False,
        help_text="Storage is bought up to this size, within the caps and the budgets of the organisation.",
        widget=forms.NumberInput({"min": "0", "max": str(MOST_STORAGE_GIB), "step": "any", "inputmode": "decimal"}),
    )

    def __init__(self, data: Any = None, *, view: DiskView) -> None:
        super().__init__(data, initial={name: getattr(view.rule, name) for name in _NAMES})

    def wanted(self) -> dict[str, Any]:
        """The policy, and the word that its price is known."""
        rule = Rule(**{name: self.cleaned_data[name] for name in _NAMES})
        return {"wanted": rule, "confirm_price": self.cleaned_data["confirm_price"]}
