"""REST of operations, and the health of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import filters, pagination, sorting
from controlplane.api.ranges import span_of
from controlplane.core import selectors
from controlplane.core.models import OperationState
from controlplane.core.serializers import OperationPageSerializer, OperationSerializer
from controlplane.core.staff_views import view_note

if TYPE_CHECKING:
    from rest_framework.request import Request


SORTED = {name: name for name in ("kind", "target", "state", "actor", "created_at", "finished_at")}
"""Where the database has what operations are sorted by."""
PARAMETERS = [
    filters.choice_parameter("state", OperationState.values, "only operations in this state"),
    filters.text_parameter("target", "only operations on this, such as the id of an instance"),
    filters.text_parameter(
        "kind", "only operations of this kind, such as `instance.update`; `instance` is every kind of an instance"
    ),
    filters.text_parameter("from", "begun at this moment or later: RFC 3339 or a date, UTC"),
    filters.text_parameter("to", "begun before this moment"),
    pagination.ORDER,
    sorting.parameter(SORTED, "created_at", "It goes without `order`"),
    *pagination.PARAMETERS,
]


class OperationsApi(APIView):
    """/api/v1/operations."""

    @extend_schema(responses=OperationPageSerializer, parameters=PARAMETERS, tags=["operations"])
    def get(self, request: Request) -> Response:
        """Operations of the organisation, oldest first unless it is said otherwise."""
        start, end = span_of(request)
        rows = selectors.operation_list(
            organisation=request.user.organisation,
            kind=filters.text_of(request, "kind"),
            start=start,
            end=end,
            only_on=request.user.limits.instances,
            state=filters.choice_of(request, "state", OperationState.values),
            target=filters.text_of(request, "target"),
        )
        order = sorting.order_of(request, SORTED)  # refuses both
        if order is None and pagination.is_newest_first(request):
            operations, following = pagination.newest_page(request, rows, moment="created_at", key=str)
        else:
            operations, following = sorting.rows_page(request, rows, SORTED)
        return Response(pagination.body(OperationSerializer(operations, many=True).data, following))


class OperationApi(APIView):
    """/api/v1/operations/{id}."""

    @extend_schema(responses=OperationSerializer, tags=["operations"])
    def get(self, request: Request, operation_id: str) -> Response:
        """How far an operation is. Operators of the service may ask for any tenant's."""
        caller = request.user
        operation = selectors.operation_get(
            organisation=caller.organisation,
            operation_id=operation_id,
            by_operator=caller.is_operator,
            only_on=caller.limits.instances,
        )
        of_others = operation.organisation
        if of_others is not None and of_others.pk != caller.organisation.pk:  # so it is an operator who asks
            view_note(organisation=of_others, by=caller.actor, looked_at=operation.id, place=f"GET {request.path}")
        return Response(OperationSerializer(operation).data)


def health(request: HttpRequest) -> JsonResponse:
    """/health: 200 where this process reaches its database, 503 where it does not. Needs no key."""
    del request
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "detail": "the database does not answer"}, status=503)
    return JsonResponse({"status": "ok"})
