"""Paying in advance."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.billing.pricing.prepaid import EXPIRE, POSTPAID, RENEW
from controlplane.billing.pricing.prepaid_prices import LEAST_MONTHS, MOST_MONTHS
from controlplane.console.forms.base import ConsoleForm
from controlplane.console.forms.instances import PricedForm

if TYPE_CHECKING:
    from controlplane.admission.prepaid import PrepaidNow

_CHOICES = [
    (EXPIRE, "It is isolated, and deleted when its grace period ends"),
    (RENEW, "It is renewed by itself"),
    (POSTPAID, "It goes on, paid by the hour"),
]


def _months(label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(
        label=label,
        min_value=LEAST_MONTHS,
        max_value=MOST_MONTHS,
        help_text=help_text,
        widget=forms.NumberInput(
            {"min": str(LEAST_MONTHS), "max": str(MOST_MONTHS), "step": "1", "inputmode": "numeric"}
        ),
    )


class PrepaidForm(PricedForm):
    """Months: bought where it is paid by the hour, else renewed. `wanted()` is what the service takes."""

    months = _months("Months", "Calendar months, from 1 to 36.")
    at_end = forms.ChoiceField(label="When they have ended", choices=_CHOICES, required=False)
    ends_at = forms.CharField(required=False, widget=forms.HiddenInput)  # which the page has shown: it is put off once
    refusals: ClassVar = {"ends_at": "months"}

    def __init__(self, data: Any = None, *, now: PrepaidNow) -> None:
        self.is_renewal = now.account.ends_at is not None
        super().__init__(data, initial={"months": 1, "at_end": EXPIRE, "ends_at": now.ends_text or ""})
        if self.is_renewal:
            del self.fields["at_end"]

    def clean(self) -> dict[str, Any]:
        """What was shown has to be what is there."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            found["ends_at"] = datetime.fromisoformat(found["ends_at"]) if found.get("ends_at") else None
        except ValueError:
            found["ends_at"] = None
        if (found["ends_at"] is not None) != self.is_renewal:
            self.add_error(
                None, "How the instance is paid has changed meanwhile. Look again, and repeat it if it is still meant."
            )
        return found

    def wanted(self) -> dict[str, Any]:
        """Months, and the end that they put off, or what becomes of the instance at theirs."""
        members = {name: self.cleaned_data[name] for name in ("months", "confirm_price")}
        if self.is_renewal:
            return {**members, "ends_at": self.cleaned_data["ends_at"]}
        return {**members, "at_end": self.cleaned_data["at_end"] or EXPIRE}


class PrepaidEndForm(ConsoleForm):
    """What becomes of an instance when what is paid has ended."""

    at_end = forms.ChoiceField(label="When it has ended", choices=_CHOICES, widget=forms.RadioSelect)
    renew_months = _months("Months at a time", "Where it is renewed by itself, at the prices of that day.")

    def __init__(self, data: Any = None, *, now: PrepaidNow) -> None:
        super().__init__(data, initial={"at_end": now.at_end, "renew_months": now.renew_months})

    def wanted(self) -> dict[str, Any]:
        """Both."""
        return {name: self.cleaned_data[name] for name in ("at_end", "renew_months")}
