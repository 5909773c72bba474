"""REST of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.core.dry_runs import affected
from controlplane.routes import selectors, services
from controlplane.routes.selectors import SHOWN_STATES
from controlplane.routes.serializers import (
    RouteAcceptedSerializer,
    RouteChangeSerializer,
    RouteCreateSerializer,
    RoutePageSerializer,
    RouteSerializer,
)
from controlplane.routes.validation import SECURITIES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rest_framework.request import Request

    from controlplane.core.dry_runs import Affected
    from controlplane.instances.models import Route

TAGS = ["routes"]
MEASURED = ("state", "bootstrap")
"""What is shown of a route that its tenant has not set."""
PARAMETERS = [
    filters.choice_parameter("state", SHOWN_STATES, "only routes in this state"),
    filters.choice_parameter("security", SECURITIES, "only routes with this security"),
    sorting.parameter(selectors.SORTED, "created_at"),
    *pagination.PARAMETERS,
]


def _every_route(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    routes = selectors.route_list(organisation=caller_of(request).organisation, instance_id=ids["instance_id"])
    return {route.key: dict(RouteSerializer(route).data) for route in routes}


def _settings(route: Route) -> dict[str, Any]:
    return preconditions.without(RouteSerializer(route).data, MEASURED)


def _connected(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
    clients = selectors.route_clients(organisation=caller_of(request).organisation, **ids)
    return affected("clients", clients, "are connected by this route: they are cut off")


class RoutesApi(APIView):
    """/api/v1/instances/{id}/routes."""

    @extend_schema(responses=RoutePageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Routes of the instance with their addresses, the oldest first."""
        routes = selectors.route_list(organisation=caller_of(request).organisation, instance_id=instance_id)
        wanted = {
            "shown_state": filters.choice_of(request, "state", SHOWN_STATES),
            "security": filters.choice_of(request, "security", SECURITIES),
        }
        found = [
            route for route in routes if all(value in ("", getattr(route, name)) for name, value in wanted.items())
        ]
        page, following = sorting.known_page(request, found, selectors.SORTED, selectors.place_of)
        return Response(pagination.body(list(RouteSerializer(page, many=True).data), following))

    @extend_schema(request=RouteCreateSerializer, responses={202: RouteAcceptedSerializer}, tags=TAGS)
    @dry_runs.rehearsed(of=_every_route)
    def post(self, request: Request, instance_id: str) -> Response:
        """Another way in, with a port of its own on each broker. The operation says when it can be used."""
        body = RouteCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        route, operation = services.route_create(
            organisation=caller_of(request).organisation,
            actor=caller_of(request).actor,
            instance_id=instance_id,
            members=body.validated_data,
        )
        return Response({"id": route.key, "operation_id": operation.id}, status=202)


class RouteApi(APIView):
    """/api/v1/instances/{id}/routes/{route}."""

    @extend_schema(
        responses={200: RouteSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, route_id: str) -> Response:
        """One route."""
        route = selectors.route_get(
            organisation=caller_of(request).organisation, instance_id=instance_id, route_id=route_id
        )
        return preconditions.answer(request, dict(RouteSerializer(route).data), _settings(route))

    @extend_schema(
        request=RouteChangeSerializer,
        responses={202: RouteAcceptedSerializer},
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, instance_id: str, route_id: str) -> Response:
        """Other members. Connections that it would not let in any more are closed; its ports stay."""
        body = RouteChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        route, operation = services.route_update(
            organisation=caller_of(request).organisation,
            actor=caller_of(request).actor,
            instance_id=instance_id,
            route_id=route_id,
            changes=body.validated_data,
            check=preconditions.check_of(request, _settings),
        )
        return Response({"id": route.key, "operation_id": operation.id}, status=202)

    @extend_schema(responses={202: RouteAcceptedSerializer}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_connected)
    def delete(self, request: Request, instance_id: str, route_id: str) -> Response:
        """Close it, with its connections. Its ports are nobody's for a week."""
        operation = services.route_delete(
            organisation=caller_of(request).organisation,
            actor=caller_of(request).actor,
            instance_id=instance_id,
            route_id=route_id,
            check=preconditions.check_of(request, _settings),
        )
        return Response({"id": route_id, "operation_id": operation.id}, status=202)
