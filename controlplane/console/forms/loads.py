"""Loads into a lake: set up, changed, run with more than what is new."""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms

from controlplane.console.forms.base import ConsoleForm, OnceForm, ruled
from controlplane.loads.destinations import DEFAULT_REGION, LONGEST_PATH, Kind
from controlplane.loads.ranges import MOST_PARTITIONS, Asked
from controlplane.loads.schedule import LEAST_MINUTES, MOST_MINUTES
from controlplane.loads.serializers import LONGEST_BUCKET, LONGEST_KEY, LONGEST_REGION
from controlplane.loads.services import LONGEST_SCHEMA
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controlplane.loads.models import Load

RAW, INFERRED, OWN = "raw", "inferred", "own"
NEEDED = "This is needed for this choice."
LONGEST_RANGES = 64 * MOST_PARTITIONS
_RANGE = re.compile(r"(\d{1,10}):(\d{1,19})-(\d{1,19})", re.ASCII)


def _plain(**attributes: str) -> forms.TextInput:
    return forms.TextInput({"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", **attributes})


def _secret(**options: Any) -> forms.CharField:
    return forms.CharField(
        label="Secret key",
        strip=False,
        required=False,
        max_length=LONGEST_KEY,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        **options,
    )


def _schedule() -> forms.IntegerField:
    return forms.IntegerField(
        label="Run every",
        required=False,
        min_value=LEAST_MINUTES,
        max_value=MOST_MINUTES,
        help_text="Empty: only when somebody asks for a run.",
    )


def _skip_expired(label: str = "Skip what has expired") -> forms.BooleanField:
    return forms.BooleanField(
        label=label,
        required=False,
        help_text="A run goes on behind records that expired before they were loaded, and notes the gap. Otherwise it fails.",
    )


class LoadForm(OnceForm):
    """A new load."""

    refusals: ClassVar = {"loads_off": "kind"}

    topic = forms.ChoiceField(label="Topic")
    kind = forms.ChoiceField(
        label="Into",
        choices=[(Kind.FOLDER.value, "A folder of this service"), (Kind.BUCKET.value, "A bucket of your own (S3)")],
        widget=forms.RadioSelect,
        help_text="Only the service reads its folders, to show messages that have expired. A table in a bucket is read by"
        " programs of your own.",
    )
    bucket = forms.CharField(label="Bucket", required=False, max_length=LONGEST_BUCKET, widget=_plain())
    path = forms.CharField(
        label="Folder in the bucket",
        required=False,
        max_length=LONGEST_PATH,
        help_text="Of this table alone, such as lake/orders.",
        widget=_plain(),
    )
    region = forms.CharField(
        label="Region", required=False, max_length=LONGEST_REGION, initial=DEFAULT_REGION, widget=_plain()
    )
    access_key = forms.CharField(label="Access key", required=False, max_length=LONGEST_KEY, widget=_plain())
    secret_key = _secret(help_text="It is kept encrypted, and never shown again.")
    schema = forms.ChoiceField(
        label="Schema of JSON values",
        choices=[
            (RAW, "None: keys and values as they are"),
            (INFERRED, "Inferred from the first records"),
            (OWN, "My own"),
        ],
        initial=RAW,
        help_text="With a schema the table has a column with typed members. The first run fixes it.",
    )
    own_schema = forms.CharField(
        label="Own schema",
        required=False,
        max_length=LONGEST_SCHEMA,
        help_text="As Spark writes it, in DDL or JSON: id BIGINT, customer STRING",
        widget=forms.Textarea(
            {"rows": 4, "class": "mono", "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        ),
    )
    every_minutes = _schedule()
    skip_expired = _skip_expired()

    def __init__(self, data: Any = None, *, topics: Sequence[str], kinds: Sequence[Kind]) -> None:
        """`topics`: to choose from; none where they are not known, or too many: then a name is typed."""
        super().__init__(data, initial={"kind": kinds[0].value} if kinds else None)
        if topics:
            self.fields["topic"].choices = [(name, name) for name in topics]  # type: ignore[attr-defined]
        else:
            named = forms.CharField(label=self.fields["topic"].label, max_length=1000, widget=_plain())
            named.validators.append(ruled(topic_name_problem))
            self.fields["topic"] = named
        offered = [choice for choice in self.fields["kind"].choices if choice[0] in kinds]  # type: ignore[attr-defined]
        self.fields["kind"].choices = offered  # type: ignore[attr-defined]
        for name in ("bucket", "path", "region", "access_key", "secret_key", "own_schema"):
            self.fields[name].needed_by_choice = True  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """What a choice needs is there, all of it said at once; whether a bucket can be one is the service's to judge."""
        cleaned = super().clean() or {}
        if cleaned.get("schema") == OWN and not cleaned.get("own_schema") and "own_schema" not in self.errors:
            self.add_error("own_schema", NEEDED)
        if cleaned.get("kind") == Kind.BUCKET:
            for name in ("bucket", "path", "region", "access_key", "secret_key"):
                if not cleaned.get(name) and name not in self.errors:
                    self.add_error(name, NEEDED)
        return cleaned

    def wanted(self) -> dict[str, Any]:
        """What `load_create` takes."""
        data = self.cleaned_data
        into = {"kind": data["kind"]}
        if data["kind"] == Kind.BUCKET:
            into |= {name: data[name] for name in ("bucket", "path", "region", "access_key", "secret_key")}
        return {
            "topic": data["topic"],
            **into,
            "schema": data["own_schema"] if data["schema"] == OWN else data["schema"],
            "every_minutes": data["every_minutes"],
            "skip_expired": data["skip_expired"],
        }

    def refuse(self, error: Any) -> None:
        """A refused schema stands beside the field in which it was typed."""
        own = {"schema": "own_schema"} if self.cleaned_data.get("schema") == OWN else {}
        self.refusals = {**type(self).refusals, **own}  # type: ignore[misc]
        super().refuse(error)


class LoadChangeForm(ConsoleForm):
    """Another schedule; of a bucket another key as well."""

    every_minutes = _schedule()
    enabled = forms.BooleanField(label="The schedule is switched on", required=False)
    skip_expired = _skip_expired()
    region = forms.CharField(label="Region", max_length=LONGEST_REGION, widget=_plain())
    access_key = forms.CharField(label="Access key", max_length=LONGEST_KEY, widget=_plain())
    secret_key = _secret(help_text="Empty: the present one stays. Another access key needs its own.")

    def __init__(self, data: Any = None, *, load: Load) -> None:
        names = ("every_minutes", "enabled", "skip_expired", "region", "access_key")
        self.load = load
        super().__init__(data, initial={name: getattr(load, name) for name in names})
        for name in () if load.kind == Kind.BUCKET else ("region", "access_key", "secret_key"):
            del self.fields[name]
        if load.every_minutes is None:  # there is no schedule to switch off; one that is given now is on
            del self.fields["enabled"]

    def wanted(self) -> dict[str, Any]:
        """What `load_update` takes: of the bucket's members those that are others now."""
        data = self.cleaned_data
        changes = {name: data.get(name, True) for name in ("every_minutes", "enabled", "skip_expired")}
        for name in ("region", "access_key"):
            if name in data and data[name] != getattr(self.load, name):
                changes[name] = data[name]
        return changes | ({"secret_key": data["secret_key"]} if data.get("secret_key") else {})


class LoadRunForm(ConsoleForm):
    """A run of more than what is new."""

    from_time = forms.DateTimeField(
        label="Again from this time, UTC",
        required=False,
        help_text="From the first record that is as new as this. What the table has from there on is replaced.",
        widget=forms.DateTimeInput({"type": "datetime-local", "step": "1"}, format="%Y-%m-%dT%H:%M:%S"),
    )
    offsets = forms.CharField(
        label="These offsets again",
        required=False,
        max_length=LONGEST_RANGES,
        help_text="One partition a line: 0:100-200 are the offsets 100 to 199 of partition 0.",
        widget=forms.Textarea(
            {"rows": 3, "class": "mono", "spellcheck": "false", "autocomplete": "off", "autocapitalize": "off"}
        ),
    )
    new_topic = forms.BooleanField(
        label="New topic",
        required=False,
        help_text="The topic was deleted and made again: load the new one, from its beginning.",
    )
    skip_expired = _skip_expired("Skip what has expired, in this run")

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="run_%s")

    def clean_offsets(self) -> dict[int, tuple[int, int]]:
        """By partition."""
        found: dict[int, tuple[int, int]] = {}
        for part in filter(None, re.split(r"[\s,;]+", self.cleaned_data["offsets"])):
            match = _RANGE.fullmatch(part)
            if match is None:
                raise forms.ValidationError(f"“{part}” is no range of offsets, such as 0:100-200.")
            partition, first, end = map(int, match.groups())
            if partition in found:
                raise forms.ValidationError(f"Partition {partition} is named twice.")
            found[partition] = (first, end)
        return found

    def wanted(self) -> Asked:
        """What `load_run` takes."""
        data = self.cleaned_data
        moment = data["from_time"]
        from_time_ms = None if moment is None else int(moment.astimezone(UTC).timestamp() * 1000)
        return Asked(from_time_ms, data["offsets"], data["new_topic"], data["skip_expired"])

    def refuse(self, error: Any) -> None:
        """A time and offsets have names of their own here."""
        self.refusals = {"from_time_ms": "from_time"}  # type: ignore[misc]
        super().refuse(error)
