"""Reading users and ACLs, as they are in force at this moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.access import records
from controlplane.access.users import naming, user_of
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, Unavailable
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import DEFAULT_ROUTE
from quota.contracts.acls import AclOperation, ResourceType
from quota.core.acl_filters import AclFilter
from quota.core.explain_access import ANONYMOUS, USER, Explained, Question, explain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.tenants.models import Organisation
    from quota.contracts.acls import Acl
    from quota.contracts.users import User

ACLS_SORTED: Mapping[str, Callable[[Acl], str]] = {
    "principal": lambda acl: acl.principal,
    "host": lambda acl: acl.host,
    "operation": lambda acl: acl.operation.name,
    "permission": lambda acl: acl.permission.name,
    "resource_type": lambda acl: acl.resource_type.name,
    "resource_name": lambda acl: acl.resource_name,
    "pattern_type": lambda acl: acl.pattern_type.name,
}
"""What a list of ACLs can be sorted by, in the words of REST."""


@dataclass(frozen=True, slots=True)
class UserView:
    """What may be seen of a user: nothing that verifies a password."""

    name: str
    iterations: Mapping[str, int]  # by mechanism
    previous_password_until: datetime | None  # until when two are good; None: there is one
    acls: int | None = None  # that name him; None: nobody has counted them

    @property
    def mechanisms(self) -> list[str]:
        """By which he can log in."""
        return list(self.iterations)


def user_list(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> list[UserView]:
    """All users, by name. Raises NotFound, Conflict, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return [user_shown(user, clock=clock) for user in records.users_read(instance)]


def users_with_acls(*, organisation: Organisation, instance_id: str) -> list[UserView]:
    """`user_list`, with how many ACLs name each as far as they can be read. Raises NotFound, Conflict, ClusterUnavailable."""
    views = user_list(organisation=organisation, instance_id=instance_id)
    try:
        acls = acl_list(organisation=organisation, instance_id=instance_id)
    except (Conflict, Unavailable):
        return views
    named = Counter(acl.principal for acl in acls)
    return [replace(view, acls=named[USER + view.name]) for view in views]


def user_get(*, organisation: Organisation, instance_id: str, name: str, clock: Clock = SYSTEM_CLOCK) -> UserView:
    """One user. Raises NotFound, Conflict, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return user_shown(user_of(records.users_read(instance), name), clock=clock)


def user_shown(user: User, *, clock: Clock = SYSTEM_CLOCK) -> UserView:
    """Without what is secret, and without what has ended."""
    presents = sorted((one for one in user.credentials if one.until_ms is None), key=lambda one: one.mechanism)
    ends = [datetime.fromtimestamp(one.until_ms / 1000, UTC) for one in user.credentials if one.until_ms is not None]
    until = max(ends, default=None)
    return UserView(
        user.name,
        {one.mechanism.value: one.iterations for one in presents},
        until if until is not None and until > clock.now() else None,
    )


def access_explain(
    *,
    organisation: Organisation,
    instance_id: str,
    source: str,
    operation: str,
    resource_type: str,
    resource_name: str,
    principal: str = ANONYMOUS,
    route: str = DEFAULT_ROUTE,
    clock: Clock = SYSTEM_CLOCK,
) -> Explained:
    """Whether somebody may do something, by what brokers go by at this moment, and which rule says so.

    A principal without "User:" is the user of that name. Raises NotFound, Invalid, Conflict, Unavailable.
    """
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    question = Question(
        source=source,
        principal=principal if principal.startswith(USER) else USER + principal,
        route=route,
        operation=AclOperation[operation],
        resource_type=ResourceType[resource_type],
        resource_name=resource_name,
    )
    now_ms = int(clock.now().timestamp() * 1000)
    spec = records.spec_read(instance)
    try:
        return explain(spec, question, now_ms=now_ms)
    except ValueError as error:
        raise Invalid.field("source", f"{source!r} is neither an IPv4 nor an IPv6 address") from error


def route_ids(*, organisation: Organisation, instance_id: str) -> list[str]:
    """The routes that brokers know. Raises NotFound, Conflict, Unavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return [route.id for route in records.spec_read(instance).routes]


def acl_key(acl: Acl) -> str:
    """All of it: an ACL has no id."""
    return "\0".join(acl.document().values())


def acl_list(*, organisation: Organisation, instance_id: str, wanted: AclFilter | None = None) -> list[Acl]:
    """The ACLs that a filter takes (None: all), sorted. Raises NotFound, Conflict, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    wanted = wanted or AclFilter()
    return [acl for acl in records.acls_read(instance) if wanted.takes(acl)]


def acls_naming(*, organisation: Organisation, instance_id: str, name: str) -> list[Acl]:
    """Those that go with the user of this name (`users.user_delete`). Raises NotFound, Conflict, ClusterUnavailable."""
    return acl_list(organisation=organisation, instance_id=instance_id, wanted=naming(name))
