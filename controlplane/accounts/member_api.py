"""REST of who belongs to an organisation: members and invitations, by the services that the console's pages call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts import custom_roles, joining, touching
from controlplane.accounts.listing import INVITATIONS, INVITATIONS_SORTED, MEMBERS, MEMBERS_SORTED, members_asked
from controlplane.accounts.member_serializers import (
    InvitationPageSerializer,
    InvitationSerializer,
    InviteSerializer,
    NewInvitationSerializer,
    OrganisationMemberPageSerializer,
    OrganisationMemberSerializer,
    RoleSerializer,
)
from controlplane.accounts.permissions import OwnerPermission, OwnersAlonePermission, caller_of
from controlplane.accounts.scopes import BUILT_IN
from controlplane.api import dry_runs, pagination, preconditions, sorting
from controlplane.core.errors import NotFound
from controlplane.tenants import invitations
from controlplane.tenants.models import Role
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from django.db.models import QuerySet
    from rest_framework.request import Request

    from controlplane.tenants.models import Membership

TAGS = ["members"]
LARGEST_ID = 2**63 - 1
OF_THE_PERSON = ("second_factor",)
"""What is shown of a member that is no matter of the organisation; only owners are told."""


def _shown(request: Request, membership: Membership) -> dict[str, Any]:
    """As the list has them."""
    return dict(OrganisationMemberSerializer(membership, context={"may_manage": caller_of(request).may_manage}).data)


def _answer(request: Request, membership: Membership) -> Response:
    document = _shown(request, membership)
    return preconditions.answer(request, document, preconditions.without(document, OF_THE_PERSON))


def _check(request: Request) -> preconditions.Check | None:
    return preconditions.check_of(
        request, lambda membership: preconditions.without(_shown(request, membership), OF_THE_PERSON)
    )


def _with_another_role(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_another_role(
        caller=caller_of(request),
        **ids,
        stays_owner=request.data.get("role") == Role.OWNER,
        is_custom="custom_role" in request.data or request.data.get("role") in BUILT_IN,
    )


def _with_the_member(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    return touching.by_removing(caller=caller_of(request), **ids)


def _invitation(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """As the list of those that are open has it. Raises NotFound."""
    rows = invitations.invitation_list(organisation=caller_of(request).organisation)
    found = rows.filter(pk=ids["invitation_id"]).first()
    if found is None:
        raise NotFound("no such invitation")
    return dict(InvitationSerializer(found).data)


def _invited(request: Request, _ids: Mapping[str, Any], _changed: Collection[str]) -> touching.Touched:
    body = InviteSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    return touching.by_inviting(organisation=caller_of(request).organisation, email=body.validated_data["email"])


def _by_address(request: Request, rows: QuerySet[Membership]) -> tuple[list[Membership], str | None]:
    def fetch(after: Any | None, limit: int) -> list[Membership]:
        return list((rows if after is None else rows.filter(user__email__gt=after[0]))[:limit])

    return pagination.fetched_page(request, fetch, key=lambda membership: (membership.user.email,), shape=(str,))


class MembersApi(APIView):
    """/api/v1/members."""

    @extend_schema(responses=OrganisationMemberPageSerializer, parameters=MEMBERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Who belongs to the organisation, by address unless it is said otherwise."""
        caller = caller_of(request)
        rows = members_asked(request, member_list(organisation=caller.organisation))
        found, following = sorting.rows_page(request, rows, MEMBERS_SORTED, key=int, default=_by_address)
        shown = OrganisationMemberSerializer(found, many=True, context={"may_manage": caller.may_manage}).data
        return Response(pagination.body(shown, following))


class MemberApi(APIView):
    """/api/v1/members/{membership_id}."""

    permission_classes = (OwnerPermission,)

    @extend_schema(
        responses={200: OrganisationMemberSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, membership_id: int) -> Response:
        """One member of the organisation."""
        rows = member_list(organisation=caller_of(request).organisation)
        found = rows.filter(pk=_id(membership_id)).first()
        if found is None:
            raise NotFound("no such member")
        return _answer(request, found)

    @extend_schema(
        request=RoleSerializer,
        responses=OrganisationMemberSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed(touches=_with_another_role)
    def patch(self, request: Request, membership_id: int) -> Response:
        """Give a member another role; owners decide. An owner who is none any more has their open invitations withdrawn.

        The last owner stays one.
        """
        body = RoleSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        changed = custom_roles.member_role_give(
            organisation=caller.organisation,
            by=caller.person,
            with_key=caller.key,
            membership_id=_id(membership_id),
            check=_check(request),
            **body.validated_data,
        )
        return _answer(request, changed)

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_with_the_member)
    def delete(self, request: Request, membership_id: int) -> Response:
        """Take a member out; their keys of this organisation are revoked for good. The last owner stays."""
        caller = caller_of(request)
        joining.member_remove(
            organisation=caller.organisation,
            by=caller.person,
            with_key=caller.key,
            membership_id=_id(membership_id),
            check=_check(request),
        )
        return Response(status=204)


class InvitationsApi(APIView):
    """/api/v1/invitations."""

    permission_classes = (OwnersAlonePermission,)

    @extend_schema(responses=InvitationPageSerializer, parameters=INVITATIONS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Invitations that are open, expired ones too, in the order in which they were made. For owners."""
        rows = invitations.invitation_list(organisation=caller_of(request).organisation)
        page, following = sorting.rows_page(request, rows, INVITATIONS_SORTED)
        return Response(pagination.body(list(InvitationSerializer(page, many=True).data), following))

    @extend_schema(request=InviteSerializer, responses={201: NewInvitationSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True, touches=_invited)
    def post(self, request: Request) -> Response:
        """Invite a person by address; owners decide. An earlier invitation of this address ends. The link works for a week, once.

        The service mails it where it sends any mail; else it is in this answer and nowhere else.
        """
        body = InviteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        invitation, token = joining.invite(
            organisation=caller.organisation,
            inviter=caller.person,
            **body.validated_data,
        )
        link = request.build_absolute_uri(reverse("console:invitation", args=[token])) if token else None
        headers = {"Cache-Control": "no-store"} if token else {}
        return Response({**InvitationSerializer(invitation).data, "link": link}, status=201, headers=headers)


class InvitationApi(APIView):
    """/api/v1/invitations/{invitation_id}."""

    permission_classes = (OwnersAlonePermission,)

    @extend_schema(responses={204: None}, tags=TAGS)
    @dry_runs.rehearsed(of=_invitation)
    def delete(self, request: Request, invitation_id: str) -> Response:
        """Withdraw an invitation: its link leads nowhere from now on. Twice is once."""
        caller = caller_of(request)
        joining.invitation_withdraw(
            organisation=caller.organisation, by=caller.person, with_key=caller.key, invitation_id=invitation_id
        )
        return Response(status=204)


def _id(membership_id: int) -> int:
    """One that a database can be asked for. Raises NotFound."""
    if membership_id > LARGEST_ID:
        raise NotFound("no such member")
    return membership_id
