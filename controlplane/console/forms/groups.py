"""Moving the offsets of a group."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm, OnceForm, partitions_typed
from controlplane.console.wording import worded
from controlplane.groups.moving import Strategy
from controlplane.groups.serializers import MOST_PARTITIONS, MOST_VALUE
from controlplane.kafka import groups

if TYPE_CHECKING:
    from collections.abc import Sequence

# Strategy: the field that its value stands in.
VALUES = {Strategy.TIMESTAMP: "time", Strategy.SHIFT: "shift", Strategy.OFFSET: "offset"}
LARGEST_PARTITION = 10**6


class GroupForm(ConsoleForm):
    """A group that is there before its consumers."""

    refusals: ClassVar = {"group_exists": "name", "topic_not_found": "topics", "partition_unavailable": "topics"}

    name = forms.CharField(
        label="Name",
        max_length=groups.MOST_NAME,
        strip=False,
        help_text="What its consumers have for their group.id.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}),
    )
    topics = forms.MultipleChoiceField(
        label="Topics",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one topic."},
    )

    def __init__(self, data: Any = None, *, topics: Sequence[str]) -> None:
        super().__init__(data)
        self.fields["topics"].choices = [(name, name) for name in topics]  # type: ignore[attr-defined]


class OffsetsForm(OnceForm):
    """`wanted()` is what the service takes."""

    refusals: ClassVar = {"topic_not_found": "topic"}

    strategy = forms.ChoiceField(
        label="Move to",
        choices=[
            (Strategy.EARLIEST, "The oldest record that is kept"),
            (Strategy.LATEST, "The end: skip everything that is there"),
            (Strategy.TIMESTAMP, "A time"),
            (Strategy.SHIFT, "A number of records forward or back"),
            (Strategy.OFFSET, "An offset"),
        ],
        initial=Strategy.EARLIEST,
        widget=forms.RadioSelect,
    )
    time = forms.DateTimeField(
        label="Time, UTC",
        required=False,
        help_text="The first record of this time or later; the end where there is none.",
        widget=forms.DateTimeInput({"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"),
    )
    shift = forms.IntegerField(
        label="Records",
        required=False,
        min_value=-MOST_VALUE,
        max_value=MOST_VALUE,
        help_text="100 skips a hundred records of each partition, -100 reads as many again.",
    )
    offset = forms.IntegerField(
        label="Offset", required=False, min_value=0, max_value=MOST_VALUE, help_text="The next that is read."
    )
    topic = forms.ChoiceField(label="Topic", required=False)
    partitions = forms.CharField(
        label="Partitions",
        required=False,
        max_length=2000,
        help_text="Of one topic, such as 0, 2, 5-7. Empty: all.",
        widget=forms.TextInput({"autocomplete": "off", "spellcheck": "false", "inputmode": "numeric"}),
    )

    def __init__(self, data: Any = None, *, topics: Sequence[str], others: Sequence[str] = ()) -> None:
        """`topics`: in which the group has offsets; `others`: the rest of the instance's."""
        super().__init__(data)
        if len(topics) == 1:  # all of them
            every = []
        elif topics:
            every = [("", worded("All of the group"))]
        else:
            every = [("", worded("None chosen"))]
        self.has_offsets = bool(topics)
        for name in VALUES.values():  # shown only while its strategy is chosen, and needed then
            self.fields[name].needed_by_choice = True  # type: ignore[attr-defined]
        self.fields["topic"].choices = [*every, *((topic, topic) for topic in (*topics, *others))]  # type: ignore[attr-defined]

    def clean_partitions(self) -> list[int] | None:
        """Numbers and ranges; None: all."""
        text = self.cleaned_data["partitions"].strip()
        if not text:
            return None
        return partitions_typed(text, most=MOST_PARTITIONS)

    def clean(self) -> dict[str, Any]:
        """What the choice needs is there."""
        needed = VALUES.get(self.cleaned_data.get("strategy"))  # type: ignore[arg-type]
        if needed and needed not in self.errors and self.cleaned_data.get(needed) is None:
            self.add_error(needed, "This is needed for this choice.")
        if self.cleaned_data.get("partitions") is not None and not self.cleaned_data.get("topic"):
            self.add_error("topic", "Choose the topic whose partitions these are.")
        elif not self.has_offsets and not self.cleaned_data.get("topic") and "topic" not in self.errors:
            self.add_error("topic", "Choose a topic: the group has no offset yet.")
        return self.cleaned_data

    def refuse(self, error: Any) -> None:
        """A value's refusal stands beside the field that it was typed in."""
        self.refusals = {**type(self).refusals, "value": VALUES.get(self.cleaned_data.get("strategy"), "strategy")}  # type: ignore[misc,arg-type]
        super().refuse(error)

    def wanted(self) -> dict[str, Any]:
        """What `offsets_reset` takes."""
        data = self.cleaned_data
        value = data[VALUES[data["strategy"]]] if data["strategy"] in VALUES else None
        if data["strategy"] == Strategy.TIMESTAMP:
            value = int(value.astimezone(UTC).timestamp() * 1000)
        return {
            "strategy": data["strategy"],
            "value": value,
            "topic": data["topic"] or None,
            "partitions": data["partitions"],
        }
