"""REST of instances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.admission import dry_runs as outlooks
from controlplane.admission import endings, purchases
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.clusters.selectors import ports_by_owner
from controlplane.health.rules import HEALTH_STATES
from controlplane.health.selectors import SEEN, health_get, with_health_seen
from controlplane.instance_rest.serializers import (
    AcceptedSerializer,
    AllocationSerializer,
    CreatedSerializer,
    InstanceChangeSerializer,
    InstanceCreateSerializer,
    InstanceDestroySerializer,
    InstanceNamePageSerializer,
    InstanceNameSerializer,
    InstancePageSerializer,
    InstanceSerializer,
    OperatorsLimitsSerializer,
    WhitelistChangeSerializer,
    WhitelistSerializer,
)
from controlplane.instances import lifecycle, selectors, services
from controlplane.instances.models import InstanceState
from controlplane.instances.spec import config_of
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocation_get, flows_get
from controlplane.routes.selectors import routes_shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

    from controlplane.instances.models import Instance

TAGS = ["instances"]
STATES = [state.value for state in InstanceState if state != InstanceState.DELETED]
"""Of instances that are shown."""
MEASURED = ("health", "storage_used_bytes")
COLUMNS = ("name", "state", "health", "bandwidth_mib_per_s", "storage_gib", "partitions", "created_at")
SORTED = {name: name for name in COLUMNS} | {"health": SEEN}
"""Where the database has what instances are sorted by."""
PARAMETERS = [
    filters.choice_parameter("state", STATES, "only instances in this state"),
    filters.choice_parameter(
        "health", HEALTH_STATES, "only instances that were so when they were looked at last, seconds ago"
    ),
    filters.text_parameter("name", "only instances that are called so, whole"),
    filters.text_parameter("prefix", "only instances whose names begin so"),
    sorting.parameter(SORTED, "created_at", "By `health` the critical ones come first, and those that do not run last"),
    *pagination.PARAMETERS,
]


def shown(instances: Sequence[Instance]) -> list[dict[str, Any]]:
    """Instances with what stands elsewhere: addresses and use."""
    names = [instance.id for instance in instances]
    ports = ports_by_owner(names)
    routes = routes_shown(instances, ports=ports)
    figures = figures_get(instances, flows_get)
    healths = health_get(instances, figures=figures)
    flows = figures.fresh
    for instance in instances:
        instance.routes = routes[instance.id]  # type: ignore[attr-defined]
        in_force = [route for route in instance.routes if route.state in selectors.IN_FORCE]  # type: ignore[attr-defined]
        instance.bootstrap = selectors.bootstrap_of(in_force, ports.get(instance.id, []))  # type: ignore[attr-defined]
        instance.storage_used_bytes = flows.get(instance.id, {}).get("storage_used_bytes")  # type: ignore[attr-defined]
        instance.config = config_of(instance.config)
        instance.health = healths.get(instance.id)  # type: ignore[attr-defined]
        instance.limits = selectors.limits_shown(instance, ports.get(instance.id, []))  # type: ignore[attr-defined]
    return cast("list[dict[str, Any]]", InstanceSerializer(instances, many=True).data)  # a list, with many=True


def _settings_shown(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """An instance less what is measured of it: two looks at that are never the same."""
    instance = selectors.instance_get(organisation=caller_of(request).organisation, instance_id=ids["instance_id"])
    return {name: value for name, value in shown([instance])[0].items() if name not in MEASURED}


def _limits_shown(_view: APIView, _request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """Whosever it is: of a call that operators alone may make, asked when that is known."""
    return {"limits": selectors.limits_shown(selectors.instance_fresh(ids["instance_id"]), [])}


def etag_of(instance: Instance) -> str:
    """Of what is shown of it, but for what is measured."""
    return preconditions.etag_of(instance.generation, instance.state, usual=InstanceState.RUNNING)


class InstanceNamesApi(APIView):
    """/api/v1/instance-names."""

    @extend_schema(responses=InstanceNamePageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Names and ids of the instances that the key, or the role behind it, is for, and nothing else of them.

        For whoever may do anything at an instance, so that they find it: also without a scope that looks at instances.
        """
        caller = caller_of(request)
        rows = selectors.instance_list(organisation=caller.organisation, only=caller.limits.instances)
        instances, following = pagination.rows_page(request, rows)
        return Response(pagination.body(list(InstanceNameSerializer(instances, many=True).data), following))


class InstancesApi(APIView):
    """/api/v1/instances."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(responses=InstancePageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Instances of the organisation, oldest first unless it is said otherwise."""
        rows = selectors.instance_list(
            organisation=caller_of(request).organisation,
            only=caller_of(request).limits.instances,
            state=filters.choice_of(request, "state", STATES),
            name=filters.text_of(request, "name"),
            prefix=filters.text_of(request, "prefix"),
        )
        health, order = filters.choice_of(request, "health", HEALTH_STATES), sorting.order_of(request, SORTED)
        if health or (order is not None and order.field == "health"):
            rows = with_health_seen(rows, state=health)
        instances, following = sorting.rows_page(request, rows, SORTED)
        return Response(pagination.body(shown(instances), following))

    @extend_schema(
        request=InstanceCreateSerializer, responses={200: dry_runs.ANSWER, 202: CreatedSerializer}, tags=TAGS
    )
    def post(self, request: Request) -> Response:
        """A new instance. The operation says when it can be used."""
        body = InstanceCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        limits = caller_of(request).limits
        limits.admit_config(body.validated_data.get("config") or ())
        if body.validated_data.get("prepaid_months") is not None:
            limits.admit_paying()
        who: dict[str, Any] = {"organisation": caller_of(request).organisation, "actor": caller_of(request).actor}
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(outlooks.buying(**who, **body.validated_data))
        instance, operation = purchases.instance_buy(**who, **body.validated_data)
        return Response({"id": instance.id, "operation_id": operation.id}, status=202)


class InstanceApi(APIView):
    """/api/v1/instances/{id}."""

    dry_run_methods: ClassVar = ("PATCH", "DELETE")

    @extend_schema(
        responses={200: InstanceSerializer, 304: OpenApiResponse(description="As `If-None-Match` says.")},
        parameters=[preconditions.ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """One instance. Its `ETag` is for `If-Match`, by which a change is refused if somebody was faster."""
        instance = selectors.instance_get(organisation=caller_of(request).organisation, instance_id=instance_id)
        headers = {"ETag": etag_of(instance)}
        if preconditions.is_known(request, headers["ETag"]):
            return Response(status=304, headers=headers)
        return Response(shown([instance])[0], headers=headers)

    @extend_schema(
        request=InstanceChangeSerializer,
        responses={200: dry_runs.ANSWER, 202: AcceptedSerializer},
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    def patch(self, request: Request, instance_id: str) -> Response:
        """Another name, bandwidth, storage, number of partitions, config or window; deletion protection on or off."""
        body = InstanceChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller_of(request).limits.admit_config(body.validated_data.get("config") or ())
        asked = {
            **_asked(request, instance_id),
            "accept_full_storage": body.validated_data.pop("accept_full_storage", False),
            "confirm_price": body.validated_data.pop("confirm_price", False),
            "admit_paying": caller_of(request).limits.admit_paying,
            "changes": body.validated_data,
        }
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(outlooks.changing(**asked))
        _, operation = purchases.instance_change(**asked)
        return Response({"operation_id": operation.id}, status=202)

    @extend_schema(
        responses={200: dry_runs.ANSWER, 202: AcceptedSerializer},
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    def delete(self, request: Request, instance_id: str) -> Response:
        """Delete the instance: nobody gets in any more, and it can be restored until its `destroys_at`. Then its data go."""
        asked = _asked(request, instance_id)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(outlooks.deleting(**asked))
        operation = endings.instance_delete(**asked)
        return Response({"operation_id": operation.id}, status=202)


class InstanceRestoreApi(APIView):
    """/api/v1/instances/{id}/restore."""

    @extend_schema(request=None, responses={202: AcceptedSerializer}, tags=TAGS)
    @dry_runs.rehearsed(of=_settings_shown)
    def post(self, request: Request, instance_id: str) -> Response:
        """Open an isolated instance again, with its data, settings and addresses."""
        caller = caller_of(request)
        operation = lifecycle.instance_restore(
            organisation=caller.organisation, actor=caller.actor, instance_id=instance_id
        )
        return Response({"operation_id": operation.id}, status=202)


class InstanceDestroyApi(APIView):
    """/api/v1/instances/{id}/destroy."""

    @extend_schema(request=InstanceDestroySerializer, responses={202: AcceptedSerializer}, tags=TAGS)
    @dry_runs.rehearsed(of=_settings_shown)
    def post(self, request: Request, instance_id: str) -> Response:
        """Delete the instance and all its data at once, without a grace period. Owners do that."""
        body = InstanceDestroySerializer(data=request.data)
        body.is_valid(raise_exception=True)
        operation = endings.instance_destroy(
            caller=caller_of(request), instance_id=instance_id, confirmation=body.validated_data["name"]
        )
        return Response({"operation_id": operation.id}, status=202)


def _asked(request: Request, instance_id: str) -> dict[str, Any]:
    """Who asks for a change of which instance, and at which generation."""
    caller = caller_of(request)
    return {
        "organisation": caller.organisation,
        "actor": caller.actor,
        "instance_id": instance_id,
        "at_generations": preconditions.generations_of(request),
    }


class InstanceWhitelistApi(APIView):
    """/api/v1/instances/{id}/whitelist. Its ETag is the instance's."""

    @extend_schema(
        request=WhitelistSerializer, responses=InstanceSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed(of=_settings_shown)
    def put(self, request: Request, instance_id: str) -> Response:
        """Who may connect; in force within 2 s, for open connections too."""
        body = WhitelistSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        instance = services.instance_whitelist_set(
            organisation=caller_of(request).organisation,
            actor=caller_of(request).actor,
            instance_id=instance_id,
            at_generations=preconditions.generations_of(request),
            **body.validated_data,
        )
        return Response(shown([instance])[0], headers={"ETag": etag_of(instance)})

    @extend_schema(
        request=WhitelistChangeSerializer, responses=InstanceSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed(of=_settings_shown)
    def patch(self, request: Request, instance_id: str) -> Response:
        """Some more and some fewer who may connect. The others stay, those that somebody else adds meanwhile too."""
        body = WhitelistChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        instance = services.instance_whitelist_change(
            organisation=caller_of(request).organisation,
            actor=caller_of(request).actor,
            instance_id=instance_id,
            at_generations=preconditions.generations_of(request),
            **body.validated_data,
        )
        return Response(shown([instance])[0], headers={"ETag": etag_of(instance)})


class InstanceLimitsApi(APIView):
    """/api/v1/instances/{id}/limits."""

    @extend_schema(request=OperatorsLimitsSerializer, responses={202: AcceptedSerializer}, tags=TAGS)
    @dry_runs.rehearsed(of=_limits_shown)
    def put(self, request: Request, instance_id: str) -> Response:
        """Limits that no plan sells: operators of the service set them, for any tenant's instance."""
        body = OperatorsLimitsSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        _, operation = services.instance_limits_set(
            caller=caller_of(request), instance_id=instance_id, limits=body.validated_data
        )
        return Response({"operation_id": operation.id}, status=202)


class InstanceAllocationApi(APIView):
    """/api/v1/instances/{id}/allocation."""

    @extend_schema(responses=AllocationSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """How the bought bandwidth is shared out between brokers at the moment."""
        return Response(allocation_get(organisation=caller_of(request).organisation, instance_id=instance_id))
