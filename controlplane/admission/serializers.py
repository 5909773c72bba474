"""Caps and room as JSON."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.admission.rules import DEFAULT_ROOM, MOST, ORGANISATION, RESOURCES
from controlplane.admission.services import LEAST_OVERCOMMIT, MOST_OVERCOMMIT
from controlplane.api.serializers import NumberField, StrictCharField, StrictSerializer

LONGEST_REASON = 1000
_AMOUNT = {"oneOf": [{"type": "number"}, {"type": "string"}]}


@extend_schema_field(_AMOUNT)
class AmountField(serializers.Field):  # type: ignore[type-arg]
    """A number; money is text."""

    def to_representation(self, value: Any) -> Any:
        """As rules.number made it."""
        return value


class CapSerializer(serializers.Serializer[Any]):
    """One cap, and how much of it is in use."""

    resource = serializers.ChoiceField(choices=list(ORGANISATION))
    unit = serializers.CharField(help_text="empty where things are counted; of the price: its currency")
    limit = AmountField(help_text="what the organisation may have")
    used = AmountField(help_text="by instances that are not deleted yet")
    default = AmountField(help_text="what a new organisation may have")


class CapsSerializer(serializers.Serializer[Any]):
    """What an organisation may have."""

    organisation_id = serializers.CharField()
    caps = CapSerializer(many=True)
    price_confirmed_above = serializers.CharField(
        help_text="a month, in the currency of the plan: what costs more needs confirm_price"
    )
    how_to_raise = serializers.CharField(help_text="a sentence")


@extend_schema_field({"type": "number", "minimum": 0, "maximum": MOST, "nullable": True})
class CapField(NumberField):
    """What an operator sets; null is the default."""


class ReasonField(StrictCharField):
    """Why: it stays on record."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=LONGEST_REASON, help_text="stays on record", **options)


class CapsChangeSerializer(StrictSerializer):
    """PATCH: what is not named stays, null is the default again."""

    reason = ReasonField()
    instances = CapField(required=False, allow_null=True)
    bandwidth_mib_per_s = CapField(required=False, allow_null=True)
    storage_gib = CapField(required=False, allow_null=True)
    partitions = CapField(required=False, allow_null=True)
    price_per_month = CapField(required=False, allow_null=True)


class RoomSerializer(serializers.Serializer[Any]):
    """One resource of the cluster."""

    resource = serializers.ChoiceField(choices=list(RESOURCES))
    unit = serializers.CharField(help_text="empty where things are counted")
    per_broker = serializers.FloatField(allow_null=True, help_text="null: it is not counted by broker")
    overcommit = serializers.FloatField(allow_null=True, help_text="how many times as much is sold")
    capacity = AmountField(help_text="what may be sold, over all brokers")
    sold = AmountField()


class CapacitySerializer(serializers.Serializer[Any]):
    """What may be sold of the cluster, and what is."""

    cluster = serializers.CharField()
    brokers = serializers.IntegerField(help_text="that are not away for good")
    resources = RoomSerializer(many=True)


@extend_schema_field({"type": "number", "minimum": 0, "maximum": MOST})
class PerBrokerField(NumberField):
    """Of the resource's unit."""


@extend_schema_field({"type": "number", "minimum": LEAST_OVERCOMMIT, "maximum": MOST_OVERCOMMIT})
class OvercommitField(NumberField):
    """A factor."""


class RoomChangeSerializer(StrictSerializer):
    """PUT of what one broker has of a resource."""

    resource = serializers.ChoiceField(choices=list(DEFAULT_ROOM))
    per_broker = PerBrokerField()
    overcommit = OvercommitField()
    reason = ReasonField()
