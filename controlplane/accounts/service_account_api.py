"""REST of service accounts and of their API keys. Owners decide; keys are rotated and revoked at /api/v1/api-keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts import selectors, service_accounts, touching
from controlplane.accounts.listing import KEYS_SORTED, OF_ACCOUNT, keys_asked
from controlplane.accounts.permissions import OwnerPermission, caller_of, owner_of
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
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from rest_framework.request import Request

    from controlplane.accounts.models import ServiceAccount

TAGS = ["account"]
SORTED = {name: name for name in ("name", "created_at")}
"""Where the database has what service accounts are sorted by."""
PARAMETERS = [
    filters.text_parameter("prefix", "only service accounts whose names begin so"),
    sorting.parameter(SORTED, "created_at"),
    *pagination.PARAMETERS,
]


def _keys_changed(request: Request, ids: Mapping[str, Any], changed: Collection[str]) -> touching.Touched:
    organisation, is_off = caller_of(request).organisation, request.data.get("disabled") is True
    return touching.by_changing_account(organisation=organisation, **ids, changed=changed, is_off=is_off)


def _keys_revoked(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_deleting_account(organisation=caller_of(request).organisation, **ids)


def _shown(account: ServiceAccount) -> dict[str, Any]:
    return dict(ServiceAccountSerializer(account).data)


class ServiceAccountsApi(APIView):
    """/api/v1/service-accounts."""

    permission_classes = (OwnerPermission,)

    @extend_schema(responses=ServiceAccountPageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Service accounts of the organisation, in the order in which they were made."""
        rows = selectors.service_account_list(organisation=caller_of(request).organisation)
        prefix = filters.text_of(request, "prefix")
        rows = rows.filter(name__startswith=prefix) if prefix else rows
        page, following = sorting.rows_page(request, rows, SORTED)
        return Response(pagination.body(list(ServiceAccountSerializer(page, many=True).data), following))

    @extend_schema(request=ServiceAccountCreateSerializer, responses={201: ServiceAccountSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """A new one, without keys; owners decide. At most 50 of an organisation."""
        body = ServiceAccountCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        made = service_accounts.service_account_create(**owner_of(request), **body.validated_data)
        return Response(ServiceAccountSerializer(made).data, status=201)


class ServiceAccountApi(APIView):
    """/api/v1/service-accounts/{service_account_id}."""

    permission_classes = (OwnerPermission,)

    @extend_schema(
        responses={200: ServiceAccountSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, service_account_id: str) -> Response:
        """One service account."""
        found = selectors.service_account_get(
            organisation=caller_of(request).organisation, service_account_id=service_account_id
        )
        return preconditions.answer(request, _shown(found))

    @extend_schema(
        request=ServiceAccountChangeSerializer,
        responses=ServiceAccountSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed(touches=_keys_changed)
    def patch(self, request: Request, service_account_id: str) -> Response:
        """Rename it, give it another role, disable or enable it; owners decide. It holds from the next request on."""
        body = ServiceAccountChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        changed = service_accounts.service_account_change(
            **owner_of(request),
            service_account_id=service_account_id,
            check=preconditions.check_of(request, _shown),
            **body.validated_data,
        )
        return preconditions.answer(request, _shown(changed))

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_keys_revoked)
    def delete(self, request: Request, service_account_id: str) -> Response:
        """End it; its keys are revoked for good. Owners decide."""
        check = preconditions.check_of(request, _shown)
        service_accounts.service_account_delete(**owner_of(request), service_account_id=service_account_id, check=check)
        return Response(status=204)


class ServiceAccountKeysApi(APIView):
    """/api/v1/service-accounts/{service_account_id}/keys."""

    permission_classes = (OwnerPermission,)

    @extend_schema(responses=ApiKeyPageSerializer, parameters=OF_ACCOUNT, tags=TAGS)
    def get(self, request: Request, service_account_id: str) -> Response:
        """Its API keys, revoked ones too; never a secret."""
        organisation = caller_of(request).organisation
        of = selectors.service_account_get(organisation=organisation, service_account_id=service_account_id)
        rows = keys_asked(request, selectors.api_key_list(organisation=organisation).filter(service_account=of))
        page, following = sorting.rows_page(request, rows, KEYS_SORTED)
        return Response(pagination.body(list(ApiKeySerializer(page, many=True).data), following))

    @extend_schema(request=ApiKeyCreateSerializer, responses={201: NewApiKeySerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, service_account_id: str) -> Response:
        """A new key that acts as it, with its rights or fewer; owners decide. Its text is in this answer and nowhere else."""
        body = ApiKeyCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        key, text = service_accounts.service_account_key_create(
            **owner_of(request), service_account_id=service_account_id, **body.validated_data
        )
        headers = {"Cache-Control": "no-store"}
        return Response({**ApiKeySerializer(key).data, "key": text}, status=201, headers=headers)
