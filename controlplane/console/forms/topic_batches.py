"""The same configurations for several topics, and what is written about one."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm, GuardedForm
from controlplane.console.wording import worded
from controlplane.topics.notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.forms import BoundField

    from controlplane.topics.notes import Note

LINES, MOST_LINES = 3, 24
"""Configurations that the page begins with, and that one change has at most: about as many as a topic has."""
LONGEST_VALUE = 1000
UNITS: Mapping[str, tuple[str, int]] = {
    "minutes": (".ms", 60_000),
    "hours": (".ms", 3_600_000),
    "days": (".ms", 86_400_000),
    "KiB": (".bytes", 2**10),
    "MiB": (".bytes", 2**20),
    "GiB": (".bytes", 2**30),
}
"""How names of configurations end that can be given in a unit, and how many of their own units it is."""
UNLIMITED = "-1"
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,6})?", re.ASCII)


def lines_asked(data: Mapping[str, str]) -> int:
    """How many lines a form that was sent has, with those that another press of the button adds."""
    sent = next((line for line in range(MOST_LINES, LINES, -1) if f"key_{line}" in data), LINES)
    return min(MOST_LINES, sent + LINES) if "more" in data else sent


class TopicsConfigureForm(ConsoleForm):
    """Topics, and lines of a configuration, its value and the value's unit. `changes` is what the service takes."""

    refusals: ClassVar = {"config": "key_1", "invalid_config": "value_1"}

    topics = forms.MultipleChoiceField(
        label="Topics",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one topic."},
    )

    def __init__(
        self, data: Any = None, *, topics: Sequence[str], settable: Sequence[str], lines: int = LINES, **options: Any
    ) -> None:
        super().__init__(data, **options)
        self.numbers = range(1, lines + 1)
        self.fields["topics"].choices = [(name, name) for name in topics]  # type: ignore[attr-defined]
        choices = [("", worded("None chosen")), *((name, name) for name in settable)]
        units = [("", worded("as in the name: ms, bytes")), *((unit, worded(unit)) for unit in UNITS)]
        for line in self.numbers:
            self.fields[f"key_{line}"] = forms.ChoiceField(
                label=worded("Configuration"), choices=choices, required=line == 1
            )
            self.fields[f"value_{line}"] = forms.CharField(
                label=worded("New value"),
                required=False,
                max_length=LONGEST_VALUE,
                help_text=worded("Empty: back to the default."),
                widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
            )
            self.fields[f"unit_{line}"] = forms.ChoiceField(label=worded("Unit"), choices=units, required=False)

    @property
    def lines(self) -> list[tuple[BoundField, ...]]:
        """As a template draws them."""
        return [tuple(self[f"{part}_{line}"] for part in ("key", "value", "unit")) for line in self.numbers]

    @property
    def can_grow(self) -> bool:
        """Whether there may be more lines."""
        return len(self.numbers) < MOST_LINES

    @property
    def changes(self) -> dict[str, str | None]:
        """By configuration; None takes one back to its default."""
        data = self.cleaned_data
        chosen = [(data[f"key_{line}"], data[f"value_{line}"].strip()) for line in self.numbers]
        return {key: value or None for key, value in chosen if key}

    def clean(self) -> dict[str, Any]:
        """Each configuration once, and no value without one."""
        seen: set[str] = set()
        for line in self.numbers:
            key, value = self.cleaned_data.get(f"key_{line}"), self.cleaned_data.get(f"value_{line}")
            if key and key in seen:
                self.add_error(f"key_{line}", "This one is chosen already.")
            if value and not key and f"key_{line}" not in self.errors:
                self.add_error(f"key_{line}", "Say which configuration has this value.")
            if value and not value.isprintable():
                self.add_error(f"value_{line}", "It must hold printable characters only.")
            seen.add(key or "")
            self._count(line, key or "", (value or "").strip(), self.cleaned_data.get(f"unit_{line}") or "")
        return self.cleaned_data

    def _count(self, line: int, key: str, value: str, unit: str) -> None:
        """A value in a unit becomes one as Kafka counts; -1, which is no limit, is that in every unit."""
        if not unit or not key or value in ("", UNLIMITED):
            return
        ending, size = UNITS[unit]
        if not key.endswith(ending):
            self.add_error(f"unit_{line}", "This configuration is not in this unit.")
        elif not _NUMBER.fullmatch(value):
            self.add_error(f"value_{line}", "A number is wanted where a unit is chosen.")
        elif (amount := Decimal(value) * size) % 1:
            self.add_error(f"value_{line}", "That is no whole number of the smallest unit.")
        else:
            self.cleaned_data[f"value_{line}"] = str(int(amount))


class TopicNoteForm(GuardedForm):
    """What is written about a topic."""

    note = forms.CharField(
        label="Note",
        required=False,
        max_length=LONGEST_NOTE,
        help_text="What the topic is for, who owns it, what to know before changing it.",
        widget=forms.Textarea({"rows": 6}),
    )
    tags = forms.CharField(
        label="Tags",
        required=False,
        max_length=MOST_TAGS * (LONGEST_TAG + 2),
        help_text="Up to 10, with commas between them.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )

    def __init__(self, data: Any = None, *, note: Note) -> None:
        now = {"note": note.text, "tags": list(note.tags)}
        super().__init__(data, now=now, initial={"note": note.text, "tags": ", ".join(note.tags)})

    @property
    def changes(self) -> dict[str, Any]:
        """What is to be otherwise, as `topic_note_set` takes it."""
        return self.changed({name: self.cleaned_data[name] for name in ("note", "tags")})

    def clean_note(self) -> str:
        """With the line ends that a note is kept with: browsers send others."""
        return str(self.cleaned_data["note"].replace("\r\n", "\n"))

    def clean_tags(self) -> list[str]:
        """Without spaces around them, each once."""
        found = (tag.strip() for tag in self.cleaned_data["tags"].split(","))
        return list(dict.fromkeys(tag for tag in found if tag))

    def entry(self, _name: str, index: int) -> str:
        """A tag is no line."""
        return f"Tag {index + 1}"
