"""Service accounts: identities of an organisation without a person. Owners make them, and make API keys for them.

=========  =====================================================================================================
made       by an owner, as member or viewer. An owner it cannot be: no row of the database can say so
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

from django.db import IntegrityError, transaction

from controlplane.accounts import services
from controlplane.accounts.models import ApiKey, ServiceAccount
from controlplane.accounts.selectors import service_account_get, service_account_list
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, Invalid, LimitReached
from controlplane.core.text import name_checked
from controlplane.tenants.models import Organisation, Role

if TYPE_CHECKING:
    from controlplane.accounts.models import User

MOST = 50
"""Of an organisation."""
LONGEST_DESCRIPTION = 512
ROLES = (Role.MEMBER, Role.VIEWER)
ROLE_CHOICES = [(role.value, role.label) for role in ROLES]


@transaction.atomic
def service_account_create(
    *,
    organisation: Organisation,
    by: User,
    name: str,
    role: str,
    description: str = "",
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> ServiceAccount:
    """A new one, without keys. `with_key`: the API key that asks. Raises Invalid, Forbidden, AlreadyExists, LimitReached."""
    _owner(organisation, by, with_key)
    checked = _checked({"name": name, "role": role, "description": description})
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
    _save(made, force_insert=True)
    _audit(made, by, "service_account.create", checked)
    return made


@transaction.atomic
def service_account_change(
    *,
    organisation: Organisation,
    by: User,
    service_account_id: str,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **changes: Any,
) -> ServiceAccount:
    """Another `name`, `description`, `role`, or `disabled`; what is left out stays.

    Raises NotFound, Invalid, Forbidden, AlreadyExists.
    """
    _owner(organisation, by, with_key)
    if not changes:
        raise Invalid("nothing to change: give one or more of name, description, role, disabled")
    found = service_account_get(organisation=organisation, service_account_id=service_account_id)
    disabled = changes.pop("disabled", None)
    wanted = _checked(changes)
    before = {member: getattr(found, member) for member in wanted}
    for member, value in wanted.items():
        setattr(found, member, value)
    if before != wanted:
        _save(found, update_fields=list(wanted))
        _audit(found, by, "service_account.change", audit.changed(before, wanted))
    if disabled is not None and disabled != (found.disabled_at is not None):
        found.disabled_at = clock.now() if disabled else None
        found.save(update_fields=["disabled_at"])
        _audit(found, by, "service_account.disable" if disabled else "service_account.enable", {})
    return found


@transaction.atomic
def service_account_delete(
    *,
    organisation: Organisation,
    by: User,
    service_account_id: str,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """End it, and revoke its keys. Raises NotFound, Forbidden."""
    _owner(organisation, by, with_key)
    found = service_account_get(organisation=organisation, service_account_id=service_account_id)
    keys = ApiKey.objects.for_organisation(organisation).filter(service_account=found, revoked_at=None)
    for key_id in keys.values_list("pk", flat=True):
        services.api_key_revoke(organisation=organisation, actor=by.email, key_id=key_id, clock=clock)
    found.deleted_at = clock.now()
    found.save(update_fields=["deleted_at"])
    _audit(found, by, "service_account.delete", {})


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
    _owner(organisation, by, with_key)
    found = service_account_get(organisation=organisation, service_account_id=service_account_id)
    wanted = {"scopes": None, "instances": None, "addresses": None, "expires_at": None} | limits
    return services.api_key_save(
        whose={"organisation": organisation, "service_account": found},
        actor=by.email,
        name=name_checked(name),
        limits=wanted,
        now=clock.now(),
    )


def _owner(organisation: Organisation, by: User, with_key: ApiKey | None) -> None:
    """One change of an organisation's people and service accounts at a time, by whoever owns it still."""
    Organisation.objects.select_for_update(no_key=True).get(pk=organisation.pk)
    services.owner_check(organisation=organisation, user=by)
    services.key_is_good(organisation, with_key)


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
        found["description"] = _description(found["description"])
    return found


def _description(text: str) -> str:
    text = text.strip()
    if len(text) > LONGEST_DESCRIPTION:
        raise Invalid.field("description", f"must have at most {LONGEST_DESCRIPTION} characters")
    if text and not text.isprintable():
        raise Invalid.field("description", "must hold printable characters only")
    return text


def _save(row: ServiceAccount, **options: Any) -> None:
    try:
        with transaction.atomic():
            row.save(**options)
    except IntegrityError as error:
        raise AlreadyExists(f"there is a service account called {row.name}") from error


def _audit(row: ServiceAccount, by: User, action: str, detail: dict[str, Any]) -> None:
    audit.record(organisation=row.organisation, actor=by.email, action=action, target=row.id, detail=detail)
