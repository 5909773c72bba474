"""REST of connections. These lists have no pages: rates change from moment to moment, and whoever is not told is in the sums."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import filters, sorting
from controlplane.connections import selectors
from controlplane.connections.serializers import (
    ConnectionQuerySerializer,
    ConnectionsSerializer,
    RefusedConnectionsSerializer,
    RefusedQuerySerializer,
    TalkerQuerySerializer,
    TalkersSerializer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    from controlplane.api.sorting import Order
    from controlplane.connections.selectors import ConnectionView, RefusedView

TAGS = ["connections"]
SORTED: dict[str, Callable[[ConnectionView], str | float | None]] = {
    "client_id": lambda row: row.client_id,
    "address": lambda row: row.address,
    "principal": lambda row: row.principal,
    "broker": lambda row: row.broker,
    "connected_at": lambda row: row.connected_at.timestamp(),
    "in_bytes_per_s": lambda row: row.in_bytes_per_s,
    "out_bytes_per_s": lambda row: row.out_bytes_per_s,
    "requests_per_s": lambda row: row.requests_per_s,
}
REFUSED_SORTED: dict[str, Callable[[RefusedView], str | float | None]] = {
    "address": lambda row: row.address,
    "reason": lambda row: row.reason,
    "count": lambda row: row.count,
    "last_at": lambda row: row.last_at.timestamp(),
}
"""What both lists are sorted by."""
SORT = sorting.parameter(SORTED, "the busiest first")
REFUSED_SORT = sorting.parameter(REFUSED_SORTED, "-last_at")


class ConnectionsApi(APIView):
    """/api/v1/instances/{id}/connections."""

    @extend_schema(responses=ConnectionsSerializer, parameters=[ConnectionQuerySerializer, SORT], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Who is connected at this moment, the busiest first unless it is said otherwise.

        Brokers tell 1,000 each one by one, those that move most: filters and orders are of these. `others` counts whoever fits
        and is beyond `limit`; without a filter also those that brokers do not tell.
        """
        order, query = sorting.order_of(request, SORTED), filters.query_of(request, ConnectionQuerySerializer)
        limit, wanted = query.pop("limit"), query
        found = selectors.connections_read(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            most=limit,
            wanted=wanted,
            in_order=None if order is None else partial(_sorted, order),
        )
        body = {"items": found.connections, "others": found.others, "missing_brokers": found.missing_brokers}
        return Response(ConnectionsSerializer(body).data)


class RefusedConnectionsApi(APIView):
    """/api/v1/instances/{id}/refused-connections."""

    @extend_schema(responses=RefusedConnectionsSerializer, parameters=[RefusedQuerySerializer, REFUSED_SORT], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Connections that were not taken, or ended before anything could be done on them, and why.

        The latest come first unless it is said otherwise.
        """
        order, query = sorting.order_of(request, REFUSED_SORTED), filters.query_of(request, RefusedQuerySerializer)
        limit = query.pop("limit")
        found = selectors.connections_read(
            organisation=caller_of(request).organisation, instance_id=instance_id, most=1
        )
        rows = [row for row in found.refused if selectors.fits(row, query)]
        if order is not None:
            rows = sorting.in_order(rows, order, value=REFUSED_SORTED[order.field], key=_refused_key)
        left_out = sum(row.count for row in rows[limit:])
        body = {
            "items": rows[:limit],
            "other_count": left_out + (0 if query else found.other_refused),
            "missing_brokers": found.missing_brokers,
        }
        return Response(RefusedConnectionsSerializer(body).data)


class TalkersApi(APIView):
    """/api/v1/instances/{id}/talkers."""

    @extend_schema(responses=TalkersSerializer, parameters=[TalkerQuerySerializer], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Who produces and consumes how much of which topic, the busiest first."""
        query = filters.query_of(request, TalkerQuerySerializer)
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


def _sorted(order: Order, rows: list[ConnectionView]) -> list[ConnectionView]:
    return sorting.in_order(rows, order, value=SORTED[order.field], key=_connection_key)


def _connection_key(row: ConnectionView) -> str:
    return "\0".join((row.client_id, row.address, row.connected_at.isoformat(), str(row.broker)))


def _refused_key(row: RefusedView) -> str:
    return f"{row.address}\0{row.route_id}\0{row.reason}"
