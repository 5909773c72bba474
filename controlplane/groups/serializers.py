"""Groups as JSON. Times are seconds, offsets and lags are records; null is what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.groups.judging import MOST_TOPICS
from controlplane.groups.moving import Strategy
from controlplane.kafka import groups

if TYPE_CHECKING:
    from controlplane.kafka.group_door import Member

MOST_PARTITIONS = 3000
MOST_VALUE = 2**62
"""Of an offset, a time in ms, or a shift either way: an offset and a shift together are still Kafka's int64."""


class GroupPartitionsSerializer(serializers.Serializer[Any]):
    """Partitions of one topic."""

    topic = serializers.CharField()
    partitions = serializers.ListField(child=serializers.IntegerField())


class MemberSerializer(serializers.Serializer[Any]):
    """A consumer of a group."""

    id = serializers.CharField()
    client_id = serializers.CharField()
    group_instance_id = serializers.CharField(
        allow_null=True, help_text="of a static member, as its consumer is configured; null: it is none, or not known"
    )
    host = serializers.CharField(help_text="its address")
    partitions = serializers.SerializerMethodField(help_text="what it reads now")

    @extend_schema_field(GroupPartitionsSerializer(many=True))
    def get_partitions(self, member: Member) -> list[dict[str, object]]:
        """By topic."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in member.partitions:
            by_topic.setdefault(topic, []).append(partition)
        return [{"topic": topic, "partitions": partitions} for topic, partitions in by_topic.items()]


class RateField(serializers.FloatField):
    """Records a second of a pace, to three digits; null where there is none."""

    def __init__(self, which: str, **options: Any) -> None:
        super().__init__(source="pace", allow_null=True, read_only=True, **options)
        self.which = which

    def to_representation(self, value: Any) -> float:
        """Of the pace."""
        return round(float(getattr(value, self.which)), 3)


class PartitionLagSerializer(serializers.Serializer[Any]):
    """A partition that the group has an offset in, or that a member reads."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()
    offset = serializers.IntegerField(allow_null=True, help_text="the next to be read; null: none was committed")
    start_offset = serializers.IntegerField(allow_null=True, help_text="of the oldest record that is kept")
    end_offset = serializers.IntegerField(allow_null=True)
    lag_messages = serializers.IntegerField(allow_null=True, help_text="from the later of offset and start to the end")
    lag_bytes = serializers.IntegerField(allow_null=True, help_text="the same in bytes, as stored")
    lag_seconds = serializers.FloatField(
        allow_null=True, help_text="age of the oldest record that is still to be read, by its timestamp"
    )
    lag_seconds_unknown = serializers.CharField(source="unknown", help_text="why lag_seconds is null; empty otherwise")
    expired_messages = serializers.IntegerField(source="expired", help_text="deleted before the group read them")
    client_id = serializers.CharField(allow_null=True, help_text="of the member that reads it now")
    consume_rate_per_s = RateField("consumed_per_s", help_text="records a second; null: see the group's")
    produce_rate_per_s = RateField("produced_per_s", help_text="the same of what is written")
    drain_seconds = serializers.FloatField(
        allow_null=True, help_text="until nothing is left in it at these rates; null: not known, or not at these rates"
    )


class GroupSummarySerializer(serializers.Serializer[Any]):
    """A group in a list."""

    name = serializers.CharField()
    state = serializers.CharField(
        help_text="Kafka's: Stable, Empty, PreparingRebalance, CompletingRebalance, Dead; Unknown: nobody answers"
    )
    protocol = serializers.CharField(help_text="how partitions are assigned, such as range; empty without members")
    members = MemberSerializer(many=True, source="known_members", allow_null=True, help_text="null: not known")
    lag_messages = serializers.IntegerField(
        allow_null=True, help_text="records that can still be read, of all partitions; null: no offset is committed"
    )
    lag_bytes = serializers.IntegerField(
        allow_null=True,
        help_text="the same in bytes of whole batches as they are stored: exact to the batch for what brokers have in memory, "
        "estimated within a log segment for what only their disks have; null: not known of some partition",
    )
    lag_seconds = serializers.FloatField(
        allow_null=True,
        help_text="age of its oldest unread record at lag_seconds_at, or 0: it has read all; null: not known",
    )
    lag_seconds_at = serializers.DateTimeField(
        allow_null=True,
        help_text="the newest minute of the history, of which lag_seconds is; null: it is of this moment, or not known",
    )
    partitions = PartitionLagSerializer(
        many=True, source="known_partitions", allow_null=True, help_text="null: its coordinator does not answer"
    )
    known = serializers.BooleanField(
        source="is_known", help_text="false: its coordinator does not answer, and all of its figures are null"
    )


class GroupSerializer(GroupSummarySerializer):
    """A group."""

    known = None  # it is, where a group is asked for alone
    lag_seconds_at = None  # as all the rest: at this moment
    members = MemberSerializer(many=True)
    partitions = PartitionLagSerializer(many=True)
    lag_seconds = serializers.FloatField(
        allow_null=True, help_text="the largest of the partitions' that are known; null: none is"
    )
    consume_rate_per_s = RateField(
        "consumed_per_s",
        help_text="records a second between an earlier look in the last 90 s and this one; null: there was none",
    )
    produce_rate_per_s = RateField("produced_per_s", help_text="of the partitions it reads; null as above")
    drain_seconds = serializers.FloatField(
        allow_null=True,
        help_text="until it has caught up at these rates or, without an earlier look, as its lag has changed since the newest "
        "minute of its history; null: not known, or never",
    )


class GroupPageSerializer(serializers.Serializer[Any]):
    """A page of groups."""

    items = GroupSummarySerializer(many=True)
    next = serializers.CharField(allow_null=True)
    missing_brokers = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="that do not name their groups now: of those only what the history knew a minute ago is here, without figures",
    )


class GroupCreateSerializer(StrictSerializer):
    """POST of groups."""

    name = StrictCharField(max_length=groups.MOST_NAME, trim_whitespace=False)
    topics = serializers.ListField(
        child=StrictCharField(max_length=1000),
        min_length=1,
        max_length=MOST_TOPICS,
        help_text="which it is to read from now on: it has the present end of each of their partitions for its offset",
    )


class OffsetsResetSerializer(StrictSerializer):
    """POST of a group's offsets."""

    strategy = serializers.ChoiceField(choices=[strategy.value for strategy in Strategy])
    value = StrictIntegerField(
        required=False,
        allow_null=True,
        min_value=-MOST_VALUE,
        max_value=MOST_VALUE,
        help_text="of timestamp: ms since 1970; of shift: records, negative is back; of offset: the offset. Else null",
    )
    topic = StrictCharField(
        required=False, allow_null=True, max_length=1000, help_text="null: each topic that the group has an offset in"
    )
    partitions = serializers.ListField(
        child=StrictIntegerField(min_value=0, max_value=2**31 - 1),
        required=False,
        allow_null=True,
        min_length=1,
        max_length=MOST_PARTITIONS,
        help_text="of the topic; null: all",
    )
    dry_run = StrictBooleanField(default=False, help_text="true: only say what would be moved; members may live")


class MoveSerializer(serializers.Serializer[Any]):
    """What becomes of one partition's offset."""

    topic = serializers.CharField()
    partition = serializers.IntegerField()
    to = serializers.IntegerField(source="after")
    read_again = serializers.IntegerField(source="again", help_text="records that the group reads once more")
    skipped = serializers.IntegerField(help_text="records that it never reads")
    clamped = serializers.BooleanField(help_text="the offset asked for is not kept: this is the nearest")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """With `from`, which is no name in Python."""
        before = serializers.IntegerField(source="before", allow_null=True, help_text="null: none was committed")
        return {"from": before, **super().get_fields()}


class ResetSerializer(serializers.Serializer[Any]):
    """Where offsets were moved, or would be."""

    partitions = MoveSerializer(source="moves", many=True)
    read_again = serializers.IntegerField(source="again")
    skipped = serializers.IntegerField()


GROUP_EXAMPLE = OpenApiExample(
    "a group that is 1,200 records behind",
    value={
        "name": "billing",
        "state": "Stable",
        "protocol": "range",
        "members": [
            {
                "id": "billing-1-6b1f…",
                "client_id": "billing-1",
                "group_instance_id": None,
                "host": "10.0.0.7",
                "partitions": [{"topic": "orders", "partitions": [0]}],
            }
        ],
        "lag_messages": 1200,
        "lag_bytes": 240000,
        "lag_seconds": 4.2,
        "consume_rate_per_s": 600.0,
        "produce_rate_per_s": 300.0,
        "drain_seconds": 4.0,
        "partitions": [
            {
                "topic": "orders",
                "partition": 0,
                "offset": 8800,
                "start_offset": 0,
                "end_offset": 10000,
                "lag_messages": 1200,
                "lag_bytes": 240000,
                "lag_seconds": 4.2,
                "lag_seconds_unknown": "",
                "expired_messages": 0,
                "client_id": "billing-1",
                "consume_rate_per_s": 600.0,
                "produce_rate_per_s": 300.0,
                "drain_seconds": 4.0,
            }
        ],
    },
    response_only=True,
)
RESET_EXAMPLES = [
    OpenApiExample(
        "read an hour again, as a preview",
        value={"topic": "orders", "strategy": "timestamp", "value": 1767225600000, "partitions": None, "dry_run": True},
        request_only=True,
    ),
    OpenApiExample(
        "skip 100 records of one partition",
        value={"topic": "orders", "strategy": "shift", "value": 100, "partitions": [0]},
        request_only=True,
    ),
    OpenApiExample(
        "what is moved",
        value={
            "partitions": [
                {
                    "from": 8800,
                    "topic": "orders",
                    "partition": 0,
                    "to": 8900,
                    "read_again": 0,
                    "skipped": 100,
                    "clamped": False,
                }
            ],
            "read_again": 0,
            "skipped": 100,
        },
        response_only=True,
    ),
]
