"""Policies as JSON. What they may say is judged in rules.py; here are only shapes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import NumberField, StrictBooleanField, StrictIntegerField, StrictSerializer
from controlplane.core import sums
from controlplane.instances.validation import MOST_STORAGE_GIB
from controlplane.policies.rules import (
    DEFAULT_FLOOR_MIN,
    DEFAULT_LEVEL,
    DEFAULT_STEP,
    LEAST_FLOOR_MIN,
    LEAST_LEVEL,
    LEAST_STEP,
    MOST_FLOOR_MIN,
    MOST_LEVEL,
    MOST_STEP,
    POLICIES,
    ROOM_POINTS,
    Rule,
)
from controlplane.policies.selectors import DiskView

POLICY_HELP = (
    "`retention`: the retention of topics is shortened; `expansion`: more storage is bought; `none`: nothing is done"
)
SPARE_HELP = "of `retention`: a topic is left as it is where groups have still to read what would go"


class DiskPolicySetSerializer(StrictSerializer):
    """PUT: the whole policy. What is left out has its default."""

    policy = serializers.ChoiceField(choices=POLICIES, help_text=POLICY_HELP)
    level_percent = StrictIntegerField(
        min_value=LEAST_LEVEL,
        max_value=MOST_LEVEL,
        required=False,
        default=DEFAULT_LEVEL,
        help_text="of the storage limit: the policy acts when so much is used",
    )
    step_percent = StrictIntegerField(
        min_value=LEAST_STEP,
        max_value=MOST_STEP,
        required=False,
        default=DEFAULT_STEP,
        help_text="by which retention becomes shorter, or storage larger, at a time",
    )
    floor_minutes = StrictIntegerField(
        min_value=LEAST_FLOOR_MIN,
        max_value=MOST_FLOOR_MIN,
        required=False,
        default=DEFAULT_FLOOR_MIN,
        help_text="of `retention`: it is never made shorter than this",
    )
    spare_unread = StrictBooleanField(required=False, default=False, help_text=SPARE_HELP)
    max_storage_gib = NumberField(
        required=False,
        allow_null=True,
        default=None,
        help_text=f"of `expansion`: storage is never made larger than this; at most {MOST_STORAGE_GIB}",
    )
    confirm_price = StrictBooleanField(
        required=False, default=False, help_text="the price at `max_storage_gib` is known"
    )


class ShortenedTopicSerializer(serializers.Serializer[Any]):
    """A topic whose retention is shortened now."""

    topic = serializers.CharField()
    own_retention_ms = serializers.IntegerField(
        source="own_ms", allow_null=True, help_text="what was set for the topic, and is put back; null: nothing was"
    )
    retention_before_ms = serializers.IntegerField(source="before_ms", help_text="what was in force")
    retention_ms = serializers.SerializerMethodField(help_text="what the policy has set")
    since = serializers.DateTimeField()

    def get_retention_ms(self, row: Any) -> int:
        """What is being set counts as set."""
        return int(row.next_ms if row.next_ms is not None else row.now_ms)


class DiskPolicySerializer(serializers.Serializer[Any]):
    """What an instance does when its disk fills up, and what has come of it."""

    policy = serializers.ChoiceField(choices=POLICIES, help_text=POLICY_HELP)
    level_percent = serializers.IntegerField()
    step_percent = serializers.IntegerField()
    floor_minutes = serializers.IntegerField()
    spare_unread = serializers.BooleanField(help_text=SPARE_HELP)
    max_storage_gib = NumberField(allow_null=True)
    used_percent = serializers.FloatField(
        allow_null=True,
        help_text=f"of storage; null: not known now. {ROOM_POINTS} points below the level retention is put back",
    )
    problem = serializers.CharField(allow_null=True, help_text="why the policy could not act last; null: it could")
    problem_since = serializers.DateTimeField(allow_null=True)
    shortened_topics = ShortenedTopicSerializer(many=True)
    operation_id = serializers.CharField(allow_null=True, help_text="of what the policy does now; null: nothing")


class PoliciesSerializer(serializers.Serializer[Any]):
    """All policies of an instance."""

    disk = DiskPolicySerializer()


def rule_of(members: dict[str, Any]) -> Rule:
    """Of what was sent, without the word about its price."""
    return Rule(**{name: value for name, value in members.items() if name != "confirm_price"})


def disk_body(view: DiskView) -> dict[str, Any]:
    """As DiskPolicySerializer has it."""
    body = {
        **asdict(view.rule),
        "used_percent": view.used_percent,
        "problem": sums.shown(view.problem) or None,
        "problem_since": view.problem_at,
        "shortened_topics": view.shortened,
        "operation_id": view.running.pk if view.running else None,
    }
    return dict(DiskPolicySerializer(body).data)
