"""What operators decide about bills, and what a size costs."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.billing.crediting import LONGEST_REASON
from controlplane.console.forms.base import ConsoleForm
from controlplane.console.forms.instances import InstanceSettingsForm
from controlplane.console.wording import worded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.billing.pricing.plans import Plan


class WaiverForm(ConsoleForm):
    """Which invoices shall not wait for metering, and why."""

    month = forms.ChoiceField(label="Month")
    instance = forms.CharField(
        label="Instance",
        required=False,
        max_length=32,
        help_text="Its id, such as ins-k3v9x2qa. Empty: every instance.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false"}),
    )
    reason = forms.CharField(
        label="Reason",
        max_length=1000,
        help_text="It stays on record with your name, in the tenants' audit trails too.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )

    refusals: ClassVar = {"not_found": "instance"}

    def __init__(self, *args: Any, lines: Iterable[tuple[str, str]], **options: Any) -> None:
        """`lines`: a month and a cluster each; an empty name: whatever it waits for."""
        super().__init__(*args, **options)
        choices = [
            (f"{month} {cluster}".strip(), f"{month}, {cluster}" if cluster else month) for month, cluster in lines
        ]
        self.fields["month"].choices = choices  # type: ignore[attr-defined]


class InvoiceOfForm(ConsoleForm):
    """Which invoice of which organisation."""

    organisation = forms.CharField(
        label="Organisation",
        max_length=32,
        help_text="Its id, such as org-k3v9x2qa.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )
    invoice = forms.CharField(
        label="Invoice",
        max_length=32,
        help_text="Its number, such as inv-00000001.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )


class MoneyField(forms.DecimalField):
    """An amount in digits, as REST takes it: 1e3 is a thousand to Python, and a slip of whoever typed it."""

    def to_python(self, value: Any) -> Decimal | None:
        if isinstance(value, str) and "e" in value.casefold():
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class CreditNoteForm(ConsoleForm):
    """How much of an invoice is given back, and why. `left` is what the operator has seen: sent twice, it is refused."""

    amount = MoneyField(
        label="Amount",
        max_digits=24,
        decimal_places=2,
        min_value=Decimal("0.01"),
        widget=forms.TextInput({"autocomplete": "off", "inputmode": "decimal"}),
    )
    reason = forms.CharField(
        label="Reason",
        max_length=LONGEST_REASON,
        help_text="The tenant reads it, on the bill and on the credit note.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    left = forms.DecimalField(widget=forms.HiddenInput())


class PriceForm(InstanceSettingsForm):
    """Sizes, and a plan that prices them."""

    name = None  # type: ignore[assignment]  # so Django leaves out a field of the form before
    plan = forms.ChoiceField(label="Price plan")

    def __init__(self, *args: Any, plans: Iterable[Plan], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["plan"].choices = [(plan.name, worded(plan.title)) for plan in plans]  # type: ignore[attr-defined]
