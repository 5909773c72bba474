"""Loads as JSON. What a load may be is judged in services.py; here are only shapes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.core.errors import Invalid
from controlplane.loads import destinations, installed
from controlplane.loads.destinations import DEFAULT_REGION, LONGEST_PATH, Format, Kind
from controlplane.loads.models import (
    KeptTable,
    Load,
    LoadRun,
    RunState,
)  # as types as well: the schema reads them at run time
from controlplane.loads.ranges import LARGEST_OFFSET, MOST_PARTITIONS, Asked
from controlplane.loads.reading import reading
from controlplane.loads.schedule import LEAST_MINUTES, MOST_MINUTES
from controlplane.loads.services import LONGEST_SCHEMA, member_problems, place_problems

KINDS = [kind.value for kind in Kind]
LONGEST_KEY, LONGEST_BUCKET, LONGEST_REGION, LONGEST_TOPIC = 200, 63, 32, 249
MOST_TIME, MOST_PARTITION = 4_102_444_800_000, 2**31 - 1  # the year 2100
LONGEST_DESTINATION = 1000
FORMATS = [each.value for each in Format]
OF_KIND, OF_DESTINATION = ("kind", "bucket", "path"), ("format", "from", "to")
"""Members that only one form of POST has."""
MOMENT = "moment of records, RFC 3339 or milliseconds since 1970"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REASONS = {
    2: "request_refused", 3: "another_topic", 4: "expired", 5: "shorter_topic", 6: "overtaken", 8: "no_bucket",
    9: "schema_refused",
}  # fmt: skip
"""What the program's exit status means (`controlplane.lake.errors`), as a stable code; any other is `failed`."""
IDLE = "idle"
STATES = [IDLE, *RunState.values]
SCHEDULE = f"minutes between two runs, {LEAST_MINUTES} to {MOST_MINUTES}; null: only when asked for"
SKIPS = "go on behind records that expired before they were loaded, and note the gap; else such a run fails"


class _JudgedSerializer(StrictSerializer):
    """A body whose members are judged by the service's rules also where others have no shape: all is said at once."""

    def rules(self, members: Mapping[str, Any]) -> Mapping[str, str]:
        """What is wrong, by name. `members` are those that were sent, of which some may have no shape."""
        raise NotImplementedError

    def to_internal_value(self, data: Any) -> Any:
        """Raises ValidationError."""
        try:
            return super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(data, Mapping) or not isinstance(error.detail, dict):
                raise
            judged = {name: [sentence] for name, sentence in self.rules(data).items()}
            raise serializers.ValidationError({**judged, **error.detail}) from error


def _texts(members: Mapping[str, Any], *names: str, **otherwise: str) -> dict[str, str]:
    """Those that are texts; `otherwise`: of one that is not there."""
    given = {name: members.get(name, otherwise.get(name, "")) for name in names}
    return {name: value if isinstance(value, str) else "" for name, value in given.items()}


class LoadChangeSerializer(_JudgedSerializer):
    """PATCH: any of them."""

    not_empty = True
    fixed: ClassVar = dict.fromkeys(
        ("topic", "kind", "bucket", "path", "schema"), "cannot be changed; set up another load"
    )

    every_minutes = StrictIntegerField(
        required=False, allow_null=True, min_value=LEAST_MINUTES, max_value=MOST_MINUTES, help_text=SCHEDULE
    )
    enabled = StrictBooleanField(required=False, help_text="whether the schedule runs it")
    skip_expired = StrictBooleanField(required=False, help_text=SKIPS)
    region = StrictCharField(required=False, max_length=LONGEST_REGION, help_text="of the bucket")
    access_key = StrictCharField(required=False, max_length=LONGEST_KEY, help_text="of the bucket; with its secret key")
    secret_key = StrictCharField(required=False, max_length=LONGEST_KEY, help_text="it is never shown again")

    def rules(self, members: Mapping[str, Any]) -> Mapping[str, str]:
        """Of the key's members those that were sent."""
        found = destinations.problems(bucket="", path="", **_texts(members, "region", "access_key", "secret_key"))
        return {name: sentence for name, sentence in found.items() if name in members and name not in self.fixed}


MOMENT_SHAPE: dict[str, Any] = {
    "oneOf": [{"type": "string", "format": "date-time"}, {"type": "integer", "minimum": 0, "maximum": MOST_TIME}]
}


@extend_schema_field(MOMENT_SHAPE)
class MomentField(serializers.Field):  # type: ignore[type-arg]
    """A moment: RFC 3339 (UTC where no zone is said), or milliseconds since 1970. Read as the latter."""

    def to_internal_value(self, data: Any) -> int:
        """Raises ValidationError."""
        found: int = data if isinstance(data, int) and not isinstance(data, bool) else self._read(data)
        if not 0 <= found <= MOST_TIME:
            raise serializers.ValidationError("must be between 1970 and 2100")
        return found

    @staticmethod
    def _read(data: Any) -> int:
        try:
            moment = datetime.fromisoformat(data)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return (moment - EPOCH) // timedelta(milliseconds=1)
        except (TypeError, ValueError, OverflowError) as error:
            raise serializers.ValidationError(
                "must be a moment, such as 2026-11-01T00:00:00Z, or milliseconds since 1970"
            ) from error


class LoadCreateSerializer(_JudgedSerializer):
    """POST, in one of two forms: `destination`, which loads at once; or `kind`, which sets up what is asked for or scheduled."""

    topic = StrictCharField(max_length=LONGEST_TOPIC)
    destination = StrictCharField(
        required=False,
        max_length=LONGEST_DESTINATION,
        help_text="in place of `kind`, `bucket` and `path`: s3://bucket/path, or folder: for a folder of the service. The load "
        "has a folder of its own below it, which `uri` names",
    )
    format = serializers.ChoiceField(
        choices=FORMATS,
        required=False,
        help_text="with `destination`: delta (the default), or parquet: files alone, in which nothing is ever replaced",
    )
    kind = serializers.ChoiceField(
        choices=KINDS, required=False, help_text="where to: a folder here, or your bucket; in place of `destination`"
    )
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

    def get_fields(self) -> dict[str, Any]:
        """With `from`, which is no name in Python, and `to`."""
        begins = MomentField(
            source="begins_ms",
            required=False,
            allow_null=True,
            help_text=f"with `destination`: {MOMENT}; null: its beginning",
        )
        ends = MomentField(
            source="ends_ms",
            required=False,
            allow_null=True,
            help_text=f"with `destination`: before this {MOMENT}; null: its present end",
        )
        return {**super().get_fields(), "from": begins, "to": ends}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """It is one of the two forms."""
        if problems := self._forms(self.initial_data):
            raise serializers.ValidationError(problems)
        return attrs

    @staticmethod
    def _forms(members: Mapping[str, Any]) -> dict[str, str]:
        """What is of the one form in the other."""
        if "destination" in members:
            return {
                name: "goes with another form of this call: `destination` says it"
                for name in OF_KIND
                if name in members
            }
        if "kind" not in members:
            return {"kind": "say `destination`, or `kind`"}
        return {name: "goes with `destination`, not with `kind`" for name in OF_DESTINATION if name in members}

    def rules(self, members: Mapping[str, Any]) -> Mapping[str, str]:
        """Of place, topic and schema."""
        said = _texts(members, "topic", "kind", "schema", schema="raw")
        found = self._forms(members) | member_problems(topic=said["topic"], schema=said["schema"])
        if "destination" not in members and said["kind"] in KINDS and installed.kinds():
            place = _texts(members, "bucket", "path", "region", "access_key", "secret_key", region=DEFAULT_REGION)
            found |= place_problems(said["kind"], **place)
        return found


class LoadDeleteSerializer(StrictSerializer):
    """What of the query says what becomes of the table."""

    table = serializers.ChoiceField(
        choices=["keep", "remove"],
        default="keep",
        help_text="the table in the folders of the service: it is kept, and counts as a load (see lake-tables), or removed."
        " A copy in a bucket stays in any case",
    )


class KeptTableSerializer(serializers.ModelSerializer[KeptTable]):
    """The table of a load that was deleted."""

    bytes = serializers.IntegerField(
        source="byte_count", allow_null=True, help_text="of all its files; null: not counted yet"
    )

    class Meta:
        """No address: nobody reads it there."""

        model = KeptTable
        fields = ("id", "topic", "bytes", "deleted_at", "deleted_by")
        extra_kwargs: ClassVar = {"id": {"help_text": "of the load"}}


class KeptTablePageSerializer(serializers.Serializer[Any]):
    """A page of tables of deleted loads."""

    items = KeptTableSerializer(many=True)
    next = serializers.CharField(allow_null=True)


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


class LoadedPartitionSerializer(serializers.Serializer[Any]):
    """What was loaded of one partition."""

    partition = serializers.IntegerField()
    first_offset = serializers.IntegerField()
    last_offset = serializers.IntegerField(help_text="the last that was read; offsets between may hold no record")
    count = serializers.IntegerField(help_text="records")
    checksum = serializers.CharField(
        help_text="of these records: 16 hexadecimal digits, the sum modulo 2^64 of the first 8 bytes of each one's SHA-256, by "
        "which anybody can compare them with the topic. Hashed are a record's key, value, headers, time, partition and offset"
    )


def loaded_of(run: LoadRun | None) -> list[dict[str, Any]]:
    """By partition; nothing where there is no run, or it has not ended."""
    rows = {} if run is None else run.partitions
    return [
        {
            "partition": int(partition),
            "first_offset": each["first"],
            "last_offset": each["end"] - 1,
            "count": each["rows"],
            "checksum": each["checksum"],
        }
        for partition, each in sorted(rows.items(), key=lambda row: int(row[0]))
    ]


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
    partitions = serializers.SerializerMethodField(help_text="what it has loaded of each that had something new")

    @extend_schema_field(LoadedPartitionSerializer(many=True))
    def get_partitions(self, run: LoadRun) -> list[dict[str, Any]]:
        return loaded_of(run)

    def get_asked_by(self, run: LoadRun) -> str | None:
        return run.asked_by or None

    def get_reason(self, run: LoadRun) -> str | None:
        return reason_of(run)


def reason_of(run: LoadRun) -> str | None:
    """The code of a run that failed."""
    if run.state != RunState.FAILED:
        return None
    return REASONS.get(run.exit_status or 0, "failed")


class ReadingSerializer(serializers.Serializer[Any]):
    """How a tenant reads the table of a load."""

    how = serializers.CharField(help_text="who can read it, and where else")
    spark = serializers.CharField(help_text="with PySpark; empty: it can only be read by the service")
    python = serializers.CharField(help_text="with the package deltalake; empty: likewise")


class LoadSerializer(serializers.Serializer[Any]):
    """A load of a topic into a table."""

    id = serializers.CharField()
    state = serializers.SerializerMethodField(help_text=f"of its last run; {IDLE}: nobody has asked for one yet")
    rows = serializers.SerializerMethodField(help_text="that its last run has loaded")
    bytes = serializers.SerializerMethodField(help_text="of keys and values, of its last run")
    partitions = serializers.SerializerMethodField(
        help_text="what its last run has loaded of each that had something new"
    )
    topic = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    format = serializers.ChoiceField(choices=FORMATS)
    uri = serializers.CharField(
        help_text="the Delta Lake table: its address in your bucket, or in the service's folders"
    )
    reading = serializers.SerializerMethodField(help_text="how to read the table, and with what")
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

    def _last(self, load: Load) -> LoadRun | None:
        found: LoadRun | None = self.context["latest"].get(load.pk)
        return found

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, load: Load) -> str:
        run = self._last(load)
        return IDLE if run is None else run.state

    def get_rows(self, load: Load) -> int:
        run = self._last(load)
        return 0 if run is None else run.row_count

    def get_bytes(self, load: Load) -> int:
        run = self._last(load)
        return 0 if run is None else run.byte_count

    @extend_schema_field(LoadedPartitionSerializer(many=True))
    def get_partitions(self, load: Load) -> list[dict[str, Any]]:
        return loaded_of(self._last(load))

    @extend_schema_field(ReadingSerializer)
    def get_reading(self, load: Load) -> dict[str, Any]:
        found = reading(load.kind, load.uri, load.region, installed.buckets(), load.format)
        return dict(ReadingSerializer(found).data)

    @extend_schema_field(LoadRunSerializer(allow_null=True))
    def get_last_run(self, load: Load) -> dict[str, Any] | None:
        run = self._last(load)
        return None if run is None else dict(LoadRunSerializer(run).data)


class LoadBegunSerializer(LoadSerializer):
    """A load that loads at once."""

    operation_id = serializers.CharField(help_text="it has ended when the first run has")


class LoadPageSerializer(serializers.Serializer[Any]):
    """A page of loads."""

    items = LoadSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class LoadRunPageSerializer(serializers.Serializer[Any]):
    """A page of runs, the newest first."""

    items = LoadRunSerializer(many=True)
    next = serializers.CharField(allow_null=True)
