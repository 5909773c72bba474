"""Which messages are shown; a test message; up to where records are deleted."""

from __future__ import annotations

from datetime import UTC
from typing import Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm
from controlplane.console.forms.instances import DeletionForm
from controlplane.messages.cursors import MOST_OFFSET
from controlplane.messages.looking import Filter, Position
from controlplane.messages.selectors import Start, Wanted
from controlplane.messages.serializers import MOST_KEY, MOST_PARTITION, MOST_TEXT
from controlplane.messages.services import TO_THE_END

OFFSET, TIME = "offset", "timestamp"
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
LONGEST_VALUE = 700_000
"""Characters; a form has 2.5 MiB at most, in which many are written as three."""


class MessagesForm(ConsoleForm):
    """A filter. What is empty takes anything."""

    refusals: ClassVar = {"offset_out_of_range": "offset", "timestamp_ms": "time", "contains": "text"}

    partition = forms.IntegerField(
        label="Partition",
        required=False,
        min_value=0,
        max_value=MOST_PARTITION,
        widget=forms.NumberInput({"placeholder": "all"}),
    )
    begin = forms.ChoiceField(
        label="From",
        choices=[
            (Start.NEWEST.value, "The newest"),
            (Start.OLDEST.value, "The oldest"),
            (OFFSET, "An offset"),
            (TIME, "A time"),
        ],
        required=False,
    )
    offset = forms.IntegerField(label="Offset", required=False, min_value=0, max_value=MOST_OFFSET)
    time = forms.DateTimeField(
        label="Time, UTC",
        required=False,
        widget=forms.DateTimeInput({"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"),
    )
    key = forms.CharField(
        label="Key is", required=False, max_length=MOST_KEY, strip=False, widget=forms.TextInput(PLAIN)
    )
    text = forms.CharField(  # not `contains`: a form whose input has that name has no such method any more
        label="Value contains", required=False, max_length=MOST_TEXT, strip=False, widget=forms.TextInput(PLAIN)
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in ("offset", "time"):  # shown only while it is chosen, and needed then
            self.fields[name].needed_by_choice = True  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """What the choice needs is there."""
        data = self.cleaned_data
        for choice, name in ((OFFSET, "offset"), (TIME, "time")):
            if data.get("begin") == choice and name not in self.errors and data.get(name) is None:
                self.add_error(name, "This is needed for this choice.")
        if data.get("begin") == OFFSET and data.get("partition") is None and "partition" not in self.errors:
            self.add_error("partition", "Offsets are of one partition: name it.")
        return data

    def wanted(self, position: Position | None, limit: int) -> Wanted:
        """As the selector takes it."""
        data = self.cleaned_data
        begin, time = data["begin"] or Start.NEWEST.value, data["time"]
        return Wanted(
            partition=data["partition"],
            start=Start.OLDEST if begin == Start.OLDEST else Start.NEWEST,
            offset=data["offset"] if begin == OFFSET else None,
            timestamp_ms=max(0, int(time.astimezone(UTC).timestamp() * 1000)) if begin == TIME else None,
            position=position,
            filter=self.filter(),
            limit=limit,
        )

    def filter(self) -> Filter:
        """What has to fit."""
        data = self.cleaned_data
        return Filter(data["key"].encode() if data["key"] else None, data["text"].encode() if data["text"] else None)


class TestMessageForm(ConsoleForm):
    """Text, as UTF-8. Other bytes are for REST."""

    __test__ = False  # to pytest it looks like a test

    refusals: ClassVar = {"message_too_large": "value", "invalid_record": "key"}

    key = forms.CharField(label="Key", required=False, max_length=MOST_KEY, strip=False, widget=forms.TextInput(PLAIN))
    value = forms.CharField(
        label="Value",
        required=False,
        max_length=LONGEST_VALUE,
        strip=False,
        widget=forms.Textarea({"rows": 8, "class": "mono", **PLAIN}),
    )
    tombstone = forms.BooleanField(label="No value (null): says that the key is deleted", required=False)
    headers = forms.CharField(
        label="Headers",
        required=False,
        max_length=10_000,
        help_text="One a line: name: value.",
        widget=forms.Textarea({"rows": 2, "class": "mono", **PLAIN}),
    )
    partition = forms.IntegerField(
        label="Partition",
        required=False,
        min_value=0,
        max_value=MOST_PARTITION,
        help_text="Empty: by the key, as producers choose.",
    )

    def clean_headers(self) -> list[tuple[str, bytes | None]]:
        """Pairs."""
        found: list[tuple[str, bytes | None]] = []
        for line in self.cleaned_data["headers"].splitlines():
            if line.strip():
                name, colon, text = line.partition(":")
                if not colon or not name.strip() or "\0" in name:
                    raise forms.ValidationError(f"“{line[:40]}” is no name: value.")
                found.append((name.strip(), text.strip().encode()))
        return found

    def clean(self) -> dict[str, Any]:
        """Either a value or none."""
        if self.cleaned_data.get("tombstone") and self.cleaned_data.get("value"):
            self.add_error("value", "Leave this empty, or untick “No value”.")
        return self.cleaned_data

    def message(self) -> dict[str, Any]:
        """What `message_produce` takes."""
        data = self.cleaned_data
        return {
            "key": data["key"].encode() if data["key"] else None,
            "value": None if data["tombstone"] else data["value"].replace("\r\n", "\n").encode(),
            "headers": data["headers"],
            "partition": data["partition"],
        }


class RecordsDeletionForm(DeletionForm):
    """One partition, an offset, and the topic's name."""

    refusals: ClassVar = {"offset_out_of_range": "before", "partition_unavailable": "partition"}

    partition = forms.IntegerField(label="Partition", min_value=0, max_value=MOST_PARTITION)
    before = forms.IntegerField(
        label="Before offset",
        min_value=TO_THE_END,
        max_value=MOST_OFFSET,
        help_text=f"The first that stays. {TO_THE_END}: everything that is there.",
    )
    field_order = ("partition", "before", "confirmation")

    def __init__(self, *args: Any, name: str, is_preview: bool, **options: Any) -> None:
        super().__init__(*args, name=name, **options)
        self.fields["confirmation"].required = not is_preview
        self._is_preview = is_preview

    def clean_confirmation(self) -> str:
        """The name is typed for the deletion, not to look at what it would do."""
        return "" if self._is_preview else super().clean_confirmation()

    def offsets(self) -> dict[int, int]:
        """What `records_delete` takes."""
        return {self.cleaned_data["partition"]: self.cleaned_data["before"]}
