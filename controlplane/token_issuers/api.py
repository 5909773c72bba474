"""REST of token issuers."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs, pagination, sorting
from controlplane.token_issuers import selectors, services
from controlplane.token_issuers.serializers import (
    TokenIssuerCreateSerializer,
    TokenIssuerPageSerializer,
    TokenIssuerSerializer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from rest_framework.request import Request

    from controlplane.token_issuers.models import TokenIssuer

TAGS = ["token issuers"]
SORTED: Mapping[str, Callable[[TokenIssuer], str | datetime | None]] = {
    "issuer": lambda row: row.issuer,
    "created_at": lambda row: row.created_at,
    "keys_fetched_at": lambda row: row.keys_fetched_at,
}
PARAMETERS = [sorting.parameter(SORTED, "issuer"), *pagination.PARAMETERS]


class TokenIssuersApi(APIView):
    """/api/v1/instances/{id}/token-issuers."""

    @extend_schema(responses=TokenIssuerPageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Whose tokens let clients in by OAUTHBEARER, with how fetching their keys has gone."""
        rows = selectors.token_issuer_list(organisation=caller_of(request).organisation, instance_id=instance_id)
        page, following = sorting.known_page(request, rows, SORTED, lambda row: row.issuer)
        return Response(pagination.body(list(TokenIssuerSerializer(page, many=True).data), following))

    @extend_schema(request=TokenIssuerCreateSerializer, responses={201: TokenIssuerSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """Trust an issuer: its keys are fetched now and then all the time. Its tokens let in within 2 s. At most 4."""
        body = TokenIssuerCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = services.token_issuer_create(**caller_of(request).place(instance_id), **body.validated_data)
        return Response(TokenIssuerSerializer(row).data, status=201)


class TokenIssuerApi(APIView):
    """/api/v1/instances/{id}/token-issuers/{issuer_id}."""

    @extend_schema(responses=TokenIssuerSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, issuer_id: str) -> Response:
        """One of them."""
        organisation = caller_of(request).organisation
        row = selectors.token_issuer_get(organisation=organisation, instance_id=instance_id, issuer_id=issuer_id)
        return Response(TokenIssuerSerializer(row).data)

    @extend_schema(responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str, issuer_id: str) -> Response:
        """Trust it no more: within 2 s its tokens let nobody in, and connections that came by them end."""
        services.token_issuer_delete(**caller_of(request).place(instance_id), issuer_id=issuer_id)
        return Response(status=204)


class TokenIssuerRefreshApi(APIView):
    """/api/v1/instances/{id}/token-issuers/{issuer_id}/refresh."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(request=None, responses=dry_runs.done_or("TokenIssuerRefreshed", TokenIssuerSerializer), tags=TAGS)
    def post(self, request: Request, instance_id: str, issuer_id: str) -> Response:
        """Fetch its keys now; how that went is in the answer. Not more than once in 30 s.

        A dry run asks nobody: it says which host would be asked, and how many keys are known now.
        """
        if dry_runs.is_dry_run(request):
            organisation = caller_of(request).organisation
            return dry_runs.answer(
                services.token_issuer_refresh_check(
                    organisation=organisation, instance_id=instance_id, issuer_id=issuer_id
                )
            )
        row = services.token_issuer_refresh(**caller_of(request).place(instance_id), issuer_id=issuer_id)
        return Response(TokenIssuerSerializer(row).data)
