"""REST of changes that are made later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.admission import scheduling
from controlplane.admission.rules import SIZES
from controlplane.api import dry_runs, pagination, sorting
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instance_rest.serializers import (
    ScheduledChangeCreateSerializer,
    ScheduledChangePageSerializer,
    ScheduledChangeSerializer,
)

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from rest_framework.request import Request

    from controlplane.admission.models import ScheduledChange

TAGS = ["instances"]
SORTED = {name: name for name in ("at", "state", "created_at", "ended_at")}
PARAMETERS = [sorting.parameter(SORTED, "-created_at"), *pagination.PARAMETERS]


def _newest(request: Request, rows: QuerySet[ScheduledChange]) -> tuple[list[ScheduledChange], str | None]:
    return pagination.newest_page(request, rows, moment="created_at", key=str)


class ScheduledChangesApi(APIView):
    """/api/v1/instances/{id}/scheduled-changes."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(responses=ScheduledChangePageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Changes of sizes that are made later, and what became of earlier ones; the newest first."""
        rows = scheduling.change_list(organisation=caller_of(request).organisation, instance_id=instance_id)
        page, following = sorting.rows_page(request, rows, SORTED, default=_newest)
        return Response(pagination.body(list(ScheduledChangeSerializer(page, many=True).data), following))

    @extend_schema(
        request=ScheduledChangeCreateSerializer,
        responses={200: dry_runs.ANSWER, 201: ScheduledChangeSerializer},
        tags=TAGS,
    )
    def post(self, request: Request, instance_id: str) -> Response:
        """Other sizes from a moment or the next window on. What could not be done now is refused; it is judged again then."""
        body = ScheduledChangeCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller, members = caller_of(request), body.validated_data
        asked: dict[str, Any] = {
            "organisation": caller.organisation,
            "actor": caller.actor,
            "instance_id": instance_id,
            "at": members.pop("at", None),
            "changes": {name: members.pop(name) for name in SIZES if name in members},
            "accept_full_storage": False,
            "confirm_price": False,
            "admit_paying": caller.limits.admit_paying,
        }
        in_window = members.pop("in_next_window", False)
        if in_window:
            asked["at"] = scheduling.next_window(organisation=caller.organisation, instance_id=instance_id)
        asked |= members
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(scheduling.change_check(**asked, clock=SYSTEM_CLOCK))
        made = scheduling.change_schedule(**asked, in_window=in_window)
        return Response(ScheduledChangeSerializer(made).data, status=201)


class ScheduledChangeApi(APIView):
    """/api/v1/instances/{id}/scheduled-changes/{change_id}."""

    @extend_schema(responses=ScheduledChangeSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, change_id: str) -> Response:
        """One of them."""
        found = scheduling.change_get(
            organisation=caller_of(request).organisation, instance_id=instance_id, change_id=change_id
        )
        return Response(ScheduledChangeSerializer(found).data)

    @extend_schema(responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str, change_id: str) -> Response:
        """Cancel it. It stays in the list, as cancelled."""
        caller = caller_of(request)
        scheduling.change_cancel(
            organisation=caller.organisation, actor=caller.actor, instance_id=instance_id, change_id=change_id
        )
        return Response(status=204)
