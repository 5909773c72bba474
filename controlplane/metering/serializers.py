"""Usage, the records behind it, the meter's state and the jobs of the pipeline as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.metering.selectors import STATES, moment_of
from quota.contracts.usage import COUNTERS

LARGEST = 2**63 - 1
LAST_TRUE = "since the boot: the last value that can be true"


class UsageHourSerializer(serializers.Serializer[Any]):
    """What an instance used in one hour, UTC."""

    hour = serializers.CharField(help_text="the UTC hour's beginning, 2026-11-21T09:00:00Z")
    produced_bytes = serializers.IntegerField(help_text="record bytes written")
    consumed_bytes = serializers.IntegerField(help_text="record bytes read")
    stored_byte_hours = serializers.IntegerField(help_text="all replicas")
    wire_in_bytes = serializers.IntegerField(
        allow_null=True,
        help_text="all that came by the sockets of its clients, as on the wire; null: not counted, as the four below",
    )
    wire_out_bytes = serializers.IntegerField(allow_null=True, help_text="all that went")
    requests = serializers.IntegerField(allow_null=True)
    loop_ms = serializers.FloatField(allow_null=True, help_text="time of the brokers' loops that was spent for it")
    throttled_ms = serializers.IntegerField(
        allow_null=True, help_text="in which somebody waited for a limit, by direction and broker, added up"
    )
    so_far = serializers.BooleanField(help_text="the hour is not over")
    records = serializers.CharField(help_text="path of the usage records behind this row")


class UsagePageSerializer(serializers.Serializer[Any]):
    """Hours of usage, a page at a time."""

    items = UsageHourSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class UsageRecordSerializer(serializers.Serializer[Any]):
    """One broker's share of an hour, with the record of `__usage` that its counters were read from."""

    hour = serializers.CharField()
    topic = serializers.CharField()
    broker = serializers.IntegerField()
    boot = serializers.CharField(help_text="of the broker: counters begin at 0 with each")
    produced_bytes = serializers.IntegerField(help_text="in this hour")
    consumed_bytes = serializers.IntegerField(help_text="in this hour")
    stored_byte_seconds = serializers.IntegerField(help_text="in this hour")
    produced_bytes_since_boot = serializers.IntegerField()
    consumed_bytes_since_boot = serializers.IntegerField()
    stored_byte_seconds_since_boot = serializers.IntegerField()
    partition = serializers.IntegerField(help_text="of the topic __usage")
    offset = serializers.IntegerField()


class UsageRecordPageSerializer(serializers.Serializer[Any]):
    """Records behind the usage, a page at a time."""

    items = UsageRecordSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    away = serializers.CharField(
        allow_blank=True,
        help_text="where records behind the first of these hours are, if not here; empty: all are here",
    )


class FoldSerializer(serializers.Serializer[Any]):
    """Days that are over: sums by instance and hour, and by topic and day, in place of a row for each topic, boot and hour."""

    folded_to = serializers.DateTimeField(allow_null=True, help_text="days before are folded; null: none is")
    reason = serializers.CharField(allow_blank=True, help_text="why the next day is not; empty: none is due")
    looked_at = serializers.DateTimeField(allow_null=True)
    kept = serializers.IntegerField(allow_null=True, help_text="rows by topic or instance, boot and hour")
    counted_at = serializers.DateTimeField(allow_null=True, help_text="when they were counted")
    is_sweeping = serializers.BooleanField(help_text="rows of folded days are still to be deleted")


class MeteringStatusSerializer(serializers.Serializer[Any]):
    """Whether the meter works, and up to when usage is complete."""

    state = serializers.ChoiceField(
        choices=list(STATES), help_text="; ".join(f"{state}: {meaning}" for state, meaning in STATES.items())
    )
    reason = serializers.CharField(allow_blank=True)
    complete_to = serializers.DateTimeField(
        allow_null=True, help_text="all that brokers had told before this moment is counted; null: not known yet"
    )
    last_record_at = serializers.DateTimeField(allow_null=True, help_text="time of the newest usage record seen")
    final_to = serializers.DateTimeField(
        allow_null=True,
        help_text="hours that ended up to then do not change any more: every broker has told all of them; null: not known",
    )


class BrokerWaiverSerializer(serializers.Serializer[Any]):
    """Usage does not wait for a broker, by an operator's word."""

    hour = serializers.CharField(help_text="up to this one; later ones as long as the broker is away")
    waited_for = serializers.CharField(help_text="what the broker had told then")
    reason = serializers.CharField()
    at = serializers.DateTimeField()
    by = serializers.CharField()


class BrokerHoursSerializer(serializers.Serializer[Any]):
    """Up to when a broker has told all that it counted."""

    cluster = serializers.CharField()
    broker = serializers.IntegerField(help_text="its id within the cluster")
    told_to = serializers.DateTimeField(allow_null=True, help_text="null: it has not said")
    said_at = serializers.DateTimeField(allow_null=True)
    gap_at = serializers.DateTimeField(
        allow_null=True,
        help_text="since when it does not see what it had counted before, such as on a disk that is missing",
    )
    boots = serializers.ListField(
        child=serializers.CharField(),
        help_text="whose hours are not told in full: those that it does not see any more, else the one that spoke last "
        "and those that have told usage since",
    )
    away_since = serializers.DateTimeField(allow_null=True)
    waived = BrokerWaiverSerializer(allow_null=True)


class BrokerHoursPageSerializer(serializers.Serializer[Any]):
    """All brokers of all clusters."""

    items = BrokerHoursSerializer(many=True)


class BrokerWaiverRequestSerializer(serializers.Serializer[Any]):
    """Why."""

    reason = serializers.CharField(max_length=1000)


class UsageCapSerializer(serializers.Serializer[Any]):
    """Counters of a topic on a broker's boot that are believed up to these values only."""

    id = serializers.IntegerField()
    instance_id = serializers.CharField(source="instance")
    boot = serializers.CharField(help_text="as in usage records, with its generation")
    topic = serializers.CharField(help_text="as the tenant calls it")
    produced_bytes = serializers.IntegerField(
        allow_null=True, help_text="since the boot; null, as of the others: no cap"
    )
    consumed_bytes = serializers.IntegerField(allow_null=True)
    stored_byte_seconds = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    set_at = serializers.DateTimeField()
    set_by = serializers.CharField()


class UsageCapPageSerializer(serializers.Serializer[Any]):
    """A page of caps, the last set first."""

    items = UsageCapSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class UsageCapRequestSerializer(StrictSerializer):
    """What can not be true, and why. Counters that are left out have no cap afterwards."""

    instance_id = StrictCharField(max_length=32)
    boot = StrictCharField(max_length=64, help_text="as in usage records, with its generation")
    topic = StrictCharField(max_length=249, help_text="as the tenant calls it")
    produced_bytes = StrictIntegerField(required=False, min_value=0, max_value=LARGEST, help_text=LAST_TRUE)
    consumed_bytes = StrictIntegerField(required=False, min_value=0, max_value=LARGEST, help_text=LAST_TRUE)
    stored_byte_seconds = StrictIntegerField(required=False, min_value=0, max_value=LARGEST, help_text=LAST_TRUE)
    reason = StrictCharField(max_length=1000, help_text="it is kept, and in the organisation's audit trail")


class LossSerializer(serializers.Serializer[Any]):
    """Records of usage that were gone before they were read. Usage may be missing until somebody has judged it."""

    id = serializers.IntegerField()
    cluster = serializers.CharField()
    detail = serializers.CharField(source="sentence", help_text="what is missing")
    partition = serializers.IntegerField(help_text="of `__usage`; -1: the whole topic")
    start_offset = serializers.IntegerField()
    end_offset = serializers.IntegerField(help_text="not included")
    found_at = serializers.SerializerMethodField()
    settled_at = serializers.DateTimeField(allow_null=True, help_text="null: usage waits for it")
    settled_by = serializers.CharField(help_text="empty: nobody has")

    @extend_schema_field(OpenApiTypes.DATETIME)
    def get_found_at(self, loss: Any) -> datetime:
        """When the meter noticed."""
        return moment_of(loss.found_at_ms)


class LossPageSerializer(serializers.Serializer[Any]):
    """Losses, a page at a time."""

    items = LossSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class ReconciliationSerializer(serializers.Serializer[Any]):
    """Hours that were recomputed from the raw records, and compared with the database and with invoices."""

    id = serializers.IntegerField()
    hours_from = serializers.CharField(source="start_hour")
    hours_to = serializers.CharField(source="end_hour", help_text="not included")
    at = serializers.SerializerMethodField()
    compared = serializers.IntegerField(
        help_text="hours of a topic on a broker's boot, and hours of invoices; 0: there are no raw records of these hours"
    )
    different = serializers.IntegerField(help_text="counters that were not the same")
    raised = serializers.IntegerField(help_text="rows that were put into the database again, where that was asked for")
    gone = serializers.ListField(
        child=serializers.CharField(),
        help_text="clusters that were left out: their raw records are not there. Days in which they have usage stay due",
    )
    begins_later = serializers.ListField(
        child=serializers.CharField(),
        help_text="clusters that were left out for good: their raw records begin after these hours",
    )

    @extend_schema_field({"type": "string", "format": "date-time"})
    def get_at(self, row: Any) -> str:
        """When."""
        return moment_of(row.at_ms).isoformat().replace("+00:00", "Z")


class ReconciliationPageSerializer(serializers.Serializer[Any]):
    """Runs, the newest first, a page at a time."""

    items = ReconciliationSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class UsageDifferenceSerializer(serializers.Serializer[Any]):
    """A counter that is not what the raw records say."""

    reconciliation = serializers.IntegerField(source="reconciliation_id")
    against = serializers.ChoiceField(
        choices=["database", "invoices"],
        help_text="invoices: what they were computed from, with the adjustments so far; late usage differs until the next one",
    )
    instance_id = serializers.CharField(source="instance")
    hour = serializers.CharField()
    boot = serializers.CharField(help_text="empty: all")
    topic = serializers.CharField(help_text="empty: all")
    counter = serializers.ChoiceField(choices=list(COUNTERS))
    recomputed = serializers.CharField(help_text="a whole number")
    known = serializers.CharField(help_text="a whole number")


class UsageDifferencePageSerializer(serializers.Serializer[Any]):
    """Of each run at most 1,000, a page at a time; the last run's first."""

    items = UsageDifferenceSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class JobRunSerializer(serializers.Serializer[Any]):
    """A run of a job of the pipeline."""

    id = serializers.IntegerField()
    job = serializers.CharField()
    what = serializers.CharField(help_text="a day; empty: whatever was due")
    state = serializers.ChoiceField(
        choices=["waiting", "running", "succeeded", "failed", "died"],
        help_text="waiting: for the runner to start it; died: it gives no sign of life",
    )
    asked_by = serializers.CharField(help_text="empty: the schedule, or whoever starts programs")
    asked_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    duration_s = serializers.FloatField(allow_null=True, help_text="so far, where it runs")
    rows = serializers.IntegerField(help_text="that it has written")
    done_to = serializers.DateTimeField(
        allow_null=True, help_text="up to when the job had done its work then; null: not known, or nothing to do"
    )
    reason = serializers.CharField(help_text="why it failed")


class JobSerializer(serializers.Serializer[Any]):
    """A job of the pipeline as it is now."""

    name = serializers.CharField()
    title = serializers.CharField(source="job.title")
    does = serializers.CharField(source="job.does")
    kind = serializers.SerializerMethodField()
    last = JobRunSerializer(allow_null=True)
    done_to = serializers.DateTimeField(allow_null=True)
    lag_s = serializers.FloatField(
        allow_null=True, help_text="a stream is behind now, a daily job behind the last midnight; null: not known"
    )
    next_at = serializers.DateTimeField(allow_null=True, help_text="null: it runs, or nobody starts it by a schedule")
    failures = serializers.IntegerField(
        help_text="since it succeeded last, among the last 20 runs; of a stream that runs none"
    )
    waiting = serializers.IntegerField(help_text="runs that were asked for and have not begun")

    @extend_schema_field({"type": "string", "enum": ["stream", "daily"]})
    def get_kind(self, row: Any) -> str:
        """Whether it ends."""
        return "daily" if row.job.is_daily else "stream"


class JobPageSerializer(serializers.Serializer[Any]):
    """All jobs."""

    items = JobSerializer(many=True)


class JobRunPageSerializer(serializers.Serializer[Any]):
    """Runs, the newest first, a page at a time."""

    items = JobRunSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class JobRunRequestSerializer(StrictSerializer):
    """What is to be run."""

    what = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=10,
        help_text="one of the last 14 days, UTC, 2026-11-21; empty: whatever is due",
    )
