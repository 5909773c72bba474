"""REST of loads into a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.loads import selectors, services
from controlplane.loads.serializers import (
    KINDS,
    KeptTablePageSerializer,
    KeptTableSerializer,
    LoadBegunSerializer,
    LoadChangeSerializer,
    LoadCreateSerializer,
    LoadDeleteSerializer,
    LoadPageSerializer,
    LoadRunCreateSerializer,
    LoadRunPageSerializer,
    LoadRunSerializer,
    LoadSerializer,
    asked_of,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.loads.models import Load

TAGS = ["lake loads"]
MEASURED = ("state", "rows", "bytes", "partitions", "next_start_at", "failures", "last_run", "reading")
"""What is shown of a load that nobody has set: how it runs, and what an installation says of reading its table."""
PARAMETERS = [
    filters.text_parameter("topic", "only loads of this topic"),
    filters.choice_parameter("kind", KINDS, "only loads into the service's folder, or into a bucket"),
    filters.choice_parameter("enabled", filters.YES_NO, "only loads whose schedule is on, or off"),
    sorting.parameter(selectors.SORTED, "id"),
    *pagination.PARAMETERS,
]


class LoadsApi(APIView):
    """/api/v1/instances/{id}/lake-loads."""

    @extend_schema(responses=LoadPageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Loads of topics into Delta Lake tables, each with its last run."""
        rows = selectors.load_list(organisation=caller_of(request).organisation, instance_id=instance_id)
        topic, enabled = filters.text_of(request, "topic"), filters.yes_or_no(request, "enabled")
        kind = filters.choice_of(request, "kind", KINDS)
        found = [
            load
            for load in rows
            if topic in ("", load.topic) and kind in ("", load.kind) and enabled in (None, load.enabled)
        ]
        page, following = sorting.known_page(request, found, selectors.SORTED, lambda load: load.pk)
        return Response(pagination.body(_shown(page), following))

    @extend_schema(request=LoadCreateSerializer, responses={201: LoadSerializer, 202: LoadBegunSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """Set up a load of a topic into a table. What it reads is charged to the consume limit of the instance.

        With `destination` it loads at once, all that the topic has or what lies between `from` and `to`: 202, with the operation
        that ends when it has. With `kind` it is only set up: 201; with `every_minutes` its first run begins at once, else when it
        is asked for. Where it goes can not be changed later.
        """
        body = LoadCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller_of(request).limits.admit_topic(body.validated_data["topic"])
        place = caller_of(request).place(instance_id)
        if "destination" in body.validated_data:
            load, operation = services.load_begin(**place, **body.validated_data)
            return Response({**_shown([load])[0], "operation_id": operation.id}, status=202)
        load = services.load_create(**place, **body.validated_data)
        return Response(_shown([load])[0], status=201)


class LoadApi(APIView):
    """/api/v1/instances/{id}/lake-loads/{load_id}."""

    @extend_schema(
        responses={200: LoadSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, load_id: str) -> Response:
        """One load, with its last run."""
        return _answer(request, _load(request, instance_id, load_id))

    @extend_schema(
        request=LoadChangeSerializer, responses=LoadSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, instance_id: str, load_id: str) -> Response:
        """Another schedule, or another key of the bucket."""
        body = LoadChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        place = caller_of(request).place(instance_id)
        check = preconditions.check_of(request, _settings)
        load = services.load_update(**place, load_id=load_id, changes=body.validated_data, check=check)
        return _answer(request, load)

    @extend_schema(responses={204: None}, parameters=[LoadDeleteSerializer, preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str, load_id: str) -> Response:
        """Load no more. The table is kept or removed, as `table` says; a copy in a bucket stays."""
        removes = filters.query_of(request, LoadDeleteSerializer)["table"] == "remove"
        services.load_delete(
            **caller_of(request).place(instance_id),
            load_id=load_id,
            removes_table=removes,
            check=preconditions.check_of(request, _settings),
        )
        return Response(status=204)


class KeptTablesApi(APIView):
    """/api/v1/instances/{id}/lake-tables."""

    @extend_schema(responses=KeptTablePageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Tables of loads that were deleted, in the folders of the service. Each counts as a load until it is removed."""
        rows = selectors.kept_table_list(organisation=caller_of(request).organisation, instance_id=instance_id)
        page, following = pagination.items_page(request, rows, lambda table: table.pk)
        return Response(pagination.body(list(KeptTableSerializer(page, many=True).data), following))


class KeptTableApi(APIView):
    """/api/v1/instances/{id}/lake-tables/{load_id}."""

    @extend_schema(responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(KeptTablesApi, "instance_id"))
    def delete(self, request: Request, instance_id: str, load_id: str) -> Response:
        """Remove it, within a minute. A copy in a bucket stays."""
        services.kept_table_remove(**caller_of(request).place(instance_id), load_id=load_id)
        return Response(status=204)


class LoadRunsApi(APIView):
    """/api/v1/instances/{id}/lake-loads/{load_id}/runs."""

    bodies_are_optional = True  # without one: what is new

    @extend_schema(responses=LoadRunPageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str, load_id: str) -> Response:
        """Its runs, the newest first."""
        rows = selectors.run_list(_load(request, instance_id, load_id))
        page, following = pagination.newest_page(request, rows, moment="asked_at", key=int)
        return Response(pagination.body(list(LoadRunSerializer(page, many=True).data), following))

    @extend_schema(request=LoadRunCreateSerializer, responses={202: LoadRunSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str, load_id: str) -> Response:
        """Run it now: what the topic has new, or a time or offsets again in place of what the table has of them."""
        body = LoadRunCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        place = caller_of(request).place(instance_id)
        run = services.load_run(**place, load_id=load_id, asked=asked_of(body.validated_data))
        return Response(LoadRunSerializer(run).data, status=202)


class LoadStopApi(APIView):
    """/api/v1/instances/{id}/lake-loads/{load_id}/stop."""

    @extend_schema(request=None, responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(LoadApi))
    def post(self, request: Request, instance_id: str, load_id: str) -> Response:
        """Stop the run that waits or is under way. What it has committed stays, and the next run goes on there."""
        services.load_stop(**caller_of(request).place(instance_id), load_id=load_id)
        return Response(status=204)


def _load(request: Request, instance_id: str, load_id: str) -> Load:
    return selectors.load_get(organisation=caller_of(request).organisation, instance_id=instance_id, load_id=load_id)


def _answer(request: Request, load: Load) -> Response:
    return preconditions.answer(request, _shown([load])[0], _settings(load))


def _settings(load: Load) -> dict[str, Any]:
    """With the secret key, which may be all that somebody has changed."""
    secret = preconditions.secret_etag(load, "secret_key")
    return {**preconditions.without(_shown([load])[0], MEASURED), "secret_key": secret}


def _shown(loads: list[Load]) -> list[Any]:
    return list(LoadSerializer(loads, many=True, context={"latest": selectors.latest_of(loads)}).data)
