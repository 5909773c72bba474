"""Loads as JSON. What a load may be is judged in services.py; here are only shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.core.errors import Invalid
from controlplane.loads.destinations import LONGEST_PATH, Kind
from controlplane.loads.models import LoadRun, RunState
from controlplane.loads.ranges import LARGEST_OFFSET, MOST_PARTITIONS, Asked
from controlplane.loads.schedule import LEAST_MINUTES, MOST_MINUTES
from controlplane.loads.services import LONGEST_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.loads.models import Load

LONGEST_KEY, LONGEST_BUCKET, LONGEST_REGION, LONGEST_TOPIC = 200, 63, 32, 249
MOST_TIME, MOST_PARTITION = 2**53, 2**31 - 1
KINDS = [kind.value for kind in Kind]
REASONS = {
    2: "range_refused", 3: "another_topic", 4: "expired", 5: "shorter_topic", 6: "overtaken",
}  # fmt: skip
"""What the program's exit status means (`controlplane.lake.errors`), as a stable code; any other is `failed`."""
SCHEDULE = f"minutes between two runs, {LEAST_MINUTES} to {MOST_MINUTES}; null: only when asked for"
SKIPS = "go on behind records that expired before they were loaded, and note the gap; else such a run fails"


class LoadChangeSerializer(StrictSerializer):
    """PATCH: any of them."""

    not_empty = True

    every_minutes = StrictIntegerField(
        required=False, allow_null=True, min_value=LEAST_MINUTES, max_value=MOST_MINUTES, help_text=SCHEDULE
    )
    enabled = StrictBooleanField(required=False, help_text="whether the schedule runs it")
    skip_expired = StrictBooleanField(required=False, help_text=SKIPS)
    region = StrictCharField(required=False, max_length=LONGEST_REGION, help_text="of the bucket")
    access_key = StrictCharField(required=False, max_length=LONGEST_KEY, help_text="of the bucket; with its secret key")
    secret_key = StrictCharField(required=False, max_length=LONGEST_KEY, help_text="it is never shown again")


class LoadCreateSerializer(StrictSerializer):
    """POST. A bucket needs its members; a folder has none."""

    topic = StrictCharField(max_length=LONGEST_TOPIC)
    kind = serializers.ChoiceField(choices=KINDS, help_text="where to: a folder here, or your bucket")
    bucket = StrictCharField(required=False, max_length=LONGEST_BUCKET)
    path = StrictCharField(required=False, max_length=LONGEST_PATH, help_text="of the table in the bucket: lake/orders")
    region = StrictCharField(required=False, max_length=LONGEST_REGION, help_text="of the bucket; by default us-east-1")
    access_key = StrictCharField(required=False, max_length=LONGEST_KEY)
    secret_key = StrictCharField(required=False, max_length=LONGEST_KEY, help_text="it is never shown again")
    schema = StrictCharField(
        required=False,
        max_length=LONGEST_SCHEMA,
        help_text="of JSON values, for the column data: raw (none, the default), inferred, or Spark's DDL or JSON",
    )
    every_minutes = StrictIntegerField(
        required=False, allow_null=True, min_value=LEAST_MINUTES, max_value=MOST_MINUTES, help_text=SCHEDULE
    )
    skip_expired = StrictBooleanField(required=False, help_text=SKIPS)


class _RangeSerializer(StrictSerializer):
    """Offsets of a partition: from `first` to before `end`."""

    partition = StrictIntegerField(min_value=0, max_value=MOST_PARTITION)
    first = StrictIntegerField(min_value=0, max_value=LARGEST_OFFSET)
    end = StrictIntegerField(min_value=1, max_value=LARGEST_OFFSET)


class LoadRunCreateSerializer(StrictSerializer):
    """POST of a run: nothing, for what is new; or what to load again, in place of what the table has of it."""

    from_time_ms = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=0,
        max_value=MOST_TIME,
        help_text="from the first record as new as this",
    )
    offsets = serializers.ListField(
        child=_RangeSerializer(), required=False, max_length=MOST_PARTITIONS, help_text="one range a partition"
    )
    new_topic = StrictBooleanField(required=False, help_text="the topic was deleted and made again: load the new one")
    skip_expired = StrictBooleanField(required=False, help_text=SKIPS)


def asked_of(members: Mapping[str, Any]) -> Asked:
    """What a validated body asks for. Raises Invalid."""
    ranges = members.get("offsets") or []
    offsets = {each["partition"]: (each["first"], each["end"]) for each in ranges}
    if len(offsets) < len(ranges):
        raise Invalid.field("offsets", "one range for each partition")
    return Asked(
        members.get("from_time_ms"), offsets, members.get("new_topic", False), members.get("skip_expired", False)
    )


class LoadRunSerializer(serializers.Serializer[Any]):
    """A run, and how it went."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(choices=RunState.choices)
    asked_by = serializers.SerializerMethodField(help_text="null: the schedule")
    asked = serializers.DictField(help_text="what it was to load beyond what is new")
    asked_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    says = serializers.CharField(help_text="what is done now; in the end the summary, or why there is none")
    reason = serializers.SerializerMethodField(
        help_text=f"of one that failed: {', '.join(REASONS.values())}, failed; null: it did not"
    )
    topic_id = serializers.CharField()
    rows = serializers.IntegerField(source="row_count")
    bytes = serializers.IntegerField(source="byte_count", help_text="of keys and values")
    commits = serializers.IntegerField()
    problems = serializers.IntegerField(help_text="rows that do not fit the schema")
    gaps = serializers.ListField(child=serializers.CharField(), help_text="what had expired before it was loaded")

    def get_asked_by(self, run: LoadRun) -> str | None:
        return run.asked_by or None

    def get_reason(self, run: LoadRun) -> str | None:
        return reason_of(run)


def reason_of(run: LoadRun) -> str | None:
    """The code of a run that failed."""
    if run.state != RunState.FAILED:
        return None
    return REASONS.get(run.exit_status or 0, "failed")


class LoadSerializer(serializers.Serializer[Any]):
    """A load of a topic into a table."""

    id = serializers.CharField()
    topic = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    uri = serializers.CharField(help_text="the Delta Lake table")
    region = serializers.CharField(help_text="of the bucket; empty: a folder")
    access_key = serializers.CharField(help_text="of the bucket; empty: a folder")
    schema = serializers.CharField()
    every_minutes = serializers.IntegerField(allow_null=True, help_text=SCHEDULE)
    enabled = serializers.BooleanField()
    skip_expired = serializers.BooleanField()
    next_start_at = serializers.DateTimeField(allow_null=True)
    failures = serializers.IntegerField(help_text="runs in vain since the last that succeeded")
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()
    last_run = serializers.SerializerMethodField()

    @extend_schema_field(LoadRunSerializer(allow_null=True))
    def get_last_run(self, load: Load) -> dict[str, Any] | None:
        run = self.context["latest"].get(load.pk)
        return None if run is None else dict(LoadRunSerializer(run).data)


class LoadPageSerializer(serializers.Serializer[Any]):
    """A page of loads."""

    items = LoadSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class LoadRunPageSerializer(serializers.Serializer[Any]):
    """A page of runs, the newest first."""

    items = LoadRunSerializer(many=True)
    next = serializers.CharField(allow_null=True)
