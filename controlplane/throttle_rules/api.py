"""REST of throttle rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.throttle_rules import selectors, services
from controlplane.throttle_rules.serializers import (
    KINDS,
    ThrottleRuleChangeSerializer,
    ThrottleRuleCreateSerializer,
    ThrottleRulePageSerializer,
    ThrottleRuleSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

    from quota.contracts.rules import ThrottleRule

TAGS = ["throttle rules"]
PARAMETERS = [
    filters.choice_parameter("kind", KINDS, "only rules of this kind"),
    *(filters.text_parameter(name, f"only rules that name this {name}, whole") for name in selectors.NAMED),
    sorting.parameter(selectors.SORTED, "id", "What has no limit comes last"),
    *pagination.PARAMETERS,
]


def _shown(rule: ThrottleRule) -> dict[str, Any]:
    return dict(ThrottleRuleSerializer(rule).data)


class ThrottleRulesApi(APIView):
    """/api/v1/instances/{id}/throttle-rules."""

    @extend_schema(responses=ThrottleRulePageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Rules of the instance by id; quotas that Kafka clients have set are among them."""
        rules = selectors.throttle_rule_list(organisation=request.user.organisation, instance_id=instance_id)
        kind = filters.choice_of(request, "kind", KINDS)
        named = {name: filters.text_of(request, name) for name in selectors.NAMED}
        found = selectors.fitting(rules, kind=kind, **named)
        page, following = sorting.known_page(request, found, selectors.SORTED, lambda rule: rule.id)
        return Response(pagination.body(ThrottleRuleSerializer(page, many=True).data, following))

    @extend_schema(request=ThrottleRuleCreateSerializer, responses={201: ThrottleRuleSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """A limit for topics, clients or consumer groups inside the instance; in force within 2 s."""
        body = ThrottleRuleCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        rule = services.throttle_rule_create(
            organisation=request.user.organisation,
            actor=request.user.actor,
            instance_id=instance_id,
            **body.validated_data,
        )
        return Response(ThrottleRuleSerializer(rule).data, status=201)


class ThrottleRuleApi(APIView):
    """/api/v1/instances/{id}/throttle-rules/{rule}."""

    @extend_schema(
        responses={200: ThrottleRuleSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, rule_id: str) -> Response:
        """One rule."""
        rule = selectors.throttle_rule_get(
            organisation=request.user.organisation, instance_id=instance_id, rule_id=rule_id
        )
        return preconditions.answer(request, _shown(rule))

    @extend_schema(
        request=ThrottleRuleChangeSerializer,
        responses=ThrottleRuleSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, instance_id: str, rule_id: str) -> Response:
        """Other limits or names; what was owed stays owed."""
        body = ThrottleRuleChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        rule = services.throttle_rule_update(
            organisation=request.user.organisation,
            actor=request.user.actor,
            instance_id=instance_id,
            rule_id=rule_id,
            changes=body.validated_data,
            check=preconditions.check_of(request, _shown),
        )
        return preconditions.answer(request, _shown(rule))

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str, rule_id: str) -> Response:
        """The rule holds nobody any more."""
        services.throttle_rule_delete(
            organisation=request.user.organisation,
            actor=request.user.actor,
            instance_id=instance_id,
            rule_id=rule_id,
            check=preconditions.check_of(request, _shown),
        )
        return Response(status=204)
