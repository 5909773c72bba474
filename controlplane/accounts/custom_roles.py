"""Roles of an organisation's own: sets of scopes, each to look or to change, and of instances. Owners make and give them.

What a role opens is asked of `scopes.Limits` at every request, by REST and in the console alike, so that another role, or another
set of scopes, holds from the next request on. It never opens what owners decide: members, others' keys, service accounts, roles,
budgets, the price plan.

Of a scope that has parts (`scopes.PARTS`) a role may change some alone; it looks at the scope as a whole.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import ProtectedError

from controlplane.accounts import services
from controlplane.accounts.models import ServiceAccount
from controlplane.accounts.owned import owned_audit, owned_save
from controlplane.accounts.scopes import CHANGE, CHANGING, LOOK, SCOPES, WHOLE_OF
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, Conflict, FieldProblem, Invalid, LimitReached, NotFound
from controlplane.core.text import name_checked, text_checked
from controlplane.tenants import services as tenants
from controlplane.tenants.invitations import role_leave
from controlplane.tenants.models import CustomRole, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet

    from controlplane.accounts.models import ApiKey, User
    from controlplane.tenants.models import Membership, Organisation

PREFIX = "rol-"
"""Of the id of one."""
MOST = 50
"""Of an organisation."""
MOST_INSTANCES = 500
LONGEST_DESCRIPTION = 512
LOOK_CHOICES = [(LOOK, LOOK)]
CHANGE_CHOICES = [(LOOK, LOOK), (CHANGE, CHANGE)]
PART_CHOICES = [(CHANGE, CHANGE)]
_INSTANCE_ID = re.compile(r"ins-[a-z0-9]{8}")


def custom_role_list(*, organisation: Organisation) -> QuerySet[CustomRole]:
    """Those of an organisation."""
    return CustomRole.objects.for_organisation(organisation)


def custom_role_get(*, organisation: Organisation, role_id: str) -> CustomRole:
    """Raises NotFound."""
    found = custom_role_list(organisation=organisation).filter(pk=role_id).first()
    if found is None:
        raise NotFound(f"no role {role_id}")
    return found


@transaction.atomic
def custom_role_create(
    *,
    organisation: Organisation,
    by: User,
    name: str,
    scopes: dict[str, str],
    description: str = "",
    instances: list[str] | None = None,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> CustomRole:
    """A new role, which nobody has. `with_key`: the API key that asks.

    Raises Invalid, Forbidden, AlreadyExists, LimitReached.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    wanted = _checked({"name": name, "description": description, "scopes": scopes, "instances": instances})
    if custom_role_list(organisation=organisation).count() >= MOST:
        raise LimitReached(f"an organisation has at most {MOST} roles: delete some first", code="too_many_roles")
    made = CustomRole(
        id=ids.role_id(random.SystemRandom()), organisation=organisation, created_at=clock.now(), **wanted
    )
    owned_save(made, taken=_taken(made.name), force_insert=True)
    owned_audit(made, by, "role.create", wanted)
    return made


@transaction.atomic
def custom_role_change(
    *,
    organisation: Organisation,
    by: User,
    role_id: str,
    with_key: ApiKey | None = None,
    check: Callable[[CustomRole], None] | None = None,
    **changes: Any,
) -> CustomRole:
    """Another `name`, `description`, other `scopes` or `instances`, from the next request on; what is left out stays.

    `check` is told the role that is to be another.

    Raises NotFound, Invalid, Forbidden, AlreadyExists.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    if not changes:
        raise Invalid("nothing to change: give one or more of name, description, scopes, instances")
    found = custom_role_get(organisation=organisation, role_id=role_id)
    if check is not None:
        check(found)
    wanted = _checked(changes)
    before = {member: getattr(found, member) for member in wanted}
    for member, value in wanted.items():
        setattr(found, member, value)
    if before != wanted:
        owned_save(found, taken=_taken(found.name), update_fields=list(wanted))
        owned_audit(found, by, "role.change", audit.changed(before, wanted))
    return found


@transaction.atomic
def custom_role_delete(
    *,
    organisation: Organisation,
    by: User,
    role_id: str,
    with_key: ApiKey | None = None,
    check: Callable[[CustomRole], None] | None = None,
) -> None:
    """End a role that nobody has. `check` is told the role. Raises NotFound, Forbidden, Conflict."""
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    found = custom_role_get(organisation=organisation, role_id=role_id)
    if check is not None:
        check(found)
    accounts = ServiceAccount.objects.for_organisation(organisation).filter(custom_role=found)
    in_use = Conflict("somebody has this role, or is invited with it: give them another one first", code="role_in_use")
    if found.memberships.exists() or accounts.exists() or not role_leave(found, actor=by.email):
        raise in_use
    members = {member: getattr(found, member) for member in ("name", "description", "scopes", "instances")}
    owned_audit(found, by, "role.delete", members)
    try:
        with transaction.atomic():
            found.delete()
    except ProtectedError as error:
        raise in_use from error


def role_named(text: str) -> dict[str, str]:
    """Members of a request: ``{"custom_role": "rol-…"}`` for the id of one, else ``{"role": …}``."""
    return {"custom_role" if text.startswith(PREFIX) else "role": text}


@transaction.atomic
def member_role_give(
    *,
    organisation: Organisation,
    by: User,
    membership_id: int,
    role: str | None = None,
    custom_role: str | None = None,
    with_key: ApiKey | None = None,
    check: Callable[[Membership], None] | None = None,
) -> Membership:
    """Another role for a member: one of all organisations, or one of their own by its id. `with_key`: the API key that asks.

    `check` is told the member as they are.

    Who was an owner when the request began, and is none any more, gives nobody a role: least of all themselves.

    Raises NotFound, Invalid, Forbidden, and Conflict for the last owner.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    if (role is None) == (custom_role is None) or (role is not None and role not in Role.values):
        raise Invalid.field("role", f"must be one of {', '.join(Role.values)}; or custom_role the id of a role")
    own = custom_role_get(organisation=organisation, role_id=custom_role) if custom_role is not None else None
    return tenants.member_role_set(
        organisation=organisation,
        actor=by.email,
        membership_id=membership_id,
        role=Role(role) if role is not None else Role.VIEWER,
        custom_role=own,
        check=check,
    )


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"there is a role called {name}")


def _checked(wanted: dict[str, Any]) -> dict[str, Any]:
    """As the row has them. Raises Invalid beside the member."""
    found = dict(wanted)
    if "name" in found:
        found["name"] = name_checked(found["name"])
    if "description" in found:
        found["description"] = text_checked(found["description"], field="description", most=LONGEST_DESCRIPTION)
    if "scopes" in found:
        found["scopes"] = _scopes(found["scopes"])
    if found.get("instances") is not None:
        found["instances"] = _instances(found["instances"])
    return found


def _scopes(wanted: dict[str, str]) -> dict[str, str]:
    problems = [
        FieldProblem(f"scopes.{scope}", problem) for scope, kind in wanted.items() if (problem := _problem(scope, kind))
    ]
    if not wanted:
        problems.append(FieldProblem("scopes", "would leave the role good for nothing"))
    if problems:
        raise Invalid(f"{problems[0].field}: {problems[0].detail}", errors=problems)
    return {scope: wanted[scope] for scope in SCOPES if scope in wanted}


def _problem(scope: str, kind: str) -> str | None:
    if scope not in SCOPES:
        return f"is no scope: there are {', '.join(SCOPES)}"
    if kind not in (LOOK, CHANGE):
        return f"must be {LOOK} or {CHANGE}"
    if kind == LOOK and scope in WHOLE_OF:
        return f"must be {CHANGE}: to look at it, take {WHOLE_OF[scope]}"
    if kind == CHANGE and scope not in CHANGING:
        return f"must be {LOOK}: what else it opens is for owners to decide"
    return None


def _instances(wanted: list[str]) -> list[str]:
    if not wanted:
        raise Invalid.field("instances", "would leave the role good for nothing: leave it out for all")
    if len(wanted) > MOST_INSTANCES:
        raise Invalid.field("instances", f"has more than {MOST_INSTANCES}: leave it out for all")
    for index, each in enumerate(wanted):
        if not _INSTANCE_ID.fullmatch(each):
            raise Invalid.field(f"instances.{index}", "must be the id of an instance")
    return list(dict.fromkeys(wanted))
