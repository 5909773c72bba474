"""Proposals, moves and balance as JSON."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.admission.serializers import ReasonField
from controlplane.api.serializers import (
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from controlplane.rebalancing.automatic import (
    LEAST_LASTING_MINUTES,
    LEAST_REST_HOURS,
    LEAST_SKEW_PERCENT,
    MOST_LASTING_MINUTES,
    MOST_REST_HOURS,
    MOST_SKEW_PERCENT,
    only_proposes,
)
from controlplane.rebalancing.models import (
    DEFAULT_AT_ONCE,
    DEFAULT_THROTTLE_BYTES_PER_S,
    BalanceMode,
    MoveState,
    RebalanceState,
)
from controlplane.rebalancing.planner.model import DEFAULT_GOALS, Goal
from controlplane.rebalancing.selectors import progress_of
from controlplane.rebalancing.services import (
    LEAST_THROTTLE_BYTES_PER_S,
    MARGIN_PERCENT,
    MOST_AT_ONCE,
    MOST_MARGIN_PERCENT,
    MOST_THROTTLE_BYTES_PER_S,
)

GOALS = [str(goal) for goal in Goal]
ACTIONS = ("approve", "carry_out", "pause", "resume", "cancel", "roll_back")
MOST_NAMED = 1000
HIGHEST_BROKER = 2**31 - 1


@extend_schema_field(
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": HIGHEST_BROKER}, "maxItems": MOST_NAMED}
)
class BrokersField(serializers.ListField):
    """Ids of brokers."""

    child = StrictIntegerField(min_value=0, max_value=HIGHEST_BROKER)

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=MOST_NAMED, **options)


def _throttle(**options: Any) -> StrictIntegerField:
    return StrictIntegerField(
        min_value=LEAST_THROTTLE_BYTES_PER_S,
        max_value=MOST_THROTTLE_BYTES_PER_S,
        help_text="what each broker may take in, and give out, of replicas that are not in sync",
        **options,
    )


def _at_once(**options: Any) -> StrictIntegerField:
    return StrictIntegerField(
        min_value=1, max_value=MOST_AT_ONCE, help_text="partitions that are under way at once", **options
    )


class RebalanceCreateSerializer(StrictSerializer):
    """What is wished. Nothing moves by it."""

    cluster = StrictCharField(
        max_length=64, required=False, help_text="which physical cluster; needed where there are several"
    )
    goals = serializers.ListField(
        child=serializers.ChoiceField(choices=GOALS),
        default=lambda: list(map(str, DEFAULT_GOALS)),
        max_length=len(GOALS),
        help_text="in order: none is served at the cost of one before it",
    )
    cordoned = BrokersField(help_text="get nothing new")
    draining = BrokersField(help_text="are to have nothing in the end")
    demoted = BrokersField(help_text="are to lead nothing")
    instances = serializers.ListField(
        child=StrictCharField(max_length=32),
        required=False,
        max_length=MOST_NAMED,
        help_text="whose partitions may move; none named: everybody's",
    )
    margin_percent = StrictIntegerField(
        default=MARGIN_PERCENT,
        min_value=0,
        max_value=MOST_MARGIN_PERCENT,
        help_text="how far from the average is alike enough",
    )
    leaders_only = StrictBooleanField(default=False, help_text="true: copy nothing that is not to leave a broker")
    in_windows = StrictBooleanField(
        default=False,
        help_text="true: partitions of an instance with a maintenance window begin to move only while it is open",
    )
    throttle_bytes_per_s = _throttle(default=DEFAULT_THROTTLE_BYTES_PER_S)
    at_once = _at_once(default=DEFAULT_AT_ONCE)


class RebalancePaceSerializer(StrictSerializer):
    """PATCH: what is not named stays."""

    not_empty = True

    throttle_bytes_per_s = _throttle(required=False)
    at_once = _at_once(required=False)


class RebalanceActionSerializer(StrictSerializer):
    """What is to be done with a proposal."""

    action = serializers.ChoiceField(
        choices=ACTIONS,
        help_text="approve: a second person's word; carry_out: begin; pause: nothing new begins; cancel: what is under way is "
        "called back; roll_back: a new proposal for the way back",
    )


class RebalanceProgressSerializer(serializers.Serializer[Any]):
    """How far it is."""

    percent = serializers.IntegerField()
    moves = serializers.IntegerField()
    done = serializers.IntegerField()
    under_way = serializers.IntegerField()
    waiting = serializers.IntegerField()
    not_made = serializers.IntegerField(help_text="skipped, refused or called back")
    copied_bytes = serializers.IntegerField()
    bytes_to_copy = serializers.IntegerField()


class RebalanceEventSerializer(serializers.Serializer[Any]):
    """Who said what about it."""

    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    detail = serializers.DictField()


class RebalanceSerializer(serializers.Serializer[Any]):
    """A proposal: what was wished, what it comes to, and how far it is."""

    id = serializers.CharField()
    cluster = serializers.CharField(source="cluster.name")
    state = serializers.ChoiceField(choices=RebalanceState.choices)
    problem = serializers.CharField(help_text="why it failed, or what was left out; empty: nothing")
    wishes = serializers.DictField()
    summary = serializers.DictField(
        allow_null=True,
        help_text="null: not planned yet. moves, leader_moves, bytes_to_copy; brokers, tenants and scores before and after; "
        "stuck: what cannot be done, in sentences; notes: how well the cluster could be seen",
    )
    estimated_s = serializers.IntegerField(
        allow_null=True, help_text="at the throttle, by the busiest broker; null: not planned yet"
    )
    throttle_bytes_per_s = serializers.IntegerField()
    at_once = serializers.IntegerField()
    progress = serializers.SerializerMethodField()
    operation_id = serializers.CharField(allow_null=True, help_text="planning, and then carrying out")
    rollback_of = serializers.CharField(source="rollback_of_id", allow_null=True)
    cause = serializers.CharField(help_text="why it was proposed by itself; empty: somebody has proposed it")
    created_by = serializers.CharField(help_text="an email; system: it was proposed by itself")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    approved_by = serializers.CharField(help_text="empty: nobody")
    begun_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(RebalanceProgressSerializer)
    def get_progress(self, row: Any) -> dict[str, Any]:
        known = self.context.get("progress", {})  # of a list, which asks once for all
        return dict(RebalanceProgressSerializer(known.get(row.pk) or progress_of(row)).data)


MODES = (
    "off: nothing begins by itself; propose: there is a proposal where the cluster calls for it; carry_out: it is carried out as "
    "well, once it is approved where the installation wants that"
)


class BalanceRuleSerializer(serializers.Serializer[Any]):
    """When a cluster is rebalanced by itself, and what it waits for."""

    cluster = serializers.CharField(source="cluster.name")
    mode = serializers.ChoiceField(choices=BalanceMode.choices, help_text=MODES)
    new_brokers = serializers.BooleanField(help_text="where a broker has no replicas, while the others have some")
    skew_percent = serializers.IntegerField(
        allow_null=True,
        help_text="where a broker has so many percent more than the average of leaders, flow, replicas or disk; null: never",
    )
    lasting_minutes = serializers.IntegerField(help_text="and it has lasted so long")
    rest_hours = serializers.IntegerField(help_text="and the last rebalance is so long ago")
    in_windows = serializers.BooleanField(help_text="partitions move in the maintenance windows of their instances")
    throttle_bytes_per_s = serializers.IntegerField()
    at_once = serializers.IntegerField()
    only_proposes = serializers.SerializerMethodField()
    waiting_for = serializers.CharField(help_text="what calls for one now: new_broker or skew; empty: nothing")
    waiting_since = serializers.DateTimeField(allow_null=True)
    changed_by = serializers.CharField(help_text="empty: nobody has set it yet")
    changed_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(OpenApiTypes.BOOL)
    def get_only_proposes(self, row: Any) -> bool:
        """True: the last one was undone or has failed, so that none is carried out until the mode is set again."""
        return only_proposes(row)


class BalanceRuleChangeSerializer(StrictSerializer):
    """PATCH: what is not named stays. To set a mode that is set already has it go on after something was undone."""

    not_empty = True

    mode = serializers.ChoiceField(required=False, choices=BalanceMode.choices, help_text=MODES)
    new_brokers = StrictBooleanField(required=False)
    skew_percent = StrictIntegerField(
        required=False, allow_null=True, min_value=LEAST_SKEW_PERCENT, max_value=MOST_SKEW_PERCENT
    )
    lasting_minutes = StrictIntegerField(
        required=False, min_value=LEAST_LASTING_MINUTES, max_value=MOST_LASTING_MINUTES
    )
    rest_hours = StrictIntegerField(required=False, min_value=LEAST_REST_HOURS, max_value=MOST_REST_HOURS)
    in_windows = StrictBooleanField(required=False)
    throttle_bytes_per_s = _throttle(required=False)
    at_once = _at_once(required=False)
    reason = ReasonField()


class RebalancePageSerializer(serializers.Serializer[Any]):
    """Proposals, the newest first."""

    items = RebalanceSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class RebalanceMoveSerializer(serializers.Serializer[Any]):
    """One partition."""

    number = serializers.IntegerField()
    topic = serializers.CharField(help_text="the cluster's name of it")
    partition = serializers.IntegerField()
    instance = serializers.CharField(help_text="empty: the cluster's own topic")
    before = serializers.ListField(child=serializers.IntegerField(), help_text="brokers; the first is to lead")
    after = serializers.ListField(child=serializers.IntegerField())
    bytes_to_copy = serializers.IntegerField(help_text="0: another replica leads, nothing is copied")
    copied_bytes = serializers.IntegerField()
    returns_bytes_per_s = serializers.IntegerField(help_text="of what its tenant has bought and could not use")
    state = serializers.ChoiceField(choices=MoveState.choices)
    problem = serializers.CharField()
    begun_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class RebalanceMovePageSerializer(serializers.Serializer[Any]):
    """Moves in their order."""

    items = RebalanceMoveSerializer(many=True)
    next = serializers.CharField(allow_null=True)


@extend_schema_field(OpenApiTypes.OBJECT)
class LoadsField(serializers.DictField):
    """By goal."""


class BrokerBalanceSerializer(serializers.Serializer[Any]):
    """What one broker has of each goal."""

    broker = serializers.IntegerField()
    away = serializers.BooleanField()
    loads = LoadsField(help_text="leaders, produce, consume, replicas, disk, bandwidth: counts, bytes a second, bytes")


class ShortTenantSerializer(serializers.Serializer[Any]):
    """An instance that cannot use what was bought."""

    instance = serializers.CharField()
    limit_bytes_per_s = serializers.IntegerField()
    usable_bytes_per_s = serializers.IntegerField()


class BalanceSerializer(serializers.Serializer[Any]):
    """How evenly the cluster is loaded now."""

    brokers = BrokerBalanceSerializer(many=True)
    averages = LoadsField()
    short = ShortTenantSerializer(
        many=True, help_text="instances whose leaders lie where they cannot use all they bought"
    )
    notes = serializers.ListField(child=serializers.CharField())
