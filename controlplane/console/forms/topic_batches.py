"""The same configurations for several topics, and what is written about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm, GuardedForm
from controlplane.console.wording import worded
from controlplane.topics.notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.forms import BoundField

    from controlplane.topics.notes import Note

LINES = 3
"""Configurations in one change; REST takes more."""
LONGEST_VALUE = 1000


class TopicsConfigureForm(ConsoleForm):
    """Topics, and lines of a configuration and its value. `changes` is what the service takes."""

    refusals: ClassVar = {"config": "key_1", "invalid_config": "value_1"}

    topics = forms.MultipleChoiceField(
        label="Topics",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one topic."},
    )

    def __init__(self, data: Any = None, *, topics: Sequence[str], settable: Sequence[str], **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["topics"].choices = [(name, name) for name in topics]  # type: ignore[attr-defined]
        choices = [("", worded("None chosen")), *((name, name) for name in settable)]
        for line in range(1, LINES + 1):
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

    @property
    def lines(self) -> list[tuple[BoundField, BoundField]]:
        """As a template draws them."""
        return [(self[f"key_{line}"], self[f"value_{line}"]) for line in range(1, LINES + 1)]

    @property
    def changes(self) -> dict[str, str | None]:
        """By configuration; None takes one back to its default."""
        data = self.cleaned_data
        chosen = [(data[f"key_{line}"], data[f"value_{line}"].strip()) for line in range(1, LINES + 1)]
        return {key: value or None for key, value in chosen if key}

    def clean(self) -> dict[str, Any]:
        """Each configuration once, and no value without one."""
        seen: set[str] = set()
        for line in range(1, LINES + 1):
            key, value = self.cleaned_data.get(f"key_{line}"), self.cleaned_data.get(f"value_{line}")
            if key and key in seen:
                self.add_error(f"key_{line}", "This one is chosen already.")
            if value and not key and f"key_{line}" not in self.errors:
                self.add_error(f"key_{line}", "Say which configuration has this value.")
            if value and not value.isprintable():
                self.add_error(f"value_{line}", "It must hold printable characters only.")
            seen.add(key or "")
        return self.cleaned_data


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
