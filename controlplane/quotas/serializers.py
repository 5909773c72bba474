"""Throttled intervals, the guarantee and the quota report as JSON."""

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
    granted = serializers.IntegerField(allow_null=True, help_text="the new allocation, computed from this flow")
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


class QuotaReportDaySerializer(serializers.Serializer[Any]):
    """One resource on one day. Of produce and consume bytes/s on the wire, of storage bytes of all replicas."""

    instance = serializers.CharField()
    day = serializers.CharField(help_text="UTC, 2026-11-21")
    resource = serializers.ChoiceField(choices=["produce", "consume", "storage"])
    limit = serializers.IntegerField(allow_null=True, help_text="in force at the day's end; null: unlimited")
    p50 = serializers.IntegerField(help_text="half of the day's minutes used no more, each by its average")
    p95 = serializers.IntegerField()
    p99 = serializers.IntegerField()
    most = serializers.IntegerField(help_text="the minute in which most was used")
    used_percent = serializers.FloatField(
        allow_null=True, help_text="of the limit in force in each minute, at the 95th percentile; null: unlimited"
    )
    headroom = serializers.IntegerField(
        allow_null=True, help_text="limit minus p95; null: unlimited. Not the rule of this name"
    )
    minutes = serializers.IntegerField(help_text="of which anything is known")
    throttled_minutes = serializers.IntegerField(help_text="in which some client waited")
    throttled_ms = serializers.IntegerField()
    throttled_under_limit_ms = serializers.IntegerField(
        allow_null=True, help_text="while less than 95 % of the limit was used; null: of storage, or not known"
    )
    guarantee = serializers.ChoiceField(
        choices=["kept", "missed"],
        allow_null=True,
        help_text=(
            "missed: clients waited below their limit for more than a thousandth of the time, by what masters had said when "
            "the day was reported, ten minutes after midnight; null: nothing is guaranteed (no limit, or storage), or it is "
            "not known who waited, because the day was reported when that was kept no longer (7 days)"
        ),
    )
    exhausted_on = serializers.CharField(
        allow_null=True,
        help_text=(
            "the day on which the trend of 28 days reaches the limit, as foretold on this day; the day itself: it is there "
            "already; null: none within 400 days, no limit, or fewer than 7 days to make a trend of"
        ),
    )


class QuotaReportPageSerializer(serializers.Serializer[Any]):
    """Days of the report, a page at a time."""

    items = QuotaReportDaySerializer(many=True)
    next = serializers.CharField(allow_null=True)
