"""REST of connections. These lists have no pages: rates change from moment to moment, and whoever is not told is in the sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.connections import selectors
from controlplane.connections.serializers import (
    ConnectionsSerializer,
    MostSerializer,
    RefusedConnectionsSerializer,
    TalkerQuerySerializer,
    TalkersSerializer,
)

if TYPE_CHECKING:
    from typing import Any

    from rest_framework.request import Request

TAGS = ["connections"]


class ConnectionsApi(APIView):
    """/api/v1/instances/{id}/connections."""

    @extend_schema(responses=ConnectionsSerializer, parameters=[MostSerializer], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Who is connected at this moment, the busiest first."""
        limit = _query(MostSerializer, request)["limit"]
        found = selectors.connections_read(
            organisation=caller_of(request).organisation, instance_id=instance_id, most=limit
        )
        body = {"items": found.connections, "others": found.others, "missing_brokers": found.missing_brokers}
        return Response(ConnectionsSerializer(body).data)


class RefusedConnectionsApi(APIView):
    """/api/v1/instances/{id}/refused-connections."""

    @extend_schema(responses=RefusedConnectionsSerializer, parameters=[MostSerializer], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Connections that were not taken, or ended before anything could be done on them, and why; the latest first."""
        limit = _query(MostSerializer, request)["limit"]
        found = selectors.connections_read(
            organisation=caller_of(request).organisation, instance_id=instance_id, most=1
        )
        left_out = sum(row.count for row in found.refused[limit:])
        body = {
            "items": found.refused[:limit],
            "other_count": found.other_refused + left_out,
            "missing_brokers": found.missing_brokers,
        }
        return Response(RefusedConnectionsSerializer(body).data)


class TalkersApi(APIView):
    """/api/v1/instances/{id}/talkers."""

    @extend_schema(responses=TalkersSerializer, parameters=[TalkerQuerySerializer], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Who produces and consumes how much of which topic, the busiest first."""
        query = _query(TalkerQuerySerializer, request)
        found = selectors.talkers_read(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            topic=query.get("topic"),
            most=query["limit"],
        )
        body = {
            "produced_bytes_per_s": found.produced_bytes_per_s,
            "consumed_bytes_per_s": found.consumed_bytes_per_s,
            "items": found.talkers,
            "others": found.others,
            "missing_brokers": found.missing_brokers,
        }
        return Response(TalkersSerializer(body).data)


def _query(serializer: type[MostSerializer], request: Request) -> dict[str, Any]:
    query = serializer(data=request.query_params.dict())
    query.is_valid(raise_exception=True)
    found: dict[str, Any] = query.validated_data
    return found
