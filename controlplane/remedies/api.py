"""REST of reasons and remedies."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission, caller_of
from controlplane.api import dry_runs, pagination
from controlplane.api.ranges import range_of
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.quotas.api import RANGE
from controlplane.remedies.leaders import leaders_spread, leaders_spread_check
from controlplane.remedies.neighbours import noise_everywhere, noise_get
from controlplane.remedies.reasons import reasons_get
from controlplane.remedies.serializers import (
    EverybodysNoisePageSerializer,
    EverybodysNoiseSerializer,
    LeadersSpreadSerializer,
    NoisePageSerializer,
    NoiseSerializer,
    ReasonsSerializer,
    reason_body,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

TAGS = ["quotas"]


class ThrottlingReasonsApi(APIView):
    """/api/v1/instances/{id}/throttling-reasons."""

    @extend_schema(responses=ReasonsSerializer, parameters=RANGE, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Why somebody waited, what is alike as one: which client and topic was behind it, and what would help at which price."""
        start, end = range_of(request, beginning=SYSTEM_CLOCK.now() - timedelta(days=1))
        found = reasons_get(organisation=caller_of(request).organisation, instance_id=instance_id, start=start, end=end)
        body = pagination.body([reason_body(reason) for reason in found.found], None)
        return Response({**body, "is_whole": found.is_whole})


class LeadersSpreadApi(APIView):
    """/api/v1/instances/{id}/leaders/spread."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(request=None, responses={200: dry_runs.ANSWER, 202: LeadersSpreadSerializer}, tags=["instances"])
    def post(self, request: Request, instance_id: str) -> Response:
        """Have other replicas in sync lead, so that brokers carry alike. Nothing is copied; once in five minutes.

        A dry run names who would lead what (`leaders.<topic>.<partition>`) and what each broker would carry (`brokers.<id>.…`).
        """
        caller = caller_of(request)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(leaders_spread_check(organisation=caller.organisation, instance_id=instance_id))
        operation = leaders_spread(organisation=caller.organisation, actor=caller.actor, instance_id=instance_id)
        return Response({"instance_id": instance_id, "operation_id": operation.id}, status=202)


class NeighboursApi(APIView):
    """/api/v1/instances/{id}/neighbours."""

    @extend_schema(responses=NoisePageSerializer, parameters=RANGE, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """When requests were slow on a broker, and how much of it others had meanwhile, with a score. Kept for a day."""
        start, end = range_of(request, beginning=SYSTEM_CLOCK.now() - timedelta(days=1))
        found = noise_get(organisation=caller_of(request).organisation, instance_id=instance_id, start=start, end=end)
        return Response(pagination.body(list(NoiseSerializer(found, many=True).data), None))


class EverybodysNeighboursApi(APIView):
    """/api/v1/neighbours."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=EverybodysNoisePageSerializer, parameters=RANGE, tags=["operators"])
    def get(self, request: Request) -> Response:
        """The same of all instances, with those that had most of the broker meanwhile."""
        start, end = range_of(request, beginning=SYSTEM_CLOCK.now() - timedelta(days=1))
        found = noise_everywhere(start=start, end=end)
        return Response(pagination.body(list(EverybodysNoiseSerializer(found, many=True).data), None))
