"""Usage, the records behind it, and the meter's state as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.metering.selectors import STATES


class UsageHourSerializer(serializers.Serializer[Any]):
    """What an instance used in one hour, UTC."""

    hour = serializers.CharField(help_text="the UTC hour's beginning, 2026-11-21T09:00:00Z")
    produced_bytes = serializers.IntegerField(help_text="record bytes written")
    consumed_bytes = serializers.IntegerField(help_text="record bytes read")
    stored_byte_hours = serializers.IntegerField(help_text="all replicas")
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

    broker = serializers.IntegerField()
    told_to = serializers.DateTimeField(allow_null=True, help_text="null: it has not said")
    said_at = serializers.DateTimeField(allow_null=True)
    gap_at = serializers.DateTimeField(
        allow_null=True,
        help_text="since when it does not see what it had counted before, such as on a disk that is missing",
    )
    away_since = serializers.DateTimeField(allow_null=True)
    waived = BrokerWaiverSerializer(allow_null=True)


class BrokerHoursPageSerializer(serializers.Serializer[Any]):
    """All brokers of the cluster that is metered."""

    items = BrokerHoursSerializer(many=True)


class BrokerWaiverRequestSerializer(serializers.Serializer[Any]):
    """Why."""

    reason = serializers.CharField(max_length=1000)
