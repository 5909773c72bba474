"""What a topic holds, as JSON. Null is what is not known, and `unknown` says of what."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.topic_insights.figures import IMPOSSIBLE, PARTS
from controlplane.topic_insights.hints import CODES, LEVELS


class PartitionFiguresSerializer(serializers.Serializer[Any]):
    """One partition."""

    partition = serializers.IntegerField()
    leader = serializers.IntegerField(allow_null=True, help_text="broker id; null while there is none")
    replicas = serializers.ListField(child=serializers.IntegerField())
    isr = serializers.ListField(child=serializers.IntegerField(), help_text="in-sync replicas")
    first_offset = serializers.IntegerField(allow_null=True)
    end_offset = serializers.IntegerField(allow_null=True, help_text="of the record that comes next")
    records = serializers.IntegerField(
        allow_null=True,
        help_text="offsets between both: fewer records where the topic is compacted or has transactions",
    )
    bytes = serializers.IntegerField(allow_null=True, help_text="on its leader's disk")
    last_write_at = serializers.DateTimeField(allow_null=True, help_text="the largest timestamp of its records")
    last_write_problem = serializers.ChoiceField(
        choices=[(IMPOSSIBLE, IMPOSSIBLE)],
        allow_null=True,
        help_text="`impossible_time`: the largest timestamp is no moment of the calendar, so that `last_write_at` is null",
    )
    written_bytes_per_s = serializers.FloatField(
        allow_null=True,
        help_text="bytes as stored, on average over the last hour by the timestamps of its records; null: not known",
    )


class FlowSerializer(serializers.Serializer[Any]):
    """Bytes of records a second, as the meter counts them."""

    hour = serializers.DateTimeField(help_text="the beginning of the last full hour that is known")
    hour_produced_bytes_per_s = serializers.FloatField(help_text="on average in that hour")
    hour_consumed_bytes_per_s = serializers.FloatField()
    day_produced_bytes_per_s = serializers.FloatField(help_text="in the 24 hours up to its end")
    day_consumed_bytes_per_s = serializers.FloatField()
    age_s = serializers.IntegerField(help_text="seconds since that hour ended: so old the rates are")


class SkewSerializer(serializers.Serializer[Any]):
    """How unevenly it lies. 1 is an even share."""

    fullest_partition = serializers.IntegerField(allow_null=True)
    fullest = serializers.FloatField(
        allow_null=True, help_text="times an even share of the bytes that this partition has"
    )
    busiest_broker = serializers.IntegerField(allow_null=True)
    leaders = serializers.FloatField(
        allow_null=True, help_text="times an even share of the leaders that this broker has"
    )
    not_preferred = serializers.IntegerField(help_text="partitions that another than their first replica leads")
    hottest_partition = serializers.IntegerField(allow_null=True)
    hottest = serializers.FloatField(
        allow_null=True,
        help_text="times an even share of the bytes of the last hour that this partition took; "
        "null: not known, or nothing was written",
    )


class ReaderSerializer(serializers.Serializer[Any]):
    """A consumer group that has an offset in the topic, or a member that reads it."""

    group = serializers.CharField()
    state = serializers.CharField()
    members = serializers.IntegerField(help_text="that read some partition of the topic")
    lag = serializers.IntegerField(allow_null=True, help_text="records of this topic")
    lag_bytes = serializers.IntegerField(
        allow_null=True, help_text="the same in bytes as stored, about; null: not known of some partition"
    )
    lost = serializers.IntegerField(help_text="records that were deleted before the group read them")


class HintSerializer(serializers.Serializer[Any]):
    """What somebody might want to look at."""

    code = serializers.ChoiceField(choices=[(code, code) for code in CODES])
    level = serializers.ChoiceField(choices=[(level, level) for level in LEVELS])
    detail = serializers.CharField()


class TopicFiguresSerializer(serializers.Serializer[Any]):
    """What a topic holds, who reads it, and hints."""

    name = serializers.CharField(source="topic.name")
    bytes = serializers.IntegerField(allow_null=True, help_text="on the leaders' disks")
    stored_bytes = serializers.IntegerField(
        allow_null=True, help_text="of all replicas, as the instance's storage counts them"
    )
    records = serializers.IntegerField(allow_null=True, help_text="as of its partitions")
    last_write_at = serializers.DateTimeField(
        allow_null=True,
        help_text="the largest timestamp of its records: the producers' clock, unless the brokers stamp them",
    )
    last_write_problem = serializers.ChoiceField(
        choices=[(IMPOSSIBLE, IMPOSSIBLE)],
        allow_null=True,
        help_text="`impossible_time`: so it is in some partition, and `last_write_at` is of the others",
    )
    flow = FlowSerializer(allow_null=True)
    skew = SkewSerializer()
    groups = ReaderSerializer(source="readers", many=True, allow_null=True, help_text="of the first 300 groups")
    more_groups = serializers.IntegerField(
        help_text="groups of the instance beyond these 300, which were not looked at: they may read the topic as well"
    )
    hints = HintSerializer(many=True)
    partitions = PartitionFiguresSerializer(many=True)
    missing_brokers = serializers.ListField(child=serializers.IntegerField(), help_text="that did not say sizes")
    unknown = serializers.ListField(
        child=serializers.ChoiceField(choices=[(part, part) for part in PARTS]), help_text="what nobody could say now"
    )
