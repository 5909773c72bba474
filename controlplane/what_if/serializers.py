"""What-ifs as JSON: money is text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from controlplane.api.serializers import NumberField
from controlplane.billing.pricing.money import text_of
from controlplane.what_if.rules import RESOURCES

if TYPE_CHECKING:
    from controlplane.what_if.selectors import WhatIf


class SizeSerializer(serializers.Serializer[Any]):
    """What is bought."""

    bandwidth_mib_per_s = NumberField()
    storage_gib = NumberField()
    partitions = serializers.IntegerField()


class PricedSerializer(serializers.Serializer[Any]):
    """A month's own cost, without adjustments of earlier months."""

    currency = serializers.CharField()
    total = serializers.CharField()
    plans = serializers.ListField(child=serializers.CharField(), help_text="those of the month, in order")


class ResourceDaysSerializer(serializers.Serializer[Any]):
    """Days of the quota report beside the limit of that size."""

    resource = serializers.ChoiceField(choices=RESOURCES)
    limit = serializers.IntegerField(
        allow_null=True, help_text="bytes a second, or bytes; null: it was not asked for, and differed within the month"
    )
    reported = serializers.IntegerField(help_text="days of which something is known: a report is made the day after")
    over = serializers.IntegerField(allow_null=True, help_text="days on which some minute was above the limit")
    mostly_over = serializers.IntegerField(allow_null=True, help_text="days whose 95th percentile was")
    throttled = serializers.IntegerField(help_text="days on which somebody waited, at the size that it had")
    most = serializers.IntegerField(allow_null=True, help_text="the largest minute")


class WhatIfSerializer(serializers.Serializer[Any]):
    """A month as it was, and as it would have been."""

    instance_id = serializers.CharField()
    month = serializers.CharField()
    so_far = serializers.BooleanField(help_text="the month is not invoiced: both sides go up to now")
    was = PricedSerializer()
    would = PricedSerializer()
    difference = serializers.CharField(allow_null=True, help_text="negative: cheaper; null: in another currency")
    size = SizeSerializer(allow_null=True, help_text="that it would have had at last; null: it was not there")
    elastic_not_estimated = serializers.BooleanField(
        help_text="of another bandwidth elastic use is counted as it was: with more bandwidth it is billed less, with less more"
    )
    days = ResourceDaysSerializer(many=True)


def what_if_body(found: WhatIf) -> dict[str, Any]:
    """As WhatIfSerializer has it."""
    size = found.size
    return {
        "instance_id": found.instance_id,
        "month": str(found.month),
        "so_far": found.so_far,
        "was": {"currency": found.currency, "total": text_of(found.cost), "plans": list(found.plans)},
        "would": {
            "currency": found.would_currency,
            "total": text_of(found.would_cost),
            "plans": list(found.would_plans),
        },
        "difference": None if found.difference is None else text_of(found.difference),
        "size": size
        and SizeSerializer(
            {
                "bandwidth_mib_per_s": float(size.bandwidth_mb_per_s),
                "storage_gib": float(size.disk_gb),
                "partitions": size.partitions,
            }
        ).data,
        "elastic_not_estimated": not found.is_elastic_known,
        "days": ResourceDaysSerializer(found.days, many=True).data,
    }
