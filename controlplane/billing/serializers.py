"""Bills as JSON: decimals are strings."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.billing.plans import PLANS


class LineSerializer(serializers.Serializer[Any]):
    """Quantity times unit price, rounded to the currency's cents."""

    item = serializers.CharField(help_text="bandwidth, disk, partitions, produced, consumed or stored")
    quantity = serializers.CharField()
    unit = serializers.CharField()
    unit_price = serializers.CharField()
    amount = serializers.CharField()


class PlacedLineSerializer(LineSerializer):
    """A line and the hours it covers."""

    locals().update({"from": serializers.CharField(help_text="UTC, included")})
    to = serializers.CharField(help_text="UTC, not included")
    usage = serializers.CharField(help_text="path of the usage rows of these hours")


class BillSerializer(serializers.Serializer[Any]):
    """One instance, one month in UTC."""

    instance_id = serializers.CharField()
    month = serializers.CharField()
    plan = serializers.ChoiceField(choices=list(PLANS))
    currency = serializers.CharField()
    total = serializers.CharField()
    lines = PlacedLineSerializer(many=True)
    so_far = serializers.BooleanField(help_text="false once the month is invoiced: nothing changes any more")
    input_hash = serializers.CharField(allow_null=True, help_text="SHA-256 of what the invoice was computed from")
