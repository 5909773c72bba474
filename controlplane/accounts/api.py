"""REST of the caller, of API keys and of access keys."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts import selectors, services, touching
from controlplane.accounts.listing import ACCESS_KEYS, ACCESS_KEYS_SORTED, API_KEYS, KEYS_SORTED, keys_asked
from controlplane.accounts.serializers import (
    AccessKeyCreateSerializer,
    AccessKeyPageSerializer,
    AccessKeySerializer,
    ApiKeyCreateSerializer,
    ApiKeyPageSerializer,
    ApiKeyRotateSerializer,
    ApiKeySerializer,
    CallerSerializer,
    NewAccessKeySerializer,
    NewApiKeySerializer,
)
from controlplane.api import dry_runs, pagination, sorting
from controlplane.core import origin
from controlplane.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from rest_framework.request import Request

    from controlplane.accounts.models import AccessKey, ApiKey


def _key_row(request: Request, ids: Mapping[str, Any]) -> ApiKey:
    found = selectors.api_keys_of(request.user).filter(pk=ids["key_id"]).first()
    if found is None:
        raise NotFound(f"no API key {ids['key_id']}")
    return found


def _key(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """As the list has it. Raises NotFound."""
    return dict(ApiKeySerializer(_key_row(request, ids)).data)


def _whose_key(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_revoking(caller=request.user, key=_key_row(request, ids))


def _whose_secret(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_rotating(key_id=ids["key_id"], overlap_s=request.data["overlap_s"])


def _access_key_row(request: Request, ids: Mapping[str, Any]) -> AccessKey:
    rows = selectors.access_key_list(organisation=request.user.organisation)
    found = rows.filter(pk=ids["access_key_id"]).first()
    if found is None:
        raise NotFound(f"no access key {ids['access_key_id']}")
    return found


def _access_key(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """As the list has it. Raises NotFound."""
    return dict(AccessKeySerializer(_access_key_row(request, ids)).data)


def _whose_access_key(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_revoking(caller=request.user, key=_access_key_row(request, ids))


class CallerApi(APIView):
    """/api/v1/me."""

    @extend_schema(responses=CallerSerializer, tags=["account"])
    def get(self, request: Request) -> Response:
        """Who the presented key speaks for, in which organisation and role, and at which address this service sees the caller."""
        return Response(CallerSerializer(request.user, context={"address": origin.seen_at(request)}).data)


class ApiKeysApi(APIView):
    """/api/v1/api-keys."""

    @extend_schema(responses=ApiKeyPageSerializer, parameters=API_KEYS, tags=["account"])
    def get(self, request: Request) -> Response:
        """API keys of the organisation, revoked ones too; never a secret."""
        rows = keys_asked(request, selectors.api_keys_of(request.user))
        page, following = sorting.rows_page(request, rows, KEYS_SORTED)
        return Response(pagination.body(list(ApiKeySerializer(page, many=True).data), following))

    @extend_schema(request=ApiKeyCreateSerializer, responses={201: NewApiKeySerializer}, tags=["account"])
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """A new key with the caller's own rights, or fewer. Its text is in this answer and nowhere else.

        A key with limits makes none.
        """
        body = ApiKeyCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = request.user
        key, text = services.api_key_create(
            organisation=caller.organisation, user=caller.person, by=caller.key, **body.validated_data
        )
        return _shown_once(key, text, status=201)


class ApiKeyApi(APIView):
    """/api/v1/api-keys/{id}."""

    @extend_schema(responses={204: None}, tags=["account"])
    @dry_runs.rehearsed(of=_key, touches=_whose_key)
    def delete(self, request: Request, key_id: str) -> Response:
        """Revoke a key, from the next request on."""
        caller = request.user
        services.api_key_revoke(
            organisation=caller.organisation, actor=caller.actor, key_id=key_id, only_of=caller.whose_keys
        )
        return Response(status=204)


class ApiKeyRotateApi(APIView):
    """/api/v1/api-keys/{id}/rotate."""

    @extend_schema(request=ApiKeyRotateSerializer, responses=NewApiKeySerializer, tags=["account"])
    @dry_runs.rehearsed(of=_key, touches=_whose_secret, touches_unseen=True)
    def post(self, request: Request, key_id: str) -> Response:
        """Another secret for a key, beside the present one for a while. It is in this answer alone.

        People rotate keys of their own, owners those of service accounts.
        """
        body = ApiKeyRotateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = request.user
        overlap = timedelta(seconds=body.validated_data["overlap_s"])
        key, text = services.api_key_rotate(
            organisation=caller.organisation, user=caller.person, key_id=key_id, overlap=overlap, by=caller.key
        )
        return _shown_once(key, text, status=200)


def _shown_once(key: ApiKey, text: str, *, status: int) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response({**ApiKeySerializer(key).data, "key": text}, status=status, headers=headers)


class AccessKeysApi(APIView):
    """/api/v1/access-keys."""

    @extend_schema(responses=AccessKeyPageSerializer, parameters=ACCESS_KEYS, tags=["account"])
    def get(self, request: Request) -> Response:
        """Access keys of the organisation, revoked ones too; never a secret."""
        rows = keys_asked(request, selectors.access_key_list(organisation=request.user.organisation))
        page, following = sorting.rows_page(request, rows, ACCESS_KEYS_SORTED)
        return Response(pagination.body(list(AccessKeySerializer(page, many=True).data), following))

    @extend_schema(request=AccessKeyCreateSerializer, responses={201: NewAccessKeySerializer}, tags=["account"])
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """A new pair of SecretId and SecretKey with the caller's own rights, for /compat/ckafka. The secret is shown once.

        It is good for 90 days where nothing else is said.
        """
        body = AccessKeyCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = request.user
        key, secret = services.access_key_create(
            organisation=caller.organisation, user=caller.person, by=caller.key, **body.validated_data
        )
        headers = {"Cache-Control": "no-store"}
        return Response({**AccessKeySerializer(key).data, "secret_key": secret}, status=201, headers=headers)


class AccessKeyApi(APIView):
    """/api/v1/access-keys/{id}."""

    @extend_schema(responses={204: None}, tags=["account"])
    @dry_runs.rehearsed(of=_access_key, touches=_whose_access_key)
    def delete(self, request: Request, access_key_id: str) -> Response:
        """Revoke an access key: what is signed with it is refused from now on."""
        caller = request.user
        services.access_key_revoke(
            organisation=caller.organisation, actor=caller.actor, key_id=access_key_id, only_of=caller.whose_keys
        )
        return Response(status=204)
