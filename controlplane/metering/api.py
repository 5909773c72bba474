"""REST of usage, and of the jobs that make it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from django.db.models import Q
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission, caller_of
from controlplane.api import dry_runs, filters, pagination
from controlplane.api.ranges import range_of
from controlplane.clusters.services import cluster_list
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid
from controlplane.instances.selectors import instance_any
from controlplane.metering import finality, folding, jobs, selectors, services
from controlplane.metering.serializers import (
    BrokerHoursPageSerializer,
    BrokerHoursSerializer,
    FoldSerializer,
    JobPageSerializer,
    JobRunPageSerializer,
    JobRunRequestSerializer,
    JobRunSerializer,
    JobSerializer,
    LossPageSerializer,
    LossSerializer,
    MeteringStatusSerializer,
    ReconciliationPageSerializer,
    ReconciliationSerializer,
    UsageCapPageSerializer,
    UsageCapRequestSerializer,
    UsageCapSerializer,
    UsageDifferencePageSerializer,
    UsageDifferenceSerializer,
    UsagePageSerializer,
    UsageRecordPageSerializer,
)
from quota.contracts.usage import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

    from controlplane.metering.models import Difference, Loss, Reconciliation

TAGS = ["usage"]
RANGE = [
    OpenApiParameter("from", OpenApiTypes.STR, description="RFC 3339 or a date, UTC; default: this month's beginning"),
    OpenApiParameter("to", OpenApiTypes.STR, description="RFC 3339 or a date, UTC, not included; default: now"),
]
OF_RUN = OpenApiParameter("reconciliation", OpenApiTypes.INT, description="the id of a run; default: all that are kept")
LOSSES_ASKED = [
    filters.choice_parameter("settled", filters.YES_NO, "false: only those that usage waits for"),
    filters.text_parameter("cluster", "only those of this physical cluster"),
    *pagination.PARAMETERS,
]
HOURS_PER_PAGE = 1000
"""A month and more: whoever draws one needs one page."""


class UsageApi(APIView):
    """/api/v1/instances/{id}/usage."""

    @extend_schema(responses=UsagePageSerializer, parameters=[*RANGE, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Hours in which the instance used anything; the open hour so far. A page has up to 1000."""
        instance = instance_any(organisation=request.user.organisation, instance_id=instance_id)
        start, end = range_of(request)
        hours = selectors.usage_hours(instance=instance, start=start, end=end)
        page, following = pagination.items_page(request, hours, lambda hour: hour.hour, limit=HOURS_PER_PAGE)
        whole = selectors.instance_hours(instance=instance, start=start, end=end)
        return Response(pagination.body([_shown(instance.id, hour, whole.get(hour.hour)) for hour in page], following))


class UsageRecordsApi(APIView):
    """/api/v1/instances/{id}/usage/records."""

    @extend_schema(responses=UsageRecordPageSerializer, parameters=[*RANGE, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """What usage rows are made of: by topic and broker, with partition and offset of the record in `__usage`.

        Of days that are folded, some days after their end, rows are sums; where their records are `away` says.
        """
        instance = instance_any(organisation=request.user.organisation, instance_id=instance_id)
        start, end = range_of(request)
        page, following = pagination.fetched_page(
            request,
            lambda after, limit: selectors.usage_records(
                instance=instance, start=start, end=end, after=after, limit=limit
            ),
            key=lambda row: (row.hour, row.topic, row.broker, row.boot),
            shape=(str, str, int, str),
        )
        body = pagination.body([asdict(row) for row in page], following)
        return Response({**body, "away": selectors.records_away(start)})


class MeteringApi(APIView):
    """/api/v1/metering."""

    @extend_schema(responses=MeteringStatusSerializer, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Whether usage is being metered, and how far it has come."""
        del request
        return Response(MeteringStatusSerializer(selectors.status()).data)


class MeteredBrokersApi(APIView):
    """/api/v1/metering/brokers."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=BrokerHoursPageSerializer, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Up to when each broker has told all that it counted. An hour is final when every one has, or is waived."""
        del request
        found = [
            broker
            for cluster in cluster_list()
            for broker in finality.broker_hours(selectors.complete_to(cluster.name), cluster.name)
        ]
        items = cast("list[Any]", BrokerHoursSerializer(found, many=True).data)  # a list, with many=True
        return Response({"items": items})


class LossesApi(APIView):
    """/api/v1/metering/losses."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=LossPageSerializer, parameters=LOSSES_ASKED, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Records of usage that were gone before they were read, the last found first. Usage waits until each is settled."""
        rows = selectors.losses(
            is_settled=filters.yes_or_no(request, "settled"), cluster=filters.text_of(request, "cluster")
        )

        def fetch(after: Any, limit: int) -> list[Loss]:
            return list(rows[:limit] if after is None else rows.filter(pk__lt=after[0])[:limit])

        page, following = pagination.fetched_page(request, fetch, key=lambda row: (row.pk,), shape=(int,))
        items = cast("list[Any]", LossSerializer(page, many=True).data)  # a list, with many=True
        return Response(pagination.body(items, following))


def _loss(_view: APIView, _request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    return dict(LossSerializer(selectors.loss_get(ids["loss_id"])).data)


class LossSettleApi(APIView):
    """/api/v1/metering/losses/{id}/settle."""

    permission_classes = (OperatorPermission,)

    @extend_schema(request=None, responses=LossSerializer, tags=["operators"])
    @dry_runs.rehearsed(of=_loss, shows_all=True)
    def post(self, request: Request, loss_id: int) -> Response:
        """Declare that this loss costs no usage, or that what it cost is not billed.

        Usage waits for it no longer. Of several who say so the first stands.
        """
        found = selectors.loss_get(loss_id)
        services.loss_settle(loss_id=found.pk, actor=caller_of(request).actor)
        return Response(LossSerializer(selectors.loss_get(loss_id)).data)


def _cap_asked(request: Request) -> tuple[dict[str, str], dict[str, int], str]:
    """Of what, the values, and why. Raises ValidationError."""
    body = UsageCapRequestSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    said = body.validated_data
    of_it = {name: said[name] for name in ("instance_id", "boot", "topic")}
    return of_it, {name: said[name] for name in COUNTERS if name in said}, said["reason"]


def _cap(_view: APIView, request: Request, _ids: Mapping[str, Any]) -> dict[str, Any]:
    """The one of what is asked for. Raises NotFound."""
    of_it, _, _ = _cap_asked(request)
    return dict(UsageCapSerializer(selectors.cap_get(**of_it)).data)


class UsageCapsApi(APIView):
    """/api/v1/metering/caps."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=UsageCapPageSerializer, parameters=pagination.PARAMETERS, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Counters that operators have ruled out beyond some value, since they cannot be true; the newest first."""
        page, following = pagination.newest_page(request, selectors.caps(), moment="set_at", key=int)
        items = cast("list[Any]", UsageCapSerializer(page, many=True).data)  # a list, with many=True
        return Response(pagination.body(items, following))

    @extend_schema(request=UsageCapRequestSerializer, responses={201: UsageCapSerializer}, tags=["operators"])
    @dry_runs.rehearsed(of=_cap, touches_unseen=True)
    def post(self, request: Request) -> Response:
        """Believe counters of a topic and a broker's boot up to some value only, and lower what is above it.

        In place of the cap that was there. Bills so far follow at once, of days that are folded after the next reconciliation;
        invoices are not touched.
        """
        of_it, values, reason = _cap_asked(request)
        services.usage_cap(**of_it, caps=values, reason=reason, actor=caller_of(request).actor)
        return Response(UsageCapSerializer(selectors.cap_get(**of_it)).data, status=201)


class FoldApi(APIView):
    """/api/v1/metering/fold."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=FoldSerializer, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Up to when days are kept as instance-hours and topic-days alone, and why not further."""
        del request
        return Response(FoldSerializer(folding.fold_get()).data)


class ReconciliationsApi(APIView):
    """/api/v1/metering/reconciliations."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=ReconciliationPageSerializer, parameters=pagination.PARAMETERS, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Usage that was recomputed from the raw records and compared with what is known and billed; kept for 400 days."""
        rows = selectors.reconciliations()

        def fetch(after: Any, limit: int) -> list[Reconciliation]:
            return list(rows[:limit] if after is None else rows.filter(pk__lt=after[0])[:limit])

        page, following = pagination.fetched_page(request, fetch, key=lambda row: (row.pk,), shape=(int,))
        items = cast("list[Any]", ReconciliationSerializer(page, many=True).data)  # a list, with many=True
        return Response(pagination.body(items, following))


class DifferencesApi(APIView):
    """/api/v1/metering/differences."""

    permission_classes = (OperatorPermission,)

    @extend_schema(
        responses=UsageDifferencePageSerializer, parameters=[OF_RUN, *pagination.PARAMETERS], tags=["operators"]
    )
    def get(self, request: Request) -> Response:
        """Counters that were not what the raw records say, of one run or of all."""
        rows = selectors.differences(reconciliation=_run_asked(request))

        def fetch(after: Any, limit: int) -> list[Difference]:
            if after is None:
                return list(rows[:limit])
            run, number = after
            behind = Q(reconciliation__lt=run) | Q(reconciliation=run, pk__gt=number)
            return list(rows.filter(behind)[:limit])

        page, following = pagination.fetched_page(
            request, fetch, key=lambda row: (row.reconciliation_id, row.pk), shape=(int, int)
        )
        items = cast("list[Any]", UsageDifferenceSerializer(page, many=True).data)  # a list, with many=True
        return Response(pagination.body(items, following))


class JobsApi(APIView):
    """/api/v1/jobs."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=JobPageSerializer, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Jobs of the pipeline: the last run of each, when the next begins, and how far it is behind."""
        del request
        items = cast("list[Any]", JobSerializer(jobs.job_list(), many=True).data)  # a list, with many=True
        return Response({"items": items})


class JobRunsApi(APIView):
    """/api/v1/jobs/{job}/runs."""

    permission_classes = (OperatorPermission,)
    bodies_are_optional = True  # without one: what the job does by itself

    @extend_schema(responses=JobRunPageSerializer, parameters=pagination.PARAMETERS, tags=["operators"])
    def get(self, request: Request, job: str) -> Response:
        """Runs of a job, the newest first; they are kept for 400 days."""
        page, following = pagination.fetched_page(
            request,
            lambda after, limit: jobs.runs_page(job=job, after=after, limit=limit),
            key=lambda run: (run.id,),
            shape=(int,),
        )
        return Response(pagination.body([JobRunSerializer(run).data for run in page], following))

    @extend_schema(request=JobRunRequestSerializer, responses={201: JobRunSerializer}, tags=["operators"])
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, job: str) -> Response:
        """Run a job: whatever is due, or one of the last 14 days again. The runner starts it as soon as it is free."""
        body = JobRunRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        run = jobs.job_run(job=job, what=body.validated_data["what"], actor=caller_of(request).actor)
        return Response(JobRunSerializer(jobs.run_shown(run, SYSTEM_CLOCK.now())).data, status=201)


def _run_asked(request: Request) -> int | None:
    """`reconciliation`. Raises Invalid."""
    text = request.query_params.get("reconciliation")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid.field("reconciliation", "must be the id of a reconciliation")
    return int(text)


def _shown(instance_id: str, hour: selectors.UsageHour, whole: selectors.InstanceHour | None) -> dict[str, Any]:
    following = hour.hour.replace(":00:00Z", ":59:59Z")
    return {
        "hour": hour.hour,
        "produced_bytes": hour.produced_bytes,
        "consumed_bytes": hour.consumed_bytes,
        "stored_byte_hours": hour.stored_byte_hours,
        "wire_in_bytes": whole and whole.wire_in_bytes,
        "wire_out_bytes": whole and whole.wire_out_bytes,
        "requests": whole and whole.requests,
        "loop_ms": whole and whole.loop_us / 1000,
        "throttled_ms": whole and whole.throttled_ms,
        "so_far": hour.so_far,
        "records": f"/api/v1/instances/{instance_id}/usage/records?from={hour.hour}&to={following}",
    }
