"""Fields that several forms share, and the way a service's refusal gets beside its field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.advice import said, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.core.errors import SluiceError


class ConsoleForm(forms.Form):
    """`refusals` says beside which field a code stands; what is in none of them stands above the form."""

    refusals: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, **options: Any) -> None:
        options.setdefault("label_suffix", "")
        super().__init__(*args, **options)

    def refuse(self, error: SluiceError) -> None:
        """Put a service's refusal where the person can see what to mend."""
        placed = False
        for problem in error.errors:
            name, _, index = problem.field.partition(".")
            name = self.refusals.get(name, name)
            if name in self.fields:
                line = f"Line {int(index) + 1}: " if index.isdigit() else ""
                self.add_error(name, line + (problem.detail if line else sentence(problem.detail)))
                placed = True
        if not placed:
            self.add_error(self.refusals.get(error.code), said(error))


class CidrsField(forms.CharField):
    """Blocks one a line (commas and spaces do as well), as a list of strings. Whether they are blocks, services say."""

    widget = forms.Textarea

    def __init__(self, **options: Any) -> None:
        options.setdefault("required", False)
        options.setdefault("max_length", 40_000)
        super().__init__(**options)
        self.widget.attrs |= {"rows": 5, "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        self.widget.attrs["class"] = "mono"

    def clean(self, value: Any) -> list[str]:
        """The entries in the order given."""
        text = super().clean(value)
        return [entry for entry in re.split(r"[\s,;]+", text) if entry]

    def prepare_value(self, value: Any) -> Any:
        """A list one entry a line."""
        return "\n".join(value) if isinstance(value, list | tuple) else value
