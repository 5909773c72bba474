"""REST of users and ACLs, the answer to "may ...?", and what happened at the instance."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.access import acls, selectors, trail, users
from controlplane.access.cut_off import acls_cut_off, user_connected
from controlplane.access.passwords import password_checked
from controlplane.access.serializers import (
    MECHANISMS,
    AccessAnswerSerializer,
    AccessQuestionSerializer,
    AclBatchSerializer,
    AclCreateSerializer,
    AclFilterSerializer,
    AclPageSerializer,
    AclPresetSerializer,
    AclSerializer,
    AclsSerializer,
    AuditFilterSerializer,
    AuditPageSerializer,
    UserCreateSerializer,
    UserNameSerializer,
    UserPageSerializer,
    UserPasswordSerializer,
    UserSerializer,
    UserWithPasswordSerializer,
)
from controlplane.accounts.permissions import LookingPermission, caller_of
from controlplane.api import dry_runs, filters, pagination, sorting
from controlplane.api.ranges import span_of
from controlplane.core.dry_runs import affected
from controlplane.core.errors import Invalid, NotFound
from quota.contracts.acls import PatternType
from quota.core.explain_access import USER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer

    from controlplane.core.dry_runs import Affected
    from quota.contracts.acls import Acl
    from quota.contracts.users import User
    from quota.core.acl_filters import AclFilter

USERS, ACLS = ["users"], ["ACLs"]
SECRET = {"Cache-Control": "no-store"}
WITH_ACLS = OpenApiParameter("with_acls", OpenApiTypes.BOOL, description="ACLs that name the user go as well")
ACLS_DELETED, ACLS_LEFT, IS_SUPER_USER = "Sluice-Acls-Deleted", "Sluice-Acls-Left", "Sluice-Super-User"
LEFT = [
    OpenApiParameter(name, kind, OpenApiParameter.HEADER, response=[204], description=description)
    for name, kind, description in (
        (ACLS_DELETED, OpenApiTypes.INT, "ACLs that went with the user"),
        (
            ACLS_LEFT,
            OpenApiTypes.INT,
            "ACLs that still name the user: whoever is given the name later has them. Not there: unknown",
        ),
        (
            IS_SUPER_USER,
            OpenApiTypes.BOOL,
            "whether the config of the instance still has the user among its super users",
        ),
    )
]
USER_PARAMETERS = [
    filters.text_parameter("prefix", "only users whose names begin so"),
    filters.choice_parameter("mechanism", MECHANISMS, "only users who can log in by this mechanism"),
    sorting.parameter(["name"], "name"),
    *pagination.PARAMETERS,
]
ACL_PARAMETERS = [
    AclFilterSerializer,
    sorting.parameter(selectors.ACLS_SORTED, "all members one behind another"),
    *pagination.PARAMETERS,
]
SPAN = [
    OpenApiParameter("from", OpenApiTypes.DATETIME, description="what happened then or later; by default everything"),
    OpenApiParameter("to", OpenApiTypes.DATETIME, description="what happened before; by default everything"),
]


def _valid(body: BaseSerializer[Any]) -> dict[str, Any]:
    body.is_valid(raise_exception=True)
    found: dict[str, Any] = body.validated_data
    return found


def _user_named(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    return _what_goes(request, ids["instance_id"], **_valid(UserNameSerializer(data=request.data)))


def _user_at(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    return _what_goes(request, ids["instance_id"], ids["user"], request.query_params.get("with_acls") == "true")


def _what_goes(
    request: Request, instance_id: str, name: str, with_acls: bool = False
) -> dict[str, Any]:  # as in a body
    """Of a user who is deleted: he, and ACLs that name him where they go as well."""
    of: dict[str, Any] = {"organisation": caller_of(request).organisation, "instance_id": instance_id}
    found: dict[str, Any] = {}
    with suppress(NotFound):  # of one who is gone already, his ACLs go all the same
        found = dict(UserSerializer(selectors.user_get(**of, name=name)).data)
    named = selectors.acls_naming(**of, name=name) if with_acls else []
    return {**found, "acls": AclSerializer(named, many=True).data} if named else found


def _there(wanted: Callable[[Any], Callable[[Acl], bool]]) -> dry_runs.Seen:
    """Those ACLs of the instance that a call with this body is about. Raises NotFound where there are none."""

    def look(_view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
        takes, organisation = wanted(request.data), caller_of(request).organisation
        found = list(filter(takes, selectors.acl_list(organisation=organisation, instance_id=ids["instance_id"])))
        if not found:
            raise NotFound("there is no such ACL")
        return dict(AclsSerializer({"items": found}).data)

    return look


def _one(view: APIView, request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a body that is one ACL."""
    (found,) = _there(lambda body: [_acl_of(body)].__contains__)(view, request, ids)["items"]
    return dict(found)


def _refused_then(wanted: Callable[[Any], Sequence[Acl]]) -> dry_runs.Touches:
    """Clients that use a topic now and would be refused with these ACLs."""

    def touched(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
        at = {"organisation": caller_of(request).organisation, "instance_id": ids["instance_id"]}
        return tuple(
            entry
            for each in acls_cut_off(**at, added=wanted(request.data))
            for entry in affected(
                "clients",
                each.clients,
                f"use topic {each.topic} now as {each.principal}: {each.operation} would be refused to them",
            )
        )

    return touched


def _clients_then(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
    """Clients that would be refused, or let in, without the ACLs that a filter takes."""
    return _clients_without(request, ids["instance_id"], _filter_of(request.data))


def _clients_without(
    request: Request, instance_id: str, wanted: AclFilter, besides: Collection[str] = ()
) -> tuple[Affected, ...]:
    """The same of this filter. `besides`: principals that are told of already."""
    at = {"organisation": caller_of(request).organisation, "instance_id": instance_id}
    return tuple(
        entry
        for each in acls_cut_off(**at, removed=wanted.takes)
        if each.principal not in besides
        for entry in affected(
            "clients",
            each.clients,
            f"are connected as {each.principal}: {each.operation} of topic {each.topic} would be open to them"
            if each.is_let_in
            else f"use topic {each.topic} now as {each.principal}: {each.operation} would be refused to them",
        )
    )


def _without_user_named(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
    return _without_user(request, ids["instance_id"], **_valid(UserNameSerializer(data=request.data)))


def _without_user_at(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
    return _without_user(request, ids["instance_id"], ids["user"], request.query_params.get("with_acls") == "true")


def _without_user(
    request: Request, instance_id: str, name: str, with_acls: bool = False
) -> tuple[Affected, ...]:  # as in a body
    """Clients that are connected as a user who is deleted; and whom ACLs that go with him would refuse, or let in, besides."""
    clients = user_connected(organisation=caller_of(request).organisation, instance_id=instance_id, name=name)
    principal = f"{USER}{name}"
    cut = affected("clients", clients, f"are connected as {principal}: they are cut off, and log in no more")
    if not with_acls:
        return cut
    return (*cut, *_clients_without(request, instance_id, users.naming(name), {principal} if clients else ()))


def _acl_of(body: Any) -> Acl:
    return AclCreateSerializer.acl(_valid(AclCreateSerializer(data=body)))


def _batch_of(body: Any) -> list[Acl]:
    return [AclCreateSerializer.acl(item) for item in _valid(AclBatchSerializer(data=body))["items"]]


def _preset_of(body: Any) -> list[Acl]:
    members = _valid(AclPresetSerializer(data=body))
    return acls.preset_wanted(**members | {"pattern_type": PatternType[members["pattern_type"]]})


def _filter_of(body: Any) -> AclFilter:
    return AclFilterSerializer.wanted(_valid(AclFilterSerializer(data=body)))


def _user_name(view: selectors.UserView) -> str:
    return view.name


class UsersApi(APIView):
    """/api/v1/instances/{id}/users."""

    deletes_by_body = True

    @extend_schema(responses=UserPageSerializer, parameters=USER_PARAMETERS, tags=USERS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Users of the instance by name; those that Kafka clients have made are among them."""
        views = selectors.user_list(organisation=caller_of(request).organisation, instance_id=instance_id)
        prefix, mechanism = filters.text_of(request, "prefix"), filters.choice_of(request, "mechanism", MECHANISMS)
        found = [
            view for view in views if view.name.startswith(prefix) and (not mechanism or mechanism in view.mechanisms)
        ]
        order = sorting.order_of(request, ["name"])
        if order is None:
            page, following = pagination.items_page(request, found, _user_name)
        else:
            page, following = sorting.items_page(request, found, order, value=_user_name, key=_user_name)
        return Response(pagination.body(list(UserSerializer(page, many=True).data), following))

    @extend_schema(request=UserCreateSerializer, responses={201: UserWithPasswordSerializer}, tags=USERS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """A new user. Only what verifies the password is stored; he can log in within 2 s."""
        members = _valid(UserCreateSerializer(data=request.data))
        return _user(*users.user_create(**caller_of(request).place(instance_id), **members), status=201)

    @extend_schema(request=UserNameSerializer, responses={204: None}, parameters=LEFT, tags=USERS)
    @dry_runs.rehearsed(of=_user_named, touches=_without_user_named)
    def delete(self, request: Request, instance_id: str) -> Response:
        """Delete the user of this name, with the ACLs that name it or without."""
        members = _valid(UserNameSerializer(data=request.data))
        return _deleted(users.user_delete(**caller_of(request).place(instance_id), **members))


class UserApi(APIView):
    """/api/v1/instances/{id}/users/{name}."""

    @extend_schema(responses=UserSerializer, tags=USERS)
    def get(self, request: Request, instance_id: str, user: str) -> Response:
        """One user."""
        organisation = caller_of(request).organisation
        view = selectors.user_get(organisation=organisation, instance_id=instance_id, name=user)
        return Response(UserSerializer(view).data)

    @extend_schema(responses={204: None}, parameters=[WITH_ACLS, *LEFT], tags=USERS)
    @dry_runs.rehearsed(of=_user_at, touches=_without_user_at)
    def delete(self, request: Request, instance_id: str, user: str) -> Response:
        """Nobody logs in by this name any more. ACLs that name it stay unless they are to go as well."""
        text = request.query_params.get("with_acls", "false")
        if text not in ("true", "false"):
            raise Invalid.field("with_acls", "must be true or false")
        return _deleted(users.user_delete(**caller_of(request).place(instance_id), name=user, with_acls=text == "true"))


def _deleted(deleted: users.Deleted) -> Response:
    """What became of the user's rights stands in headers: there is nothing more to be shown."""
    headers = {ACLS_DELETED: str(deleted.acls_deleted), IS_SUPER_USER: str(deleted.is_super_user).lower()}
    if deleted.acls_left is not None:
        headers[ACLS_LEFT] = str(deleted.acls_left)
    return Response(status=204, headers=headers)


class UserPasswordApi(APIView):
    """/api/v1/instances/{id}/users/{name}/password."""

    @extend_schema(request=UserPasswordSerializer, responses=UserWithPasswordSerializer, tags=USERS)
    @dry_runs.rehearsed(of=dry_runs.item(UserApi), touches_unseen=True)
    def put(self, request: Request, instance_id: str, user: str) -> Response:
        """Another password; that of before may stay good for a while, so that clients can change one after another.

        A dry run looks whether the password can be one, and at nothing that would say whether it is the present one.
        """
        members = _valid(UserPasswordSerializer(data=request.data))
        if dry_runs.is_dry_run(request) and "password" in members:
            # Tried with another one: nobody guesses by a call that leaves no trace.
            password_checked(members.pop("password"))
        return _user(*users.user_password_set(**caller_of(request).place(instance_id), name=user, **members))


def _user(user: User, password: str | None, status: int = 200) -> Response:
    view = UserSerializer(selectors.user_shown(user)).data
    return Response({**view, "password": password}, status=status, headers=SECRET if password else None)


class AclsApi(APIView):
    """/api/v1/instances/{id}/acls."""

    deletes_by_body = True

    @extend_schema(responses=AclPageSerializer, parameters=ACL_PARAMETERS, tags=ACLS)
    def get(self, request: Request, instance_id: str) -> Response:
        """ACLs of the instance; those that Kafka clients have made are among them."""
        wanted = AclFilterSerializer.wanted(filters.query_of(request, AclFilterSerializer))
        organisation = caller_of(request).organisation
        found = selectors.acl_list(organisation=organisation, instance_id=instance_id, wanted=wanted)
        page, following = sorting.known_page(
            request, sorted(found, key=selectors.acl_key), selectors.ACLS_SORTED, selectors.acl_key
        )
        return Response(pagination.body(list(AclSerializer(page, many=True).data), following))

    @extend_schema(request=AclCreateSerializer, responses={201: AclSerializer}, tags=ACLS)
    @dry_runs.rehearsed(of=_one, touches=_refused_then(lambda body: [_acl_of(body)]))
    def post(self, request: Request, instance_id: str) -> Response:
        """A new ACL, in force within 2 s, on open connections too. One that is there already stays."""
        made = acls.acls_create(**caller_of(request).place(instance_id), acls=[_acl_of(request.data)])
        return Response(AclSerializer(made[0]).data, status=201)

    @extend_schema(request=AclFilterSerializer, responses={200: AclsSerializer}, tags=ACLS)
    @dry_runs.rehearsed(of=_there(lambda body: _filter_of(body).takes), touches=_clients_then)
    def delete(self, request: Request, instance_id: str) -> Response:
        """Delete the ACLs that the filter takes; the answer says which. Whoever means all says ANY."""
        members = _valid(AclFilterSerializer(data=request.data))
        if not members:
            raise Invalid('name one member or more; {"resource_type": "ANY"} means every ACL of the instance')
        wanted = AclFilterSerializer.wanted(members)
        return _acls(acls.acls_delete(**caller_of(request).place(instance_id), wanted=wanted))


class AclBatchApi(APIView):
    """/api/v1/instances/{id}/acls/batch."""

    @extend_schema(request=AclBatchSerializer, responses={201: AclsSerializer}, tags=ACLS)
    @dry_runs.rehearsed(
        of=_there(lambda body: frozenset(_batch_of(body)).__contains__),
        touches=_refused_then(_batch_of),
    )
    def post(self, request: Request, instance_id: str) -> Response:
        """Several ACLs, all or none."""
        wanted = _batch_of(request.data)
        return _acls(acls.acls_create(**caller_of(request).place(instance_id), acls=wanted, is_batch=True), status=201)


class AclPresetsApi(APIView):
    """/api/v1/instances/{id}/acls/presets."""

    @extend_schema(request=AclPresetSerializer, responses={201: AclsSerializer}, tags=ACLS)
    @dry_runs.rehearsed(of=_there(lambda body: _preset_of(body).__contains__), touches=_refused_then(_preset_of))
    def post(self, request: Request, instance_id: str) -> Response:
        """The ACLs that a producer of a topic needs, or a consumer in a group; prefixed, for topics to come as well."""
        members = _valid(AclPresetSerializer(data=request.data))
        pattern_type = PatternType[members.pop("pattern_type")]
        made = acls.acls_preset(**caller_of(request).place(instance_id), **members, pattern_type=pattern_type)
        return _acls(made, status=201)


class AccessCheckApi(APIView):
    """/api/v1/instances/{id}/access-check."""

    permission_classes = (LookingPermission,)

    @extend_schema(request=AccessQuestionSerializer, responses=AccessAnswerSerializer, tags=["access"])
    def post(self, request: Request, instance_id: str) -> Response:
        """Whether somebody may do something, by what brokers go by now, and which rule says so. Changes nothing."""
        members = _valid(AccessQuestionSerializer(data=request.data))
        organisation = caller_of(request).organisation
        found = selectors.access_explain(organisation=organisation, instance_id=instance_id, **members)
        rule = {"kind": found.rule.value, "acl": found.acl}
        answer = {"allowed": found.allowed, "rule": rule, "reason": found.reason}
        return Response(AccessAnswerSerializer(answer).data)


class AuditApi(APIView):
    """/api/v1/instances/{id}/audit."""

    @extend_schema(
        responses=AuditPageSerializer,
        parameters=[*pagination.PARAMETERS, *SPAN, AuditFilterSerializer],
        tags=["access"],
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """What happened at the instance, the newest first, as brokers have written it to `__sluice_audit`.

        They write while `audit` of the instance's `config` is on. A call reads a bounded number of records: with a filter, a
        page may hold few or none and still have a `next`, which goes on where this one has stopped.
        """
        asked = AuditFilterSerializer.wanted(filters.query_of(request, AuditFilterSerializer))
        since, until = span_of(request)
        wanted = trail.AuditFilter(**asked, since=since, until=until)
        before, limit = pagination.place_page(request)
        organisation = caller_of(request).organisation
        page = trail.audit_page(
            organisation=organisation, instance_id=instance_id, wanted=wanted, before=before, most=limit
        )
        return Response(AuditPageSerializer(page).data)


def _acls(found: Sequence[Acl], status: int = 200) -> Response:
    return Response({"items": AclSerializer(found, many=True).data}, status=status)
