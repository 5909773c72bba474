"""REST of physical clusters, for operators; and of the zones that tenants can wish for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission, caller_of
from controlplane.admission import places, rules, selectors
from controlplane.admission.cluster_serializers import (
    ClusterChangeSerializer,
    ClusterCreateSerializer,
    ClusterEventSerializer,
    ClusterPageSerializer,
    ClusterSerializer,
    LeavingSerializer,
    ZonePageSerializer,
)
from controlplane.admission.retiring import cluster_set
from controlplane.api import dry_runs, preconditions
from controlplane.clusters.models import ClusterState
from controlplane.clusters.registering import cluster_register
from controlplane.clusters.selectors import cluster_events
from controlplane.clusters.services import cluster_named, clusters_known
from controlplane.core.dry_runs import affected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rest_framework.request import Request

    from controlplane.admission.places import Place
    from controlplane.clusters.models import PhysicalCluster
    from controlplane.core.dry_runs import Affected

TAGS = ["operators"]
MOST_EVENTS = 100
SETTINGS = ("name", "state", "zones", "zookeeper_hosts", "capacity")
"""Of a cluster, what people set."""
HOW_TO_LEAVE = (
    "Nothing is moved by itself: for each of these a new instance is bought, the mirror copies topics and offsets of groups "
    "into it while clients go on, clients are given its address, and the old one is deleted (docs/runbooks/clusters.md)."
)


class ClustersApi(APIView):
    """/api/v1/clusters."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=ClusterPageSerializer, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Every physical cluster, with what it has and what of it is sold."""
        del request
        return Response(ClusterPageSerializer({"items": list(map(shown, places.places_of(clusters_known())))}).data)

    @extend_schema(request=ClusterCreateSerializer, responses={201: ClusterSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """Register a cluster. Instances are placed on it from then on, by what is free; one that is away comes last."""
        body = ClusterCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        cluster = cluster_register(actor=caller_of(request).actor, **body.validated_data)
        (place,) = places.places_of([cluster])
        return Response(ClusterSerializer(shown(place)).data, status=201)


def _who_has_to_leave(request: Request, ids: Mapping[str, Any], changed: Collection[str]) -> Iterable[Affected]:
    """Instances on a cluster that is to be drained."""
    body: Any = request.data
    if "state" not in changed or body.get("state") != ClusterState.DRAINING:
        return ()
    rows = places.leaving(cluster_named(ids["cluster"]))
    return affected("instances", (each.instance.id for each in rows), "have to be moved away; nothing moves by itself")


class ClusterApi(APIView):
    """/api/v1/clusters/{cluster}."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(
        responses={200: ClusterSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, cluster: str) -> Response:
        """One cluster."""
        return _answer(request, cluster_named(cluster))

    @extend_schema(
        request=ClusterChangeSerializer,
        responses=ClusterSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed(touches=_who_has_to_leave)
    def patch(self, request: Request, cluster: str) -> Response:
        """Other zones, another capacity, or another state: cordoned, draining, retired, open again. What is there stays there."""
        body = ClusterChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changes = dict(body.validated_data)
        reason = changes.pop("reason")
        changed = cluster_set(
            cluster=cluster_named(cluster),
            actor=caller_of(request).actor,
            changes=changes,
            reason=reason,
            check=preconditions.check_of(request, _settings),
        )
        return _answer(request, changed)


def _settings(cluster: PhysicalCluster) -> dict[str, Any]:
    """What people set of it: what is sold and who is there comes and goes by itself."""
    return {name: getattr(cluster, name) for name in SETTINGS}


def _answer(request: Request, cluster: PhysicalCluster) -> Response:
    (place,) = places.places_of([cluster])
    return preconditions.answer(request, dict(ClusterSerializer(shown(place)).data), _settings(cluster))


class ClusterEventsApi(APIView):
    """/api/v1/clusters/{cluster}/events."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=ClusterEventSerializer(many=True), tags=TAGS)
    def get(self, request: Request, cluster: str) -> Response:
        """Who decided what about it, the newest first."""
        del request
        rows = cluster_events(cluster_named(cluster))[:MOST_EVENTS]
        return Response(list(ClusterEventSerializer(rows, many=True).data))


class ClusterLeavingApi(APIView):
    """/api/v1/clusters/{cluster}/leaving."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=LeavingSerializer, tags=TAGS)
    def get(self, request: Request, cluster: str) -> Response:
        """What has to be moved away before the cluster is empty, and where each could go."""
        del request
        row = cluster_named(cluster)
        document = {"cluster": row.name, "state": row.state, "instances": places.leaving(row), "how": HOW_TO_LEAVE}
        return Response(LeavingSerializer(document).data)


class ZonesApi(APIView):
    """/api/v1/zones."""

    @extend_schema(responses=ZonePageSerializer, tags=["instances"])
    def get(self, request: Request) -> Response:
        """Zones that a new instance can be wished into, by `placement.zones`."""
        del request
        items = [{"name": name, "takes_new": takes_new} for name, takes_new in places.zones_offered().items()]
        return Response(ZonePageSerializer({"items": items}).data)


def shown(place: Place) -> dict[str, Any]:
    """A cluster as REST has it."""
    cluster = place.cluster
    return {
        **_settings(cluster),
        "instances": place.instances,
        "brokers": place.brokers,
        "brokers_there": place.there,
        "resources": [
            {
                "resource": name,
                "capacity": rules.number(place.capacity[name]),
                "sold": rules.number(place.taken[name]),
                "percent": selectors.percent_of(place.taken[name], place.capacity[name]),
            }
            for name in rules.CLUSTER
        ],
    }
