"""Which messages are shown; a test message; up to where records are deleted."""

from __future__ import annotations

import base64
import re
from datetime import UTC
from enum import StrEnum
from typing import Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm, OnceForm, partitions_typed
from controlplane.console.forms.instances import DeletionForm
from controlplane.messages.cursors import MOST_OFFSET
from controlplane.messages.looking import Filter, Position
from controlplane.messages.selectors import Start, Wanted
from controlplane.messages.serializers import MOST_DELETED, MOST_KEY, MOST_PARTITION, MOST_TEXT
from controlplane.messages.services import TO_THE_END

OFFSET, TIME = "offset", "timestamp"
ROWS = (20, 50, 200)
"""Messages of a page, and of the file that is made of it."""
ALL = "all"
PLAIN = {"autocomplete": "off", "spellcheck": "false"}
LONGEST_VALUE = 700_000
"""Characters; a form has 2.5 MiB at most, in which many are written as three."""


class Written(StrEnum):
    """How bytes are typed."""

    TEXT = "text"
    HEX = "hex"
    BASE64 = "base64"


WAYS = [(Written.TEXT, "Text"), (Written.HEX, "Hex"), (Written.BASE64, "Base64")]


def bytes_written(text: str, how: str) -> bytes:
    """What is meant by it; spaces within hex and base64 count for nothing. Raises ValidationError."""
    if how in {"", Written.TEXT}:
        return text.encode()
    try:
        together = "".join(text.split())
        return bytes.fromhex(together) if how == Written.HEX else base64.b64decode(together.encode(), validate=True)
    except ValueError as error:
        said = "This is no hex: two digits for each byte." if how == Written.HEX else "This is no base64."
        raise forms.ValidationError(said) from error


class MessagesForm(ConsoleForm):
    """A filter. What is empty takes anything."""

    refusals: ClassVar = {
        "offset_out_of_range": "offset",
        "timestamp_ms": "time",
        "contains": "text",
        "key_contains": "key_part",
    }

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
    key_as = forms.ChoiceField(label="Key is written as", choices=WAYS, required=False)
    key_part = forms.CharField(
        label="Key contains", required=False, max_length=MOST_TEXT, strip=False, widget=forms.TextInput(PLAIN)
    )
    header = forms.CharField(
        label="Header",
        required=False,
        max_length=MOST_TEXT,
        strip=False,
        widget=forms.TextInput({**PLAIN, "placeholder": "name=text"}),
    )
    text = forms.CharField(  # not `contains`: a form whose input has that name has no such method any more
        label="Value contains", required=False, max_length=MOST_TEXT, strip=False, widget=forms.TextInput(PLAIN)
    )
    rows = forms.ChoiceField(label="Messages a page", choices=[(str(each), str(each)) for each in ROWS], required=False)

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
        self._key: bytes | None = None
        if data.get("key"):
            try:
                self._key = bytes_written(data["key"], data.get("key_as", ""))
            except forms.ValidationError as error:
                self.add_error("key", error)
        return data

    @property
    def limit(self) -> int:
        """Messages of a page."""
        return int(self.cleaned_data["rows"] or ROWS[0])

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
        return Filter(
            key=self._key,
            text=data["text"].encode() if data["text"] else None,
            key_part=data["key_part"].encode() if data["key_part"] else None,
            header=data["header"] or None,
        )


class TestMessageForm(OnceForm):
    """Text, as UTF-8, or other bytes in hex or base64."""

    __test__ = False  # to pytest it looks like a test

    refusals: ClassVar = {
        "message_too_large": "value",
        "invalid_record": "key",
        "invalid_timestamp": "time",
        "timestamp_ms": "time",
    }

    key = forms.CharField(label="Key", required=False, max_length=MOST_KEY, strip=False, widget=forms.TextInput(PLAIN))
    key_as = forms.ChoiceField(label="Key is written as", choices=WAYS, required=False)
    key_is_empty = forms.BooleanField(label="An empty key, instead of none (null)", required=False)
    value = forms.CharField(
        label="Value",
        required=False,
        max_length=LONGEST_VALUE,
        strip=False,
        widget=forms.Textarea({"rows": 8, "class": "mono", **PLAIN}),
    )
    value_as = forms.ChoiceField(label="Value is written as", choices=WAYS, required=False)
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
    time = forms.DateTimeField(
        label="Time, UTC",
        required=False,
        help_text="Empty: now.",
        widget=forms.DateTimeInput({"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"),
    )

    def clean_time(self) -> int | None:
        """In ms since 1970."""
        at = self.cleaned_data["time"]
        if at is None:
            return None
        found = int(at.astimezone(UTC).timestamp() * 1000)
        if found < 0:
            raise forms.ValidationError("1970 at the earliest.")
        return found

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
        """Either a value or none; either a key or an empty one."""
        data = self.cleaned_data
        if data.get("tombstone") and data.get("value"):
            self.add_error("value", "Leave this empty, or untick “No value”.")
        if data.get("key_is_empty") and data.get("key"):
            self.add_error("key", "Leave this empty, or untick “An empty key”.")
        self._bytes = {name: self._bytes_of(name) for name in ("key", "value")}
        return data

    def _bytes_of(self, name: str) -> bytes:
        try:
            text = self.cleaned_data.get(name, "").replace("\r\n", "\n")
            return bytes_written(text, self.cleaned_data.get(f"{name}_as", ""))
        except forms.ValidationError as error:
            self.add_error(name, error)
            return b""

    def message(self) -> dict[str, Any]:
        """What `message_produce` takes."""
        data = self.cleaned_data
        return {
            "key": self._bytes["key"] if data["key"] or data["key_is_empty"] else None,
            "value": None if data["tombstone"] else self._bytes["value"],
            "headers": data["headers"],
            "partition": data["partition"],
            "timestamp_ms": data["time"],
        }


class RecordsDeletionForm(DeletionForm):
    """Partitions, up to where records go in them, and the topic's name."""

    refusals: ClassVar = {
        "offset_out_of_range": "before",
        "partition_unavailable": "partitions",
        "partition": "partitions",
        "topic_compacted": "__all__",
    }

    partitions = forms.CharField(
        label="Partitions",
        required=False,
        max_length=2000,
        help_text="Such as 0, 2, 5-7.",
        widget=forms.TextInput({**PLAIN, "inputmode": "numeric"}),
    )
    before = forms.IntegerField(
        label="Before offset",
        required=False,
        min_value=0,
        max_value=MOST_OFFSET,
        help_text="The first that stays, in each of them.",
    )
    everything = forms.BooleanField(label="Everything that is there, instead of an offset", required=False)
    own = forms.CharField(
        label="Partitions with an offset of their own",
        required=False,
        max_length=4000,
        help_text="One a line, such as 3: 1200, or 3: all for everything that is there.",
        widget=forms.Textarea({"rows": 3, "class": "mono", **PLAIN}),
    )
    field_order = ("partitions", "before", "everything", "own", "confirmation")

    def __init__(self, *args: Any, name: str, is_preview: bool, **options: Any) -> None:
        super().__init__(*args, name=name, **options)
        self.fields["confirmation"].required = not is_preview
        self._is_preview = is_preview

    def clean_partitions(self) -> list[int]:
        """Numbers and ranges."""
        typed = self.cleaned_data["partitions"]
        return partitions_typed(typed, most=MOST_DELETED) if typed.strip() else []

    def clean_own(self) -> dict[int, int]:
        """By partition."""
        found: dict[int, int] = {}
        for line in self.cleaned_data["own"].splitlines():
            if not line.strip():
                continue
            match = re.fullmatch(rf"\s*([0-9]{{1,7}})\s*:\s*([0-9]{{1,19}}|{ALL})\s*", line)
            if match is None or (match[2] != ALL and int(match[2]) > MOST_OFFSET):
                raise forms.ValidationError(f"“{line[:40]}” is no partition: offset.")
            partition = int(match[1])
            if partition in found:
                raise forms.ValidationError(f"Partition {partition} is named twice.")
            found[partition] = TO_THE_END if match[2] == ALL else int(match[2])
        return found

    def clean(self) -> dict[str, Any]:
        """Each partition is named once, and it is said up to where its records go."""
        data = super().clean() or self.cleaned_data
        if self.errors.keys() & {"partitions", "before", "own"}:
            return data
        partitions, before, own = data["partitions"], data["before"], data["own"]
        if not partitions and not own:
            self.add_error("partitions", "Name at least one.")
        if partitions and data["everything"] and before is not None:
            self.add_error("before", "Leave this empty, or untick “Everything that is there”.")
        if partitions and not data["everything"] and before is None:
            self.add_error("before", "Say an offset, or tick “Everything that is there”.")
        for partition in sorted(own.keys() & set(partitions))[:1]:
            self.add_error("own", f"Partition {partition} is named twice.")
        if len(own.keys() | set(partitions)) > MOST_DELETED:
            self.add_error("own", f"At most {MOST_DELETED} at once.")
        return data

    def clean_confirmation(self) -> str:
        """The name is typed for the deletion, not to look at what it would do."""
        return "" if self._is_preview else super().clean_confirmation()

    def offsets(self) -> dict[int, int]:
        """What `records_delete` takes."""
        data = self.cleaned_data
        own: dict[int, int] = data["own"]
        return dict.fromkeys(data["partitions"], TO_THE_END if data["everything"] else data["before"]) | own
