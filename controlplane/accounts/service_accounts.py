"""Service accounts: identities of an organisation without a person. Owners make them, and make API keys for them.

=========  =====================================================================================================
made       by an owner, in any role but theirs. An owner it cannot be: no row of the database can say so
acts       by its API keys, within its role and within what each key is limited to
never      signs in; makes, rotates or revokes keys; changes members, invitations or service accounts
disabled   its keys are refused from the next request on, and good again as soon as it is enabled
deleted    its keys are revoked for good; the row stays, so that what they have done keeps its name
=========  =====================================================================================================

Its keys do not end when whoever made them leaves. Whoever may make them is asked for under a lock on their membership: an owner
who is removed at that moment leaves none behind.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.accounts import custom_roles, services
from controlplane.accounts.models import ApiKey, ServiceAccount
from controlplane.accounts.owned import owned_audit, owned_save
from controlplane.accounts.selectors import service_account_get, service_account_list
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, Invalid, LimitReached
from controlplane.core.text import name_checked, text_checked
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.accounts.models import User
    from controlplane.tenants.models import CustomRole, Organisation

MOST = 50
"""Of an organisation."""
LONGEST_DESCRIPTION = 512
ROLES = (Role.OPERATOR, Role.BILLING, Role.MEMBER, Role.VIEWER)
ROLE_CHOICES = [(role.value, role.label) for role in ROLES]


@transaction.atomic
def service_account_create(
    *,
    organisation: Organisation,
    by: User,
    name: str,
    role: str | None = None,
    description: str = "",
    custom_role: str | None = None,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> ServiceAccount:
    """A new one, without keys. `with_key`: the API key that asks. Raises Invalid, Forbidden, AlreadyExists, LimitReached."""
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    if (role is None) == (custom_role is None):
        raise Invalid.field("role", f"must be one of {', '.join(ROLES)}; or custom_role the id of a role")
    checked = _checked({"name": name, "description": description} | ({} if role is None else {"role": role}))
    checked |= _role(organisation, custom_role)
    rows = service_account_list(organisation=organisation)
    if rows.count() >= MOST:
        raise LimitReached(
            f"an organisation has at most {MOST} service accounts: delete some first", code="too_many_service_accounts"
        )
    made = ServiceAccount(
        id=ids.service_account_id(random.SystemRandom()),
        organisation=organisation,
        created_by=by.email,
        created_at=clock.now(),
        **checked,
    )
    owned_save(made, taken=_taken(made.name), force_insert=True)
    owned_audit(made, by, "service_account.create", _shown(checked))
    return made


@transaction.atomic
def service_account_change(
    *,
    organisation: Organisation,
    by: User,
    service_account_id: str,
    with_key: ApiKey | None = None,
    check: Callable[[ServiceAccount], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **changes: Any,
) -> ServiceAccount:
    """Another `name`, `description`, `role` or `custom_role` (an id), or `disabled`; what is left out stays.

    `check` is told the service account that is to be another.

    Raises NotFound, Invalid, Forbidden, AlreadyExists.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    if not changes:
        raise Invalid("nothing to change: give one or more of name, description, role, custom_role, disabled")
    found = service_account_get(organisation=organisation, service_account_id=service_account_id)
    if check is not None:
        check(found)
    disabled = changes.pop("disabled", None)
    custom_role = changes.pop("custom_role", None)
    if custom_role is not None and "role" in changes:
        raise Invalid.field("role", "leave it out where custom_role is given")
    wanted = _checked(changes)
    if custom_role is not None:
        wanted |= _role(organisation, custom_role)
    elif "role" in wanted:
        wanted["custom_role"] = None
    before = {member: getattr(found, member) for member in wanted}
    for member, value in wanted.items():
        setattr(found, member, value)
    if before != wanted:
        owned_save(found, taken=_taken(found.name), update_fields=list(wanted))
        owned_audit(found, by, "service_account.change", audit.changed(_shown(before), _shown(wanted)))
    if disabled is not None and disabled != (found.disabled_at is not None):
        found.disabled_at = clock.now() if disabled else None
        found.save(update_fields=["disabled_at"])
        detail = audit.changed({"disabled": not disabled}, {"disabled": disabled})
        owned_audit(found, by, "service_account.disable" if disabled else "service_account.enable", detail)
    return found


@transaction.atomic
def service_account_delete(
    *,
    organisation: Organisation,
    by: User,
    service_account_id: str,
    with_key: ApiKey | None = None,
    check: Callable[[ServiceAccount], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """End it, and revoke its keys. `check` is told the service account. Raises NotFound, Forbidden."""
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    found = service_account_get(organisation=organisation, service_account_id=service_account_id)
    if check is not None:
        check(found)
    keys = ApiKey.objects.for_organisation(organisation).filter(service_account=found, revoked_at=None)
    for key_id in keys.values_list("pk", flat=True):
        services.api_key_revoke(organisation=organisation, actor=by.email, key_id=key_id, clock=clock)
    was = _shown({member: getattr(found, member) for member in ("name", "description", "role", "custom_role")})
    found.deleted_at, found.custom_role = clock.now(), None
    found.save(update_fields=["deleted_at", "custom_role"])
    owned_audit(found, by, "service_account.delete", was)


@transaction.atomic
def service_account_key_create(
    *,
    organisation: Organisation,
    by: User,
    service_account_id: str,
    name: str,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **limits: Any,
) -> tuple[ApiKey, str]:
    """A key that acts as it, and its text: the only time that it can be seen. `limits` as `api_key_create` has them.

    Raises NotFound, Invalid, Forbidden, Unauthenticated.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    found = service_account_get(organisation=organisation, service_account_id=service_account_id)
    wanted = {"scopes": None, "instances": None, "addresses": None, "expires_at": None} | limits
    return services.api_key_save(
        whose={"organisation": organisation, "service_account": found},
        actor=by.email,
        name=name_checked(name),
        limits=wanted,
        now=clock.now(),
    )


def _role(organisation: Organisation, role_id: str | None) -> dict[str, Any]:
    """Members of the row for a role of the organisation's own, if one is named. Raises NotFound."""
    if role_id is None:
        return {}
    return {
        "role": Role.VIEWER.value,
        "custom_role": custom_roles.custom_role_get(organisation=organisation, role_id=role_id),
    }


def _taken(name: str) -> AlreadyExists:
    return AlreadyExists(f"there is a service account called {name}")


def _shown(members: dict[str, Any]) -> dict[str, Any]:
    """As the audit trail has them."""
    role: CustomRole | None = members.get("custom_role")
    return {**members, "custom_role": role.id if role else None} if "custom_role" in members else members


def _checked(wanted: dict[str, Any]) -> dict[str, Any]:
    """As the row has them. Raises Invalid beside the member."""
    found = dict(wanted)
    if "name" in found:
        found["name"] = name_checked(found["name"])
    if "role" in found and found["role"] not in ROLES:
        raise Invalid.field("role", f"must be one of {', '.join(ROLES)}: a service account never owns")
    if "role" in found:
        found["role"] = Role(found["role"]).value
    if "description" in found:
        found["description"] = text_checked(found["description"], field="description", most=LONGEST_DESCRIPTION)
    return found
