"""REST of history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.authentication import ApiKeyAuthentication
from controlplane.accounts.permissions import OperatorPermission, caller_of
from controlplane.api.filters import choice_of, choice_parameter
from controlplane.api.ranges import moment_of
from controlplane.clusters.services import cluster_named
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid
from controlplane.history.by_certificate import CertificateAuthentication
from controlplane.history.exposition import MEDIA_TYPE
from controlplane.history.lag.selectors import group_history_get
from controlplane.history.metrics import EVERY
from controlplane.history.now import exposition_get, scraping_get
from controlplane.history.requests.brokers import broker_history_get, cluster_broker_history_get
from controlplane.history.requests.figures import per_s
from controlplane.history.requests.selectors import requests_get, rows_of
from controlplane.history.requests.topics import topic_history_get
from controlplane.history.resolutions import MOST_POINTS
from controlplane.history.scraping import BY_KEY, WAYS
from controlplane.history.selectors import history_get, metrics_named
from controlplane.history.serializers import (
    BrokerHistorySerializer,
    GroupHistorySerializer,
    HistorySerializer,
    InstanceMetricSerializer,
    RequestsSerializer,
    TopicHistorySerializer,
)
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.history.requests.selectors import Requests, Step
    from controlplane.history.selectors import History

TAGS = ["history"]
GROUP_TAGS = ["groups"]
TOPIC_TAGS = ["topics"]
OPERATOR_TAGS = ["operators"]
DEFAULT_SPAN = timedelta(hours=1)
DEFAULT_METRIC = next(iter(EVERY))
RANGE = [
    OpenApiParameter("from", OpenApiTypes.STR, description="RFC 3339 or a date, UTC; default: an hour before `to`"),
    OpenApiParameter("to", OpenApiTypes.STR, description="RFC 3339 or a date, UTC, not included; default: now"),
]
KEY_IN_SCHEMA: list[Any] = [{"apiKey": []}]
"""OpenAPI 3.0 has no word for client certificates."""
LONGEST_STEP_S = 400 * 86_400
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


def _step(name: str, shortest_s: int = 10) -> OpenApiParameter:
    return OpenApiParameter(
        name,
        {"type": "integer", "minimum": shortest_s, "maximum": LONGEST_STEP_S, "multipleOf": shortest_s},
        description=f"seconds; default: the shortest that makes no more than {MOST_POINTS} points",
    )


class HistoryApi(APIView):
    """/api/v1/instances/{id}/history."""

    @extend_schema(
        responses=HistorySerializer,
        parameters=[
            *RANGE,
            _step("step"),
            OpenApiParameter(
                "metrics",
                OpenApiTypes.STR,
                description=f"names with commas between: {', '.join(EVERY)}; default: all",
            ),
        ],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """The figures of an instance over time: 10 s for an hour, a minute for 15 days, an hour for 400 days."""
        found = _found(request, instance_id, "metrics", "step")
        return Response({**_document(found), "gaps": _gaps(found)})


class InstanceRequestsApi(APIView):
    """/api/v1/instances/{id}/requests."""

    @extend_schema(responses=RequestsSerializer, parameters=[*RANGE, _step("step")], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Requests by API, with their errors and latencies: over a time, and in its steps."""
        instance = instance_any(organisation=caller_of(request).organisation, instance_id=instance_id)
        start, end = _range(request)
        found = requests_get(instance=instance, start=start, end=end, step_s=_whole(request, "step"))
        return Response(_requests_document(found))


class InstanceMetricsApi(APIView):
    """/api/v1/instances/{id}/metrics."""

    @extend_schema(
        responses=InstanceMetricSerializer,
        parameters=[
            OpenApiParameter("name", {"type": "string", "enum": list(EVERY)}, description=f"default: {DEFAULT_METRIC}"),
            *RANGE,
            _step("step_s"),
        ],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """One metric of the history, its averages only."""
        found = _found(request, instance_id, "name", "step_s")
        (series,) = found.series
        items = [{"time": time, "value": value} for time, value in zip(found.times, series.values, strict=True)]
        gaps = _gaps(found)
        return Response(
            {
                "name": series.metric.name,
                "unit": series.metric.unit,
                "items": items,
                "gaps": gaps,
                "is_complete": found.is_complete,
            }
        )


class InstancePrometheusApi(APIView):
    """/api/v1/instances/{id}/prometheus."""

    authentication_classes = (ApiKeyAuthentication, CertificateAuthentication)

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR}, tags=TAGS, auth=KEY_IN_SCHEMA)
    def get(self, request: Request, instance_id: str) -> HttpResponse:
        """The newest figures of an instance and the lag of its groups, for Prometheus.

        The API key is its bearer token. Where the service takes them, a client certificate does in its place.
        """
        text = exposition_get(organisation=caller_of(request).organisation, instance_id=instance_id)
        return HttpResponse(text, content_type=MEDIA_TYPE)


class InstanceScrapeConfigApi(APIView):
    """/api/v1/instances/{id}/scrape-config."""

    @extend_schema(
        responses={(200, "text/plain"): OpenApiTypes.STR},
        parameters=[
            choice_parameter("by", WAYS, "what that Prometheus shows: an API key (default), or a client certificate")
        ],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> HttpResponse:
        """What to paste into the configuration of a Prometheus that is to read the instance's figures: YAML."""
        found = scraping_get(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            asked_at=request.build_absolute_uri("/"),
            by=choice_of(request, "by", WAYS) or BY_KEY,
        )
        return HttpResponse(found.config, content_type="text/plain; charset=utf-8")


class GroupHistoryApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/history."""

    @extend_schema(responses=GroupHistorySerializer, parameters=[*RANGE, _step("step")], tags=GROUP_TAGS)
    def get(self, request: Request, instance_id: str, group: str) -> Response:
        """The lag of a group over time, and the records it read: 10 s for an hour, a minute for 15 days, an hour for 400 days.

        It outlives the group. What it read, and what was written to what it reads, is known of whole minutes.
        """
        start, end = _range(request)
        found = group_history_get(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            name=group,
            start=start,
            end=end,
            step_s=_whole(request, "step"),
        )
        return Response(_document(found))


class TopicHistoryApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/history."""

    @extend_schema(responses=TopicHistorySerializer, parameters=[*RANGE, _step("step")], tags=TOPIC_TAGS)
    def get(self, request: Request, instance_id: str, topic: str) -> Response:
        """What a topic took in, gave out and stored over time, as far back as an instance has it. It outlives the topic."""
        start, end = _range(request)
        found = topic_history_get(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            name=topic,
            start=start,
            end=end,
            step_s=_whole(request, "step"),
        )
        return Response(_document(found))


class InstanceBrokerHistoryApi(APIView):
    """/api/v1/instances/{id}/brokers/{broker}/history."""

    @extend_schema(responses=BrokerHistorySerializer, parameters=[*RANGE, _step("step")], tags=TAGS)
    def get(self, request: Request, instance_id: str, broker: int) -> Response:
        """What an instance asked of one of its brokers over time: flow, requests, errors and latencies."""
        start, end = _range(request)
        found = broker_history_get(
            instance=instance_any(organisation=caller_of(request).organisation, instance_id=instance_id),
            broker=broker,
            start=start,
            end=end,
            step_s=_whole(request, "step"),
        )
        return Response(_document(found))


class ClusterBrokerHistoryApi(APIView):
    """/api/v1/clusters/{cluster}/brokers/{broker}/history."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=BrokerHistorySerializer, parameters=[*RANGE, _step("step")], tags=OPERATOR_TAGS)
    def get(self, request: Request, cluster: str, broker: int) -> Response:
        """What all instances together asked of a broker over time: flow, requests, errors and latencies."""
        start, end = _range(request)
        found = cluster_broker_history_get(
            cluster=cluster_named(cluster), broker=broker, start=start, end=end, step_s=_whole(request, "step")
        )
        return Response(_document(found))


def _found(request: Request, instance_id: str, names: str, step: str) -> History:
    """As the parameters called `names` and `step` ask. Raises NotFound, Invalid."""
    instance = instance_any(organisation=caller_of(request).organisation, instance_id=instance_id)
    wanted = request.query_params.get(names)
    if names == "name":
        metrics = metrics_named(DEFAULT_METRIC if wanted is None else wanted, names)
        if len(metrics) != 1:
            raise Invalid.field(names, f"must be one of {', '.join(EVERY)}")
    else:
        metrics = metrics_named(wanted, names)
    start, end = _range(request)
    return history_get(instance=instance, start=start, end=end, step_s=_whole(request, step), metrics=metrics)


def _range(request: Request) -> tuple[datetime, datetime]:
    """Raises Invalid."""
    end = moment_of(request, "to") or SYSTEM_CLOCK.now()
    start = moment_of(request, "from")
    return max(end, EARLIEST) - DEFAULT_SPAN if start is None else start, end


def _whole(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Invalid.field(name, "must be a number of seconds")
    if int(text) > LONGEST_STEP_S:
        raise Invalid.field(name, f"must be at most {LONGEST_STEP_S} seconds")
    return int(text)


def _requests_document(found: Requests) -> dict[str, Any]:
    return {
        "start": found.start,
        "end": found.end,
        "step_s": found.step_s,
        "resolution_s": found.resolution_s,
        "items": [row.as_json() for row in rows_of(found)],
        "steps": [
            {"time": time, "requests_per_s": None, "errors_per_s": None} if step is None else _step_document(step)
            for time, step in zip(found.times, found.steps, strict=True)
        ],
        "is_complete": found.is_complete,
        "next": None,
    }


def _step_document(step: Step) -> dict[str, Any]:
    counts = step.counts
    return {
        "time": step.time,
        "requests_per_s": {name: per_s(api.requests, step.seconds) for name, api in sorted(counts.apis.items())},
        "errors_per_s": {code: per_s(count, step.seconds) for code, count in sorted(counts.errors.items())},
    }


def _gaps(found: History) -> list[dict[str, datetime]]:
    return [{"start": start, "end": end} for start, end in found.gaps]


def _document(found: History) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {"time": list(found.times)}
    for series in found.series:
        columns[series.metric.name] = series.values
        if series.metric.maximum is not None:
            columns[series.metric.maximum] = series.maxima
    return {
        "start": found.start,
        "end": found.end,
        "step_s": found.step_s,
        "resolution_s": found.resolution_s,
        "metrics": [
            {"name": each.metric.name, "unit": each.metric.unit, "maximum": each.metric.maximum}
            for each in found.series
        ],
        "items": [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)],
        "is_complete": found.is_complete,
        "next": None,
    }
