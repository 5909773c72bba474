"""Throttled intervals and the guarantee as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class OverAdmissionSerializer(serializers.Serializer[Any]):
    """Percent above the limit, the most in any window of this length."""

    window_1_s = serializers.FloatField()
    window_10_s = serializers.FloatField()
    window_60_s = serializers.FloatField()


class BrokerInputsSerializer(serializers.Serializer[Any]):
    """One broker in the period in which most was waited; rates in bytes/s, null: unlimited."""

    broker = serializers.IntegerField()
    leaders = serializers.IntegerField(help_text="partitions of the instance that it led")
    initial_share = serializers.IntegerField(allow_null=True)
    flow = serializers.IntegerField()
    allocation = serializers.IntegerField(allow_null=True, help_text="in force while this flowed")
    granted = serializers.IntegerField(allow_null=True, help_text="what was decided from this flow")
    branch = serializers.CharField(help_text="which branch of the algorithm decided")
    throttled_ms = serializers.IntegerField()
    waiting_bytes = serializers.IntegerField(help_text="let through and not paid for yet, at the period's end")


class InputsSerializer(serializers.Serializer[Any]):
    """All that the decision was made from."""

    at = serializers.CharField()
    strategy = serializers.CharField()
    epoch = serializers.IntegerField(help_text="the term of the master that decided")
    brokers = BrokerInputsSerializer(many=True)


class ThrottledIntervalSerializer(serializers.Serializer[Any]):
    """A time in which somebody had to wait, or more than was bought flowed."""

    direction = serializers.ChoiceField(choices=["produce", "consume"])
    rule = serializers.CharField(
        allow_null=True,
        help_text=(
            'the throttle rule, and of one for each client whose; null: the instance\'s own limit; "requests": that of its '
            "requests, whose rates are thousandths of requests a second"
        ),
    )
    started_at = serializers.CharField()
    ended_at = serializers.CharField()
    limit = serializers.IntegerField(help_text="bytes/s")
    throttled_ms = serializers.IntegerField(help_text="time in which some broker made somebody wait")
    under_limit_ms = serializers.IntegerField(help_text="of it, while less than 95 % of the limit was used")
    over_admission_percent = OverAdmissionSerializer()
    explanation = serializers.CharField(help_text="one sentence")
    inputs = InputsSerializer()


class ThrottledIntervalPageSerializer(serializers.Serializer[Any]):
    """Intervals in which an instance had to wait, a page at a time."""

    items = ThrottledIntervalSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class GuaranteeDaySerializer(serializers.Serializer[Any]):
    """One direction on one day."""

    day = serializers.CharField(help_text="UTC, 2026-11-21")
    direction = serializers.ChoiceField(choices=["produce", "consume"])
    throttled_ms = serializers.IntegerField()
    throttled_under_limit_ms = serializers.IntegerField()
    throttled_under_limit_percent = serializers.FloatField(help_text="of the day, or of what has passed of it")
    over_admission_percent = OverAdmissionSerializer()


class GuaranteePageSerializer(serializers.Serializer[Any]):
    """All days that are kept."""

    items = GuaranteeDaySerializer(many=True)
    next = serializers.CharField(allow_null=True)
