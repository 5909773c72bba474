"""What the programs of *Connect* are written for."""

from __future__ import annotations

from typing import Any

from django import forms

from controlplane.console.forms.base import ConsoleForm
from controlplane.routes.validation import MECHANISMS
from quota.contracts.namespace import MAX_TENANT_TOPIC_LENGTH


class SnippetForm(ConsoleForm):
    """Where nothing is said, the service chooses."""

    topic = forms.CharField(
        label="Topic",
        required=False,
        max_length=MAX_TENANT_TOPIC_LENGTH,
        help_text="Left empty: the first by name.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    route = forms.ChoiceField(label="By route", required=False, choices=[("", "The oldest route")])
    mechanism = forms.ChoiceField(
        label="Log in by",
        required=False,
        choices=[("", "The strongest that the route has"), *((each, each) for each in MECHANISMS)],
    )

    def __init__(self, data: Any = None, *, routes: list[str]) -> None:
        super().__init__(data)
        field: Any = self.fields["route"]
        field.choices = [*field.choices, *((each, each) for each in routes)]
