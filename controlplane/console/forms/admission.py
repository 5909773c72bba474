"""What operators decide about room and caps."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

from django import forms

from controlplane.admission import rules
from controlplane.admission.selectors import Use
from controlplane.console.forms.base import ConsoleForm
from controlplane.console.wording import filled


def _reason() -> forms.CharField:
    return forms.CharField(
        label="Reason",
        max_length=1000,
        help_text="It stays on record with your name.",
        widget=forms.TextInput({"autocomplete": "off"}),
    )


def _number() -> forms.NumberInput:
    return forms.NumberInput({"min": "0", "step": "any", "inputmode": "decimal"})


class CapsForm(ConsoleForm):
    """What an organisation may have. An empty field is the default."""

    instances = forms.DecimalField(label="Instances", required=False, min_value=0, widget=_number())
    bandwidth_mib_per_s = forms.DecimalField(label="Bandwidth", required=False, min_value=0, widget=_number())
    storage_gib = forms.DecimalField(label="Storage", required=False, min_value=0, widget=_number())
    partitions = forms.DecimalField(label="Partitions", required=False, min_value=0, widget=_number())
    price_per_month = forms.DecimalField(label="Spend", required=False, min_value=0, widget=_number())
    reason = _reason()

    def __init__(self, data: Any = None, *, uses: list[Use], currency: str) -> None:
        self._now = {use.resource: Decimal(str(use.limit)) for use in uses}
        super().__init__(data, initial={name: rules.number(float(limit)) for name, limit in self._now.items()})
        for use in uses:
            default = rules.shown(use.resource, use.default, currency)
            self.fields[use.resource].help_text = filled("By default {default}; empty is the default.", default=default)

    @property
    def changes(self) -> dict[str, Decimal | None]:
        """What differs from what is in force."""
        found = {name: self.cleaned_data[name] for name in rules.ORGANISATION}
        return {name: value for name, value in found.items() if value is None or value != self._now[name]}


class RoomForm(ConsoleForm):
    """What each broker has of a resource."""

    resource = forms.ChoiceField(
        label="Resource",
        choices=[
            (name, " ".join(filter(None, [known.title.capitalize(), known.unit and f"({known.unit})"])))
            for name, known in rules.RESOURCES.items()
            if name in rules.DEFAULT_ROOM
        ],
    )
    per_broker = forms.FloatField(label="Of one broker", min_value=0, widget=_number())
    overcommit = forms.FloatField(
        label="Overcommit", help_text="How many times as much is sold. 1: no more than there is.", widget=_number()
    )
    reason = _reason()

    refusals: ClassVar = {}
