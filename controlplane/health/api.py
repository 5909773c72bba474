"""REST of health: metrics for the tenant's own Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from controlplane.health.metrics import metrics_text
from controlplane.health.selectors import health_get
from controlplane.instances.selectors import instance_list

if TYPE_CHECKING:
    from rest_framework.request import Request

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsApi(APIView):
    """/api/v1/metrics."""

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR}, tags=["health"])
    def get(self, request: Request) -> HttpResponse:
        """The health of every instance that runs, for Prometheus; the API key is its bearer token."""
        caller = request.user
        instances = list(instance_list(organisation=caller.organisation, only=caller.limits.instances))
        return HttpResponse(metrics_text(health_get(instances)), content_type=MEDIA_TYPE)
