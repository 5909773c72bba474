"""REST of an organisation's own roles. They are given to members by /api/v1/members, to service accounts by their own address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts import custom_roles, touching
from controlplane.accounts.permissions import OwnerPermission, caller_of, owner_of
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.api.serializers import StrictCharField, StrictSerializer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rest_framework.request import Request

    from controlplane.tenants.models import CustomRole

TAGS = ["members"]
SORTED = {name: name for name in ("name", "created_at")}
"""Where the database has what roles are sorted by."""
PARAMETERS = [
    filters.text_parameter("prefix", "only roles whose names begin so"),
    sorting.parameter(SORTED, "created_at"),
    *pagination.PARAMETERS,
]
SCOPES_HELP = (
    "scopes of API keys, each to look or to change; of read, billing, audit and members a role may look alone. "
    "instances, topics and messages can be changed as a whole or in parts, such as groups or topics_delete; "
    "a part includes looking at the whole"
)
INSTANCES_HELP = "ids of the instances that it is for; null or left out: all, those to come too"


def _look() -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=custom_roles.LOOK_CHOICES, required=False)


def _change() -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=custom_roles.CHANGE_CHOICES, required=False)


def _part() -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=custom_roles.PART_CHOICES, required=False)


class CustomRoleScopesSerializer(StrictSerializer):
    """Of each scope whether it may be looked at, or changed as well; one that is left out is closed."""

    not_empty = True

    read = _look()
    instances = _change()
    instances_create = _part()
    instances_change = _part()
    instances_delete = _part()
    topics = _change()
    topics_change = _part()
    topics_delete = _part()
    groups = _part()
    messages = _change()
    messages_send = _part()
    messages_delete = _part()
    messages_load = _part()
    access = _change()
    alarms = _change()
    billing = _look()
    audit = _look()
    members = _look()


def _instances() -> serializers.ListField:
    return serializers.ListField(
        child=StrictCharField(max_length=32),
        required=False,
        allow_null=True,
        min_length=1,
        max_length=custom_roles.MOST_INSTANCES,
        help_text=INSTANCES_HELP,
    )


class CustomRoleCreateSerializer(StrictSerializer):
    """What a new role is called, and what it opens."""

    name = StrictCharField(max_length=128)
    description = StrictCharField(max_length=custom_roles.LONGEST_DESCRIPTION, allow_blank=True, default="")
    scopes = CustomRoleScopesSerializer(help_text=SCOPES_HELP)
    instances = _instances()


class CustomRoleChangeSerializer(StrictSerializer):
    """What is left out stays."""

    not_empty = True

    name = StrictCharField(max_length=128, required=False)
    description = StrictCharField(max_length=custom_roles.LONGEST_DESCRIPTION, allow_blank=True, required=False)
    scopes = CustomRoleScopesSerializer(required=False, help_text=SCOPES_HELP)
    instances = _instances()


class CustomRoleSerializer(serializers.Serializer[Any]):
    """A role of the organisation's own."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    scopes = CustomRoleScopesSerializer(help_text=SCOPES_HELP)
    instances = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text=INSTANCES_HELP)
    created_at = serializers.DateTimeField()


class CustomRolePageSerializer(serializers.Serializer[Any]):
    """Roles of the organisation's own, a page at a time."""

    items = CustomRoleSerializer(many=True)
    next = serializers.CharField(allow_null=True)


def _whoever_has_it(request: Request, ids: Mapping[str, Any], changed: Collection[str]) -> touching.Touched:
    organisation = caller_of(request).organisation
    return touching.by_changing_role(organisation=organisation, role_id=ids["role_id"], changed=changed)


def _shown(role: CustomRole) -> dict[str, Any]:
    return dict(CustomRoleSerializer(role).data)


class CustomRolesApi(APIView):
    """/api/v1/roles."""

    permission_classes = (OwnerPermission,)

    @extend_schema(responses=CustomRolePageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Roles of the organisation's own, in the order in which they were made unless it is said otherwise."""
        rows = custom_roles.custom_role_list(organisation=caller_of(request).organisation)
        prefix = filters.text_of(request, "prefix")
        rows = rows.filter(name__startswith=prefix) if prefix else rows
        page, following = sorting.rows_page(request, rows, SORTED)
        return Response(pagination.body(list(CustomRoleSerializer(page, many=True).data), following))

    @extend_schema(request=CustomRoleCreateSerializer, responses={201: CustomRoleSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """A new role, which nobody has yet; owners decide. At most 50 of an organisation."""
        body = CustomRoleCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        made = custom_roles.custom_role_create(**owner_of(request), **body.validated_data)
        return Response(CustomRoleSerializer(made).data, status=201)


class CustomRoleApi(APIView):
    """/api/v1/roles/{role_id}."""

    permission_classes = (OwnerPermission,)

    @extend_schema(
        responses={200: CustomRoleSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, role_id: str) -> Response:
        """One role."""
        organisation = caller_of(request).organisation
        found = custom_roles.custom_role_get(organisation=organisation, role_id=role_id)
        return preconditions.answer(request, _shown(found))

    @extend_schema(
        request=CustomRoleChangeSerializer,
        responses=CustomRoleSerializer,
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    @dry_runs.rehearsed(touches=_whoever_has_it)
    def patch(self, request: Request, role_id: str) -> Response:
        """Change what it opens, for all who have it, from the next request on; owners decide."""
        body = CustomRoleChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        check = preconditions.check_of(request, _shown)
        changed = custom_roles.custom_role_change(
            **owner_of(request), role_id=role_id, check=check, **body.validated_data
        )
        return preconditions.answer(request, _shown(changed))

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, role_id: str) -> Response:
        """End a role that nobody has; owners decide."""
        check = preconditions.check_of(request, _shown)
        custom_roles.custom_role_delete(**owner_of(request), role_id=role_id, check=check)
        return Response(status=204)
