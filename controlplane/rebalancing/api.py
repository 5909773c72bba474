"""REST of rebalancing, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission, caller_of
from controlplane.api import dry_runs, filters, pagination, preconditions
from controlplane.clusters.services import cluster_named
from controlplane.core.dry_runs import NOTHING_MOVES, Moving, affected
from controlplane.core.errors import Invalid, NotFound
from controlplane.rebalancing import automatic, kept, selectors, services
from controlplane.rebalancing.models import MoveState, RebalanceState
from controlplane.rebalancing.serializers import (
    BalanceRuleChangeSerializer,
    BalanceRuleSerializer,
    BalanceSerializer,
    RebalanceActionSerializer,
    RebalanceCreateSerializer,
    RebalanceEventSerializer,
    RebalanceMovePageSerializer,
    RebalanceMoveSerializer,
    RebalancePaceSerializer,
    RebalancePageSerializer,
    RebalanceSerializer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from rest_framework.request import Request

    from controlplane.core.dry_runs import Affected
    from controlplane.rebalancing.models import BalanceRule, Rebalance, RebalanceMove

TAGS = ["operators"]
CLUSTER = filters.text_parameter("cluster", "which physical cluster; needed where there are several")
_ACTIONS: dict[str, Callable[..., Rebalance]] = {
    "approve": services.rebalance_approve,
    "carry_out": services.rebalance_carry_out,
    "pause": services.rebalance_pause,
    "resume": services.rebalance_resume,
    "cancel": services.rebalance_cancel,
    "roll_back": services.rebalance_roll_back,
}


_BEGINS = {"carry_out": RebalanceState.PROPOSED, "resume": RebalanceState.PAUSED}
"""Actions by which partitions move, and of what kind of rebalance."""


def _makes_another(request: Request) -> bool:
    body: Any = request.data  # valid: the call itself was made with it
    return bool(body["action"] == "roll_back")


def _moves(request: Request, ids: Mapping[str, Any]) -> Moving:
    """What an action lets brokers copy: all that is left where the rebalance begins or goes on."""
    body: Any = request.data
    row = selectors.rebalance_get(ids["rebalance_id"])
    if _BEGINS.get(body["action"]) != row.state:
        return NOTHING_MOVES
    size_bytes, seconds = selectors.still_to_move(row)
    return Moving(size_bytes, seconds or None)


def _whose_move(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> Iterable[Affected]:
    """Instances whose partitions an action lets move: those of what has not moved yet, where it begins or goes on."""
    body: Any = request.data
    row = selectors.rebalance_get(ids["rebalance_id"])
    if _BEGINS.get(body["action"]) != row.state:
        return ()
    left = selectors.moves_of(row).filter(state=MoveState.WAITING).exclude(instance="")
    instances = left.order_by("instance").values_list("instance", flat=True).distinct()
    return affected("instances", instances, "partitions of theirs move; clients turn to new leaders")


class BalanceApi(APIView):
    """/api/v1/balance."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=BalanceSerializer, parameters=[CLUSTER], tags=TAGS)
    def get(self, request: Request) -> Response:
        """What each broker has of leaders, flow, replicas, disk and bandwidth that was sold."""
        cluster = cluster_named(filters.text_of(request, "cluster"))
        document = kept.document_of(selectors.balance_of(cluster))
        return Response(BalanceSerializer(document).data)


RULE_MEASURED = ("only_proposes", "waiting_for", "waiting_since")
"""Of a rule, what nobody sets."""


def _rule_set(row: BalanceRule) -> dict[str, Any]:
    return preconditions.without(BalanceRuleSerializer(row).data, RULE_MEASURED)


def _rule_answer(request: Request, row: BalanceRule) -> Response:
    return preconditions.answer(request, dict(BalanceRuleSerializer(row).data), _rule_set(row))


class BalanceRuleApi(APIView):
    """/api/v1/clusters/{cluster}/rebalancing."""

    permission_classes = (OperatorPermission,)

    @extend_schema(
        responses={200: BalanceRuleSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """When the cluster is rebalanced by itself."""
        return _rule_answer(request, automatic.rule_of(cluster_named(cluster)))

    @extend_schema(
        request=BalanceRuleChangeSerializer,
        responses=BalanceRuleSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, cluster: str) -> Response:
        """Another rule: it holds from now on. What is under way goes on."""
        body = BalanceRuleChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes = dict(body.validated_data)
        reason = changes.pop("reason")
        row = automatic.rule_set(
            cluster=cluster_named(cluster),
            actor=caller_of(request).actor,
            changes=changes,
            reason=reason,
            check=preconditions.check_of(request, _rule_set),
        )
        return _rule_answer(request, row)


class RebalancesApi(APIView):
    """/api/v1/rebalances."""

    permission_classes = (OperatorPermission,)
    bodies_are_optional = True  # without one: the only cluster, by all goals

    @extend_schema(responses=RebalancePageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Proposals, the newest first."""
        rows, following = pagination.newest_page(request, selectors.rebalance_list(), moment="created_at", key=str)
        context = {"progress": selectors.progresses_of(rows)}
        return Response(pagination.body(list(RebalanceSerializer(rows, many=True, context=context).data), following))

    @extend_schema(request=RebalanceCreateSerializer, responses={202: RebalanceSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """Have a rebalance of the cluster planned: a dry run, until somebody has it carried out. It expires after a day."""
        body = RebalanceCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        wishes = dict(body.validated_data)
        try:
            cluster = cluster_named(wishes.pop("cluster", None))
        except NotFound as error:
            raise Invalid.field("cluster", error.detail) from error
        row = services.rebalance_propose(cluster=cluster, actor=caller_of(request).actor, **wishes)
        return Response(RebalanceSerializer(row).data, status=202)


class RebalanceApi(APIView):
    """/api/v1/rebalances/{id}."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=RebalanceSerializer, tags=TAGS)
    def get(self, request: Request, rebalance_id: str) -> Response:
        """One proposal, with what it comes to and how far it is."""
        del request
        return Response(RebalanceSerializer(selectors.rebalance_get(rebalance_id)).data)

    @extend_schema(request=RebalancePaceSerializer, responses=RebalanceSerializer, tags=TAGS)
    @dry_runs.rehearsed()
    def patch(self, request: Request, rebalance_id: str) -> Response:
        """Another throttle, or another number of partitions at once; also while it is under way."""
        body = RebalancePaceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = services.rebalance_pace(rebalance_id=rebalance_id, actor=caller_of(request).actor, **body.validated_data)
        return Response(RebalanceSerializer(row).data)


class RebalanceActionsApi(APIView):
    """/api/v1/rebalances/{id}/actions."""

    permission_classes = (OperatorPermission,)

    @extend_schema(request=RebalanceActionSerializer, responses={202: RebalanceSerializer}, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(RebalanceApi), makes=_makes_another, touches=_whose_move, moves=_moves)
    def post(self, request: Request, rebalance_id: str) -> Response:
        """Approve, carry out, pause, resume, cancel or roll back. Rolling back answers with the new proposal."""
        body = RebalanceActionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        act = _ACTIONS[body.validated_data["action"]]
        row = act(rebalance_id=rebalance_id, actor=caller_of(request).actor)
        return Response(RebalanceSerializer(row).data, status=202)


class RebalanceMovesApi(APIView):
    """/api/v1/rebalances/{id}/moves."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=RebalanceMovePageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, rebalance_id: str) -> Response:
        """Its moves in their order, each with how far it is."""
        row = selectors.rebalance_get(rebalance_id)

        def fetch(after: Any | None, limit: int) -> list[RebalanceMove]:
            rows = selectors.moves_of(row)
            return list((rows if after is None else rows.filter(number__gt=after[0]))[:limit])

        found, following = pagination.fetched_page(request, fetch, key=lambda move: (move.number,), shape=(int,))
        return Response(pagination.body(list(RebalanceMoveSerializer(found, many=True).data), following))


class RebalanceEventsApi(APIView):
    """/api/v1/rebalances/{id}/events."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=RebalanceEventSerializer(many=True), tags=TAGS)
    def get(self, request: Request, rebalance_id: str) -> Response:
        """Who said what about it, in order."""
        del request
        rows = selectors.events_of(selectors.rebalance_get(rebalance_id))
        return Response(list(RebalanceEventSerializer(rows, many=True).data))
