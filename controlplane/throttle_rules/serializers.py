"""Throttle rules as JSON. What a rule may name is judged in services.py; here are only shapes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import NumberField, StrictCharField, StrictSerializer
from controlplane.throttle_rules.services import MOST_MIB_PER_S, bytes_per_s
from quota.contracts.instance import MIB
from quota.contracts.rules import LONGEST_NAME, MOST_NAMES, RuleKind

KINDS = [kind.value for kind in RuleKind]
MOST_DECIMALS = 8
"""A byte is about a millionth of a MiB: with six, no two numbers are the same rate; with seven, every rate has a number."""
EACH = "[null]: each that no nearer rule names, and then each has the limit for himself"


@extend_schema_field(
    {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": MOST_MIB_PER_S, "nullable": True}
)
class RateField(NumberField):
    """A limit, for the whole cluster and for all that the rule names together."""


class _NamesField(serializers.ListField):
    """Names, each a string, or null where the field takes it."""

    def __init__(self, *, nullable: bool = False, **options: Any) -> None:
        name = StrictCharField(max_length=LONGEST_NAME, allow_null=nullable, trim_whitespace=False)
        super().__init__(child=name, max_length=MOST_NAMES, required=False, **options)


class ThrottleRuleChangeSerializer(StrictSerializer):
    """PATCH: any of them. A list that is given replaces the one before."""

    not_empty = True

    produce_mib_per_s = RateField(required=False, allow_null=True, help_text="null: no limit")
    consume_mib_per_s = RateField(required=False, allow_null=True, help_text="null: no limit")
    topics = _NamesField(help_text="of a topic rule")
    users = _NamesField(nullable=True, help_text=f"of a client rule; {EACH}")
    clients = _NamesField(nullable=True, help_text=f"of a client rule: client ids; {EACH}")
    groups = _NamesField(help_text="of a group rule, which limits consuming: consumer groups")


class ThrottleRuleCreateSerializer(ThrottleRuleChangeSerializer):
    """POST. A client rule with users and clients is for these clients of these users."""

    not_empty = False

    kind = serializers.ChoiceField(choices=KINDS)


class ThrottleRuleSerializer(serializers.Serializer[Any]):
    """A limit within an instance: for topics, for clients, or for consumer groups."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    produce_mib_per_s = serializers.SerializerMethodField()
    consume_mib_per_s = serializers.SerializerMethodField()
    topics = serializers.ListField(child=serializers.CharField())
    users = serializers.ListField(child=serializers.CharField(allow_null=True))
    clients = serializers.ListField(child=serializers.CharField(allow_null=True))
    groups = serializers.ListField(child=serializers.CharField())

    @extend_schema_field(RateField)
    def get_produce_mib_per_s(self, rule: Any) -> float | None:
        return _mib(rule.produce_bytes_per_s)

    @extend_schema_field(RateField)
    def get_consume_mib_per_s(self, rule: Any) -> float | None:
        return _mib(rule.consume_bytes_per_s)


class ThrottleRulePageSerializer(serializers.Serializer[Any]):
    """A page of throttle rules."""

    items = ThrottleRuleSerializer(many=True)
    next = serializers.CharField(allow_null=True)


def _mib(rate: int | None) -> float | None:
    """With the fewest decimals that mean this rate: 0.2 is kept as 209,715 bytes/s, and 209,715 / 2**20 is 0.1999998."""
    if rate is None:
        return None
    shown = (round(rate / MIB, decimals) for decimals in range(MOST_DECIMALS))
    return next((value for value in shown if value and bytes_per_s(value) == rate), rate / MIB)
