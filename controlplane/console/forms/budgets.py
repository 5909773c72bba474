"""What a month may cost, and who is told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.budgets.rules import DEFAULT_ACTUAL, DEFAULT_FORECAST, MOST_PERCENT, percents_problems
from controlplane.console.advice import sentence
from controlplane.console.forms.base import OnceForm, ruled
from controlplane.console.wording import filled, worded
from controlplane.core.text import LONGEST_NAME, name_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controlplane.alarms.models import Receiver
    from controlplane.budgets.models import Budget

LONGEST_PERCENTS = 100


class PercentsField(forms.CharField):
    """Whole percentages with commas or spaces between them."""

    def __init__(self, **options: Any) -> None:
        options |= {"required": False, "max_length": LONGEST_PERCENTS}
        super().__init__(widget=forms.TextInput({"autocomplete": "off", "inputmode": "numeric"}), **options)

    def clean(self, value: Any) -> list[int]:
        """The numbers. What is none is refused."""
        entries = [entry for entry in re.split(r"[\s,;%]+", super().clean(value)) if entry]
        if not all(entry.isascii() and entry.isdigit() and len(entry) <= len(str(MOST_PERCENT)) for entry in entries):
            raise forms.ValidationError(f"Whole numbers from 1 to {MOST_PERCENT}, such as 50, 80, 100.")
        found = [int(entry) for entry in entries]
        problems = percents_problems("", found)
        if problems:
            raise forms.ValidationError([sentence(problem.detail) for problem in problems])
        return found

    def prepare_value(self, value: Any) -> Any:
        """``50, 80, 100``."""
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


class BudgetForm(OnceForm):
    """Its name, amount, thresholds and receivers; of a new one, what it is of."""

    refusals: ClassVar = {"not_found": "instance"}

    name = forms.CharField(
        label="Name",
        max_length=LONGEST_NAME,
        validators=[ruled(name_problem)],
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    instance = forms.CharField(
        label="Of one instance",
        required=False,
        max_length=32,
        help_text="Its id, such as ins-k3v9x2qa. Empty: all instances together.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )
    amount = forms.CharField(
        label="Amount a month",
        max_length=16,
        widget=forms.TextInput({"autocomplete": "off", "inputmode": "decimal"}),
    )
    actual_percents = PercentsField(
        label="Tell when the cost so far reaches",
        help_text="Whole percentages of the amount, with commas between them.",
    )
    forecast_percents = PercentsField(
        label="Tell when the forecast reaches",
        help_text="The forecast: what the month will have cost if use goes on as in the last seven days.",
    )
    receivers = forms.MultipleChoiceField(label="Who is told", required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(
        self,
        data: Any = None,
        *,
        receivers: Iterable[Receiver],
        budget: Budget | None = None,
        told: Sequence[str] = (),
    ) -> None:
        initial = {"actual_percents": list(DEFAULT_ACTUAL), "forecast_percents": list(DEFAULT_FORECAST)}
        if budget is not None:
            initial = {
                "name": budget.name,
                "amount": budget.amount,
                "actual_percents": budget.actual_percents,
                "forecast_percents": budget.forecast_percents,
                "receivers": list(told),
            }
        super().__init__(data, initial=initial)
        if budget is not None:
            del self.fields["instance"]
        self.fields["receivers"].choices = [  # type: ignore[attr-defined]
            (each.pk, _receiver_text(each)) for each in receivers
        ]

    def wanted(self) -> dict[str, Any]:
        """What `budget_create` and `budget_update` take."""
        names = ("name", "amount", "actual_percents", "forecast_percents", "receivers")
        found = {name: self.cleaned_data[name] for name in names}
        if "instance" in self.fields:
            found["instance_id"] = self.cleaned_data["instance"] or None
        return found


def _receiver_text(receiver: Receiver) -> str:
    text = filled("{receiver} of {instance}", receiver=receiver.name, instance=receiver.instance.name)
    return text + ("" if receiver.is_confirmed else str(worded(", not confirmed yet")))
