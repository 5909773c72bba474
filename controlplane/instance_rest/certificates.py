"""REST of certificates: an instance's own authority, certificates that its tenant brings, and whose clients' are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs
from controlplane.certificates import services
from controlplane.certificates.models import Source
from controlplane.instances import selectors
from quota.contracts.certificates import LARGEST_PEM

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.certificates.models import RouteCertificate
    from controlplane.instances.models import Instance

TAGS = ["certificates"]


class BroughtCertificateSerializer(serializers.Serializer[Any]):
    """A chain and its private key, PEM."""

    chain = serializers.CharField(max_length=LARGEST_PEM, help_text="PEM: the route's own certificate first")
    key = serializers.CharField(
        max_length=LARGEST_PEM, write_only=True, help_text="PEM, not encrypted; it is never shown again"
    )


class ClientCaSerializer(serializers.Serializer[Any]):
    """Authorities whose certificates clients may show, PEM."""

    client_ca = serializers.CharField(
        max_length=LARGEST_PEM, allow_blank=True, help_text="PEM, one or more; empty: nobody's"
    )


class CertificateSerializer(serializers.Serializer[Any]):
    """What a route shows."""

    route = serializers.CharField()
    source = serializers.ChoiceField(  # type: ignore[assignment]  # its own word, not the field's
        choices=Source.values, help_text="issued: by the instance's authority, renewed by itself; brought: by you"
    )
    chain = serializers.CharField(help_text="PEM")
    hosts = serializers.ListField(child=serializers.CharField(), help_text="what its clients connect to")
    not_after = serializers.DateTimeField(allow_null=True)
    client_ca = serializers.CharField(help_text="PEM; empty: certificates of clients are nobody's")


PEM_FILE = "application/x-pem-file"


def _instance(request: Request, instance_id: str) -> Instance:
    return selectors.instance_get(organisation=caller_of(request).organisation, instance_id=instance_id)


def _answer(row: RouteCertificate) -> Response:
    return Response(CertificateSerializer(row).data)


class InstanceCaApi(APIView):
    """/api/v1/instances/{id}/ca."""

    @extend_schema(
        responses={
            (200, PEM_FILE): OpenApiResponse(OpenApiTypes.STR, description="PEM, as a file for a client's trust store")
        },
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> HttpResponse:
        """The instance's own authority, which has issued the certificates of its routes."""
        pem = services.authority_of(_instance(request, instance_id))
        disposition = {"Content-Disposition": f'attachment; filename="{instance_id}-ca.pem"'}
        return HttpResponse(pem, content_type=PEM_FILE, headers=disposition)


class RouteCertificateApi(APIView):
    """/api/v1/instances/{id}/routes/{route_id}/certificate."""

    @extend_schema(responses=CertificateSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, route_id: str) -> Response:
        """What the route shows its clients."""
        return _answer(services.certificate_get(instance=_instance(request, instance_id), route=route_id))

    @extend_schema(request=BroughtCertificateSerializer, responses=CertificateSerializer, tags=TAGS)
    @dry_runs.rehearsed()
    def put(self, request: Request, instance_id: str, route_id: str) -> Response:
        """A certificate of your own, in force for new connections within 2 s; you renew it."""
        instance = _instance(request, instance_id)
        body = BroughtCertificateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = services.certificate_bring(
            instance=instance,
            route=route_id,
            actor=caller_of(request).actor,
            **body.validated_data,
        )
        return _answer(row)

    @extend_schema(responses=CertificateSerializer, tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str, route_id: str) -> Response:
        """Back to a certificate that the instance's authority issues and renews."""
        row = services.certificate_give_back(
            instance=_instance(request, instance_id), route=route_id, actor=caller_of(request).actor
        )
        return _answer(row)


class RouteClientCaApi(APIView):
    """/api/v1/instances/{id}/routes/{route_id}/client-ca."""

    @extend_schema(request=ClientCaSerializer, responses=CertificateSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(RouteCertificateApi))
    def put(self, request: Request, instance_id: str, route_id: str) -> Response:
        """Whose certificates the route takes of its clients; in force for new connections within 2 s."""
        instance = _instance(request, instance_id)
        body = ClientCaSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = services.client_ca_set(
            instance=instance,
            route=route_id,
            actor=caller_of(request).actor,
            **body.validated_data,
        )
        return _answer(row)
