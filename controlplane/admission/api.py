"""REST of caps and capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission, organisation_asked
from controlplane.accounts.scopes import BILLING
from controlplane.admission import installed, rules, selectors, services
from controlplane.admission.serializers import (
    CapacitySerializer,
    CapsChangeSerializer,
    CapsSerializer,
    RoomChangeSerializer,
)
from controlplane.api import dry_runs, filters, preconditions
from controlplane.clusters.services import cluster_named

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.tenants.models import Organisation


NOT_THEIRS = "operators of the service decide on caps; your own are at /api/v1/caps"
CLUSTER = filters.text_parameter("cluster", "which physical cluster; needed where there are several")


class CapsApi(APIView):
    """/api/v1/caps."""

    @extend_schema(responses=CapsSerializer, tags=["caps"])
    def get(self, request: Request) -> Response:
        """What the organisation may have, how much of it is in use, and how to have more."""
        return Response(_caps(request.user.organisation, with_price=request.user.limits.covers(BILLING, changes=False)))


class OrganisationCapsApi(APIView):
    """/api/v1/organisations/{id}/caps."""

    @extend_schema(
        responses={200: CapsSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=["operators"],
    )
    def get(self, request: Request, organisation_id: str) -> Response:
        """What an organisation may have, and how much of it is in use."""
        return _caps_answer(request, organisation_asked(request, organisation_id, NOT_THEIRS))

    @extend_schema(
        request=CapsChangeSerializer,
        responses=CapsSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=["operators"],
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, organisation_id: str) -> Response:
        """Raise caps, or lower them: that takes nothing away which the organisation has."""
        organisation = organisation_asked(request, organisation_id, NOT_THEIRS)
        body = CapsChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caps = dict(body.validated_data)
        reason = caps.pop("reason")
        check = preconditions.check_of(request, lambda locked: _limits(_caps(locked, with_price=True)))
        services.caps_set(organisation=organisation, actor=request.user.actor, caps=caps, reason=reason, check=check)
        return _caps_answer(request, organisation)


class CapacityApi(APIView):
    """/api/v1/capacity."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=CapacitySerializer, parameters=[CLUSTER], tags=["operators"])
    def get(self, request: Request) -> Response:
        """What may be sold of the cluster, and what is."""
        return Response(_capacity(cluster_named(filters.text_of(request, "cluster"))))

    @extend_schema(request=RoomChangeSerializer, responses=CapacitySerializer, parameters=[CLUSTER], tags=["operators"])
    @dry_runs.rehearsed()
    def put(self, request: Request) -> Response:
        """What each broker has of a resource, and how many times as much is sold. What is sold stays sold."""
        body = RoomChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        cluster = cluster_named(filters.text_of(request, "cluster"))
        services.room_set(cluster=cluster, actor=request.user.actor, **body.validated_data)
        return Response(_capacity(cluster))


def _caps_answer(request: Request, organisation: Organisation) -> Response:
    document = _caps(organisation, with_price=True)
    return preconditions.answer(request, document, _limits(document))


def _limits(document: dict[str, Any]) -> dict[str, Any]:
    """The caps themselves, without what is used of them."""
    return {each["resource"]: (each["unit"], each["limit"]) for each in document["caps"]}


def _caps(organisation: Organisation, *, with_price: bool) -> dict[str, Any]:
    currency = selectors.plan_counted(organisation).currency
    return {
        "organisation_id": organisation.id,
        "caps": [
            {
                "resource": use.resource,
                "unit": currency if use.resource == rules.PRICE else rules.RESOURCES[use.resource].unit,
                "limit": rules.number(use.limit),
                "used": rules.number(use.used),
                "default": rules.number(use.default),
            }
            for use in selectors.caps_use(organisation)
            if with_price or use.resource != rules.PRICE
        ],
        "price_confirmed_above": rules.number(installed.price_confirmed_above(currency)),
        "how_to_raise": selectors.how_to_raise(organisation),
    }


def _capacity(cluster: PhysicalCluster) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "brokers": selectors.hosts_of(cluster),
        "resources": [
            {
                "resource": use.resource,
                "unit": rules.RESOURCES[use.resource].unit,
                "per_broker": use.room and use.room.per_broker,
                "overcommit": use.room and use.room.overcommit,
                "capacity": rules.number(use.limit),
                "sold": rules.number(use.used),
            }
            for use in selectors.cluster_use(cluster)
        ],
    }
