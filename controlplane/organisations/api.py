"""REST of an organisation: its name, its owners and its end.

Keys of an organisation that is marked for deletion are refused, so that taking it back is done in the console.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts import touching
from controlplane.accounts.member_serializers import OrganisationMemberSerializer
from controlplane.accounts.permissions import OwnerPermission, OwnersAlonePermission, caller_of, staff_note
from controlplane.accounts.scopes import BUILT_IN
from controlplane.api import dry_runs, preconditions
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid, NotFound
from controlplane.organisations import deletion, ownership
from controlplane.organisations.obstacles import obstacles
from controlplane.organisations.serializers import (
    ObstaclesSerializer,
    OrganisationDeletionSerializer,
    OrganisationDetailSerializer,
    OrganisationRenameSerializer,
    OwnershipTransferSerializer,
)
from controlplane.tenants.operators import organisation_any
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rest_framework.request import Request

    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import Organisation

TAGS = ["organisation"]


def _hands(_view: APIView, request: Request, _ids: Mapping[str, Any]) -> dict[str, Any]:
    """Both whom a transfer concerns, as the list of members has them. Raises NotFound."""
    caller = caller_of(request)
    rows = member_list(organisation=caller.organisation)
    shown = {"may_manage": caller.may_manage}
    return {
        name: dict(OrganisationMemberSerializer(row, context=shown).data)
        for name, row in (
            ("owner", rows.filter(pk=_transfer_asked(request)["member_id"]).first()),
            ("yourself", rows.get(user=caller.person)),
        )
        if row is not None
    }


def _handed(request: Request, _ids: Mapping[str, Any], changed: Collection[str]) -> touching.Touched:
    """The new owner's keys, unless they are one already; of who steps down also what they have invited."""
    caller, asked = caller_of(request), _transfer_asked(request)
    member_id = asked.pop("member_id")
    new = (
        touching.by_another_role(caller=caller, membership_id=member_id, stays_owner=True, is_custom=False)
        if "owner" in changed
        else ()
    )
    if not asked:
        return new
    own = member_list(organisation=caller.organisation).get(user=caller.person)
    is_custom = "custom_role" in asked or asked.get("step_down_to") in BUILT_IN
    return (
        *new,
        *touching.by_another_role(caller=caller, membership_id=own.pk, stays_owner=False, is_custom=is_custom),
    )


def _marked(request: Request, _ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_deleting(caller=caller_of(request))


def _transfer_asked(request: Request) -> dict[str, Any]:
    body = OwnershipTransferSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


class OrganisationApi(APIView):
    """/api/v1/organisations/{organisation_id}."""

    permission_classes = (OwnerPermission,)
    dry_run_methods: ClassVar = ("PATCH",)

    @extend_schema(
        responses={200: OrganisationDetailSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, organisation_id: str) -> Response:
        """The organisation that the key is of; to operators of the service any, deleted ones too."""
        if not caller_of(request).is_operator:
            _own(request, organisation_id)
        found = organisation_any(organisation_id)
        staff_note(request, found, looked_at=found.id)  # nobody else is shown another one than their own
        return preconditions.answer(request, _shown(found))

    @extend_schema(
        request=OrganisationRenameSerializer,
        responses=dry_runs.done_or("OrganisationRenamed", OrganisationDetailSerializer),
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    def patch(self, request: Request, organisation_id: str) -> Response:
        """Rename it; owners decide. Its id stays, and invoices of before show the new name from then on.

        A dry run does not say whether another organisation has the name, for which the call itself is refused.
        """
        caller = _own(request, organisation_id)
        body = OrganisationRenameSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        if "name" not in body.validated_data:
            raise Invalid.field("name", "nothing to change: give it")
        asked: dict[str, Any] = {
            "organisation": caller.organisation,
            "by": caller.person,
            "with_key": caller.key,
            "check": preconditions.check_of(request, _shown),
            **body.validated_data,
        }
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(ownership.organisation_rename_check(**asked))
        return preconditions.answer(request, _shown(ownership.organisation_rename(**asked)))


class OwnershipTransferApi(APIView):
    """/api/v1/organisations/{organisation_id}/transfer."""

    permission_classes = (OwnerPermission,)

    @extend_schema(request=OwnershipTransferSerializer, responses=OrganisationMemberSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=_hands, touches=_handed)
    def post(self, request: Request, organisation_id: str) -> Response:
        """Make another member owner, and step down in the same act if that is said; both are told by e-mail.

        Answers the member who is an owner now.
        """
        caller = _own(request, organisation_id)
        wanted = _transfer_asked(request)
        owner = ownership.ownership_transfer(
            organisation=caller.organisation,
            by=caller.person,
            membership_id=wanted.pop("member_id"),
            with_key=caller.key,
            **wanted,
        )
        return Response(OrganisationMemberSerializer(owner, context={"may_manage": True}).data)


class OrganisationDeletionApi(APIView):
    """/api/v1/organisations/{organisation_id}/deletion."""

    permission_classes = (OwnersAlonePermission,)

    @extend_schema(responses=ObstaclesSerializer, tags=TAGS)
    def get(self, request: Request, organisation_id: str) -> Response:
        """What keeps it from being deleted. For owners."""
        caller = _own(request, organisation_id)
        found = obstacles(organisation=caller.organisation, now=SYSTEM_CLOCK.now())
        return Response(ObstaclesSerializer({"items": found}).data)

    @extend_schema(request=OrganisationDeletionSerializer, responses=OrganisationDetailSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(OrganisationApi), touches=_marked)
    def post(self, request: Request, organisation_id: str) -> Response:
        """Delete it, in 7 days: from now on nobody uses it, and its API keys, this one too, are refused.

        Until then an owner takes it back in the console. Refused with each reason while something is in the way. Afterwards
        members, keys, roles, service accounts and settings are gone; invoices and the audit log are kept.
        """
        caller = _own(request, organisation_id)
        body = OrganisationDeletionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = deletion.organisation_delete(
            organisation=caller.organisation,
            by=caller.person,
            confirmation=body.validated_data["name"],
            with_key=caller.key,
        )
        return Response(OrganisationDetailSerializer(row).data)


def _shown(organisation: Organisation) -> dict[str, Any]:
    return dict(OrganisationDetailSerializer(organisation).data)


def _own(request: Request, organisation_id: str) -> Caller:
    """Who asks about their own organisation. Raises NotFound for any other, whether there is one or not."""
    caller = caller_of(request)
    if organisation_id != caller.organisation.id:
        raise NotFound(f"no organisation {organisation_id}")
    return caller
