"""REST of service accounts and of their API keys. Owners decide; keys are rotated and revoked at /api/v1/api-keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts import selectors, service_accounts
from controlplane.accounts.permissions import OwnerPermission, caller_of
from controlplane.accounts.serializers import (
    ApiKeyCreateSerializer,
    ApiKeyPageSerializer,
    ApiKeySerializer,
    NewApiKeySerializer,
)
from controlplane.accounts.service_account_serializers import (
    ServiceAccountChangeSerializer,
    ServiceAccountCreateSerializer,
    ServiceAccountPageSerializer,
    ServiceAccountSerializer,
)
from controlplane.api import pagination

if TYPE_CHECKING:
    from typing import Any

    from rest_framework.request import Request

TAGS = ["account"]


class ServiceAccountsApi(APIView):
    """/api/v1/service-accounts."""

    permission_classes = (OwnerPermission,)

    @extend_schema(responses=ServiceAccountPageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Service accounts of the organisation, in the order in which they were made."""
        rows = selectors.service_account_list(organisation=caller_of(request).organisation)
        found, following = pagination.rows_page(request, rows)
        return Response(pagination.body(ServiceAccountSerializer(found, many=True).data, following))

    @extend_schema(request=ServiceAccountCreateSerializer, responses={201: ServiceAccountSerializer}, tags=TAGS)
    def post(self, request: Request) -> Response:
        """A new one, without keys; owners decide. At most 50 of an organisation."""
        body = ServiceAccountCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        made = service_accounts.service_account_create(**_asked(request), **body.validated_data)
        return Response(ServiceAccountSerializer(made).data, status=201)


class ServiceAccountApi(APIView):
    """/api/v1/service-accounts/{service_account_id}."""

    permission_classes = (OwnerPermission,)

    @extend_schema(responses=ServiceAccountSerializer, tags=TAGS)
    def get(self, request: Request, service_account_id: str) -> Response:
        """One service account."""
        found = selectors.service_account_get(
            organisation=caller_of(request).organisation, service_account_id=service_account_id
        )
        return Response(ServiceAccountSerializer(found).data)

    @extend_schema(request=ServiceAccountChangeSerializer, responses=ServiceAccountSerializer, tags=TAGS)
    def patch(self, request: Request, service_account_id: str) -> Response:
        """Rename it, give it another role, disable or enable it; owners decide. It holds from the next request on."""
        body = ServiceAccountChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changed = service_accounts.service_account_change(
            **_asked(request), service_account_id=service_account_id, **body.validated_data
        )
        return Response(ServiceAccountSerializer(changed).data)

    @extend_schema(responses={204: None}, tags=TAGS)
    def delete(self, request: Request, service_account_id: str) -> Response:
        """End it; its keys are revoked for good. Owners decide."""
        service_accounts.service_account_delete(**_asked(request), service_account_id=service_account_id)
        return Response(status=204)


class ServiceAccountKeysApi(APIView):
    """/api/v1/service-accounts/{service_account_id}/keys."""

    permission_classes = (OwnerPermission,)

    @extend_schema(responses=ApiKeyPageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, service_account_id: str) -> Response:
        """Its API keys, revoked ones too; never a secret."""
        organisation = caller_of(request).organisation
        of = selectors.service_account_get(organisation=organisation, service_account_id=service_account_id)
        rows = selectors.api_key_list(organisation=organisation).filter(service_account=of)
        found, following = pagination.rows_page(request, rows)
        return Response(pagination.body(ApiKeySerializer(found, many=True).data, following))

    @extend_schema(request=ApiKeyCreateSerializer, responses={201: NewApiKeySerializer}, tags=TAGS)
    def post(self, request: Request, service_account_id: str) -> Response:
        """A new key that acts as it, with its rights or fewer; owners decide. Its text is in this answer and nowhere else."""
        body = ApiKeyCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        key, text = service_accounts.service_account_key_create(
            **_asked(request), service_account_id=service_account_id, **body.validated_data
        )
        headers = {"Cache-Control": "no-store"}
        return Response({**ApiKeySerializer(key).data, "key": text}, status=201, headers=headers)


def _asked(request: Request) -> dict[str, Any]:
    """Of whom, and by whom. Raises Forbidden for a service account."""
    caller = caller_of(request)
    return {"organisation": caller.organisation, "by": caller.person, "with_key": caller.key}
