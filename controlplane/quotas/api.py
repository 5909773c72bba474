"""REST of "why was I throttled?", of the guarantee and of the quota report."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission
from controlplane.api import pagination
from controlplane.api.ranges import range_of
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid
from controlplane.instances.selectors import instance_any
from controlplane.quotas import history, report
from controlplane.quotas.moments import text_of_ms
from controlplane.quotas.serializers import (
    GuaranteePageSerializer,
    QuotaReportPageSerializer,
    ThrottledIntervalPageSerializer,
)
from quota.contracts.throttled import WINDOWS_S, ThrottledInterval
from quota.core.explain import explain_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request

    from controlplane.quotas.models import RecordedInterval

TAGS = ["quotas"]
RANGE = [
    OpenApiParameter("from", OpenApiTypes.STR, description="RFC 3339 or a date, UTC; default: 24 hours ago"),
    OpenApiParameter("to", OpenApiTypes.STR, description="RFC 3339 or a date, UTC, not included; default: now"),
]

DAYS = [
    OpenApiParameter("from", OpenApiTypes.STR, description="RFC 3339 or a date, UTC; default: 30 days ago"),
    OpenApiParameter("to", OpenApiTypes.STR, description="RFC 3339 or a date, UTC, not included; default: now"),
]
DAY = OpenApiParameter("day", OpenApiTypes.DATE, description="UTC, 2026-11-21; default: the last one with a report")


class ThrottlingApi(APIView):
    """/api/v1/instances/{id}/throttling."""

    @extend_schema(
        responses=ThrottledIntervalPageSerializer,
        parameters=[*RANGE, pagination.ORDER, *pagination.PARAMETERS],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """Why was I throttled? Each interval of the last 7 days with its reason and every input of the decision."""
        instance = instance_any(organisation=request.user.organisation, instance_id=instance_id)
        start, end = range_of(request, beginning=SYSTEM_CLOCK.now() - timedelta(days=1))
        newest = pagination.is_newest_first(request)

        def fetch(after: history.After | None, limit: int) -> list[RecordedInterval]:
            return history.intervals(
                instance=instance, start=start, end=end, after=after, limit=limit, newest_first=newest
            )

        page, following = pagination.fetched_page(
            request,
            fetch,
            key=lambda row: (row.started_at, row.direction, row.rule, row.epoch),
            shape=(str, str, str, int),
        )
        return Response(pagination.body([_shown(row) for row in page], following))


class GuaranteeApi(APIView):
    """/api/v1/instances/{id}/guarantee."""

    @extend_schema(responses=GuaranteePageSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """How well the bought bandwidth was kept, for each day on which anybody waited or more than it flowed."""
        instance = instance_any(organisation=request.user.organisation, instance_id=instance_id)
        days = history.guarantee_days(instance=instance, now=SYSTEM_CLOCK.now())
        items = [asdict(day) | {"over_admission_percent": _windows(day.over_admission_percent)} for day in days]
        return Response(pagination.body(items, None))


class QuotaReportApi(APIView):
    """/api/v1/instances/{id}/quota-report."""

    @extend_schema(responses=QuotaReportPageSerializer, parameters=[*DAYS, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """How each day went against the limit, and when it will not do any more; the newest first, for 400 days."""
        instance = instance_any(organisation=request.user.organisation, instance_id=instance_id)
        start, end = range_of(request, beginning=SYSTEM_CLOCK.now() - timedelta(days=30))
        page, following = pagination.fetched_page(
            request,
            lambda after, limit: report.report_days(instance=instance, start=start, end=end, after=after, limit=limit),
            key=lambda row: (row.day, row.resource),
            shape=(str, str),
        )
        return Response(pagination.body([asdict(row) for row in page], following))


class EverybodysQuotaReportApi(APIView):
    """/api/v1/quota-report."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=QuotaReportPageSerializer, parameters=[DAY, *pagination.PARAMETERS], tags=["operators"])
    def get(self, request: Request) -> Response:
        """The quota report of every instance on one day, by instance."""
        day = _day(request.query_params.get("day"))
        page, following = pagination.fetched_page(
            request,
            lambda after, limit: report.everybodys_page(day=day, after=after, limit=limit),
            key=lambda row: (row.instance, row.resource),
            shape=(str, str),
        )
        return Response(pagination.body([asdict(row) for row in page], following))


def _day(text: str | None) -> str:
    """Raises Invalid."""
    if text is None:
        return report.newest_day() or ""
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise Invalid.field("day", "must be a day such as 2026-11-21") from error


def _shown(row: RecordedInterval) -> dict[str, Any]:
    interval = ThrottledInterval.from_document(row.document)
    return {
        "direction": interval.direction,
        "rule": interval.rule,
        "started_at": row.started_at,
        "ended_at": text_of_ms(interval.ended_at_ms),
        "limit": interval.limit,
        "throttled_ms": interval.throttled_ms,
        "under_limit_ms": interval.under_limit_ms,
        "over_admission_percent": _windows(interval.over_percent),
        "explanation": explain_interval(interval),
        "inputs": {
            "at": text_of_ms(interval.moment.at_ms),
            "strategy": interval.strategy,
            "epoch": interval.epoch,
            "brokers": [broker._asdict() for broker in interval.moment.brokers],
        },
    }


def _windows(percents: Sequence[float]) -> dict[str, float]:
    return {f"window_{window}_s": percent for window, percent in zip(WINDOWS_S, percents, strict=True)}
