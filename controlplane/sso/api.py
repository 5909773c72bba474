"""REST of single sign-on: what owners set. It is tested in the console, where an owner connects their own account."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OwnersAlonePermission, caller_of
from controlplane.api import dry_runs, preconditions
from controlplane.core.errors import PreconditionFailed
from controlplane.sso import selectors, services, touching
from controlplane.sso.serializers import SsoChangeSerializer, SsoSerializer, SsoSetSerializer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from rest_framework.request import Request

    from controlplane.accounts.touching import Touched
    from controlplane.sso.models import SsoProvider

TAGS = ["single sign-on"]
MEASURED = ("owners_without",)
"""What is shown of a provider that nobody sets there: it is of the accounts of owners."""


def _by_setting(request: Request, _ids: Mapping[str, Any], changed: Collection[str]) -> Touched:
    return touching.by_setting(caller=caller_of(request), changed=changed)


def _by_switching(request: Request, _ids: Mapping[str, Any], changed: Collection[str]) -> Touched:
    return touching.by_switching(caller=caller_of(request), changed=changed)


def _by_removing(request: Request, _ids: Mapping[str, Any], _changed: Collection[str]) -> Touched:
    return touching.by_removing(caller=caller_of(request))


def _shown(row: SsoProvider) -> dict[str, Any]:
    return dict(SsoSerializer(row).data)


def _settings(row: SsoProvider | None) -> dict[str, Any]:
    """With the secret, which may be all that somebody has changed. Raises PreconditionFailed where none is set."""
    if row is None:
        raise PreconditionFailed(preconditions.CHANGED)
    secret = preconditions.secret_etag(row, "client_secret")
    return {**preconditions.without(_shown(row), MEASURED), "client_secret": secret}


def _answer(request: Request, row: SsoProvider) -> Response:
    return preconditions.answer(request, _shown(row), _settings(row))


class SsoApi(APIView):
    """/api/v1/sso."""

    permission_classes = (OwnersAlonePermission,)

    @extend_schema(
        responses={200: SsoSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request) -> Response:
        """The provider that signs members of the organisation in, without its secret. 404: none is set."""
        return _answer(request, selectors.provider_get(caller_of(request).organisation))

    @extend_schema(request=SsoSetSerializer, responses=SsoSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_by_setting)
    def put(self, request: Request) -> Response:
        """Set it, or another one: its document is fetched now. It is not in force until it was tested anew, and put in force."""
        body = SsoSetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        wanted = {"client_secret": "", **body.validated_data}
        check = preconditions.check_of(request, _settings)
        row = services.provider_set(organisation=caller.organisation, actor=caller.actor, check=check, **wanted)
        return _answer(request, row)

    @extend_schema(request=SsoChangeSerializer, responses=SsoSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_by_switching)
    def patch(self, request: Request) -> Response:
        """In force or not, required or not.

        Out of force, nobody signs in by it, whoever has is signed out, and API keys end that were made so.
        """
        body = SsoChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller, wanted = caller_of(request), body.validated_data
        row = services.provider_switch(
            organisation=caller.organisation,
            actor=caller.actor,
            is_on=wanted.get("in_force"),
            is_required=wanted.get("required"),
            check=preconditions.check_of(request, _settings),
        )
        return _answer(request, row)

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_by_removing)
    def delete(self, request: Request) -> Response:
        """Nobody signs in by it any more, whoever has is signed out, and members are connected to it no more.

        API keys that were made in its sessions are revoked.
        """
        caller = caller_of(request)
        check = preconditions.check_of(request, _settings)
        services.provider_remove(organisation=caller.organisation, actor=caller.actor, check=check)
        return Response(status=204)
