"""Reasons and remedies as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from controlplane.quotas.moments import text_of
from controlplane.remedies.merging import Remedy

if TYPE_CHECKING:
    from controlplane.remedies.reasons import Reason

REMEDIES = [each.value for each in Remedy if each.value]


class WhoSerializer(serializers.Serializer[Any]):
    """Who moved most on the broker where most was waited, as brokers said while it lasted or up to two minutes later."""

    broker = serializers.IntegerField()
    client_id = serializers.CharField(help_text="empty: it does not say one")
    address = serializers.CharField()
    topic = serializers.CharField(allow_null=True, help_text="null: requests are not counted by topic")
    unit = serializers.ChoiceField(choices=["bytes", "requests"], help_text="what is counted; bytes are of records")
    per_s = serializers.IntegerField()
    all_per_s = serializers.IntegerField(help_text="of all clients on that broker")


class RemedySerializer(serializers.Serializer[Any]):
    """What would help. Sizes and prices are there where more of something that is sold would."""

    kind = serializers.ChoiceField(
        choices=REMEDIES,
        help_text=(
            "bandwidth, storage: buy more; leaders: one broker had too much of the traffic, spread them with "
            "`POST …/leaders/spread`; rule: a throttle rule of your own; requests: fewer and larger ones"
        ),
    )
    rule_id = serializers.CharField(allow_null=True, help_text="of the throttle rule that made wait")
    bandwidth_mib_per_s = serializers.FloatField(
        allow_null=True, help_text="proposed; null: as it is. What is asked for is known from below alone"
    )
    storage_gib = serializers.FloatField(allow_null=True, help_text="likewise")
    per_month_before = serializers.DecimalField(
        None, None, allow_null=True, help_text="of 730 hours, as text; null: nothing is proposed"
    )
    per_month_after = serializers.DecimalField(None, None, allow_null=True)
    currency = serializers.CharField(allow_null=True)


class ReasonSerializer(serializers.Serializer[Any]):
    """Intervals that are alike and at most five minutes apart."""

    direction = serializers.ChoiceField(choices=["produce", "consume"])
    rule = serializers.CharField(allow_null=True, help_text="as of an interval")
    started_at = serializers.CharField()
    ended_at = serializers.CharField()
    times = serializers.IntegerField(help_text="intervals")
    waited_ms = serializers.IntegerField(help_text="in all of them")
    broker = serializers.IntegerField(allow_null=True, help_text="where most was waited")
    limit = serializers.IntegerField()
    explanation = serializers.CharField(help_text="of the worst of them, and who was behind it")
    who = WhoSerializer(allow_null=True, help_text="null: it is not known")
    remedy = RemedySerializer(allow_null=True)


class ReasonsSerializer(serializers.Serializer[Any]):
    """The newest first."""

    items = ReasonSerializer(many=True)
    next = serializers.CharField(allow_null=True, help_text="always null")
    is_whole = serializers.BooleanField(
        help_text="false: they are of the latest 500 intervals, and the oldest reason may have begun earlier"
    )


class LeadersSpreadSerializer(serializers.Serializer[Any]):
    """The operation that has other replicas lead. Its result says how many do, and which could not be made to, with why."""

    instance_id = serializers.CharField()
    operation_id = serializers.CharField()


class NoiseSerializer(serializers.Serializer[Any]):
    """Minutes in a row in which an instance's requests were slow on a broker while others had part of it."""

    score = serializers.IntegerField(help_text="0 to 100: the highest of them. At most so much of it others are behind")
    broker = serializers.IntegerField(source="spell.worst.broker")
    started_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField()
    requests = serializers.ChoiceField(source="spell.worst.score.kind", choices=["produce", "fetch"])
    p99_ms = serializers.FloatField(help_text="99 of 100 took at most, of their local part, in the worst ten seconds")
    usual_ms = serializers.FloatField(help_text="the median of that over the hour before")
    others_percent = serializers.IntegerField(source="spell.others_percent", help_text="of the broker's time meanwhile")
    own_percent = serializers.IntegerField(source="spell.own_percent", help_text="that went to this instance")
    explanation = serializers.CharField(source="sentence", help_text="one sentence")


class NoisePageSerializer(serializers.Serializer[Any]):
    """The newest first, 50 at most."""

    items = NoiseSerializer(many=True)
    next = serializers.CharField(allow_null=True, help_text="always null")


class NeighbourSerializer(serializers.Serializer[Any]):
    """Who had the broker meanwhile."""

    instance = serializers.CharField()
    percent = serializers.IntegerField(help_text="of the broker's time in the worst minute")


class EverybodysNoiseSerializer(NoiseSerializer):
    """The same for operators."""

    instance = serializers.CharField(source="spell.worst.instance")
    neighbours = NeighbourSerializer(many=True, help_text="those that had most of the broker, five at most")


class EverybodysNoisePageSerializer(serializers.Serializer[Any]):
    """The newest first, 50 at most."""

    items = EverybodysNoiseSerializer(many=True)
    next = serializers.CharField(allow_null=True, help_text="always null")


def reason_body(reason: Reason) -> dict[str, Any]:
    """As `ReasonSerializer` has it."""
    why, who = reason.why, reason.who
    return {
        "direction": why.direction,
        "rule": why.rule,
        "started_at": text_of(why.started_at),
        "ended_at": text_of(why.ended_at),
        "times": why.times,
        "waited_ms": why.waited_ms,
        "broker": why.broker,
        "limit": why.worst.limit,
        "explanation": why.sentence if who is None else f"{why.sentence} {who.sentence}",
        "who": None
        if who is None
        else {
            "broker": who.broker,
            "client_id": who.client_id,
            "address": who.address,
            "topic": who.topic or None,
            "unit": who.unit,
            "per_s": who.per_s,
            "all_per_s": who.all_per_s,
        },
        "remedy": _remedy(reason) if why.remedy else None,
    }


def _remedy(reason: Reason) -> dict[str, Any]:
    proposal = reason.proposal
    return {
        "kind": reason.why.remedy.value,
        "rule_id": reason.why.rule_id or None,
        "bandwidth_mib_per_s": None if proposal is None else proposal.bandwidth_mib_per_s,
        "storage_gib": None if proposal is None else proposal.storage_gib,
        "per_month_before": None if proposal is None else str(proposal.per_month_before),
        "per_month_after": None if proposal is None else str(proposal.per_month_after),
        "currency": None if proposal is None else proposal.currency,
    }
