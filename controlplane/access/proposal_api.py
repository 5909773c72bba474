"""REST of an instance's proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.access import proposals
from controlplane.access.proposal_serializers import (
    ProposalCreateSerializer,
    ProposalSerializer,
    shown,
)
from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.request import Request

TAGS = ["access"]


def _in_force(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """What a proposal can be about, as it stands."""
    return proposals.access_in_force(organisation=caller_of(request).organisation, instance_id=ids["instance_id"])


class ProposalApi(APIView):
    """/api/v1/instances/{id}/proposal."""

    @extend_schema(responses=ProposalSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """The proposal of the instance, who would be cut off by it, and how much was judged."""
        view = proposals.proposal_get(organisation=caller_of(request).organisation, instance_id=instance_id)
        return Response(shown(view))

    @extend_schema(request=ProposalCreateSerializer, responses=ProposalSerializer, tags=TAGS)
    @dry_runs.rehearsed()
    def put(self, request: Request, instance_id: str) -> Response:
        """Try a change of who may do what: brokers say who would be cut off, and cut nobody off.

        An instance has one proposal: one before it is discarded.
        """
        body = ProposalCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        wanted = ProposalCreateSerializer.wanted(dict(body.validated_data))
        return Response(shown(proposals.proposal_make(**caller_of(request).place(instance_id), **wanted)))

    @extend_schema(responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str) -> Response:
        """Discard it with what was found. What is in force stays."""
        proposals.proposal_discard(**caller_of(request).place(instance_id))
        return Response(status=204)


class ProposalInForceApi(APIView):
    """/api/v1/instances/{id}/proposal/{proposal id}/in-force."""

    @extend_schema(request=None, responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed(of=_in_force)
    def post(self, request: Request, instance_id: str, proposal_id: str) -> Response:
        """Put it in force: all of it at once, within 2 s, on open connections too."""
        proposals.proposal_put_in_force(**caller_of(request).place(instance_id), proposal_id=proposal_id)
        return Response(status=204)
