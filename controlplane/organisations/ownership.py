"""Who owns an organisation, and what it is called. Owners decide both.

Handing over is one act: another member becomes owner and, if that is said, whoever asks steps down. Both happen under the lock on
the organisation that every change of its members takes, so that of two owners who hand over to each other at once one stays, and
nobody hands over who is no owner any more. The new owner has to be able to act: an account that is closed, whose address is still
to be confirmed, or that lacks the second factor which the organisation demands, would leave it without anybody who decides. So
would owners whom its own single sign-on keeps out, where it is required and who steps down is the last one who gets in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.accounts import custom_roles, services, standing
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook, differences, taken_back
from controlplane.core.errors import Conflict, Invalid, NotFound, SluiceError
from controlplane.core.text import name_checked
from controlplane.organisations import letters
from controlplane.organisations.telling import TRANSFER, person_tell, sending_check
from controlplane.sso.selectors import owners_getting_in, owners_without, rule_of
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role
from controlplane.tenants.selectors import member_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.accounts.models import ApiKey, User
    from controlplane.tenants.models import Membership, Organisation

STEP_DOWN_TO = (Role.OPERATOR, Role.BILLING, Role.MEMBER, Role.VIEWER)
NOT_LOOKED_UP = "whether another organisation has this name is not said before it is renamed: then it would be refused"
STEP_DOWN_CHOICES = [(role.value, role.label) for role in STEP_DOWN_TO]


@transaction.atomic
def organisation_rename(
    *,
    organisation: Organisation,
    by: User,
    name: str,
    with_key: ApiKey | None = None,
    check: Callable[[Organisation], None] | None = None,
) -> Organisation:
    """Another name, on invoices too. `with_key`: the API key that asks; `check` is told the organisation as it is.

    Raises Invalid, Forbidden, AlreadyExists, Conflict.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    return tenants.organisation_rename(organisation=organisation, actor=by.email, name=name, check=check)


def organisation_rename_check(
    *,
    organisation: Organisation,
    by: User,
    name: str,
    with_key: ApiKey | None = None,
    check: Callable[[Organisation], None] | None = None,
) -> Outlook:
    """What organisation_rename would do. Raises Invalid, Forbidden, Conflict.

    Whether another organisation has the name is not looked up: names of others could be found out without a trace.
    """
    with taken_back():
        services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    name = name_checked(name)
    if check is not None:
        check(organisation)
    changes = differences({"name": organisation.name}, {"name": name})
    return Outlook(changes, problems=(NOT_LOOKED_UP,) if changes else ())


@transaction.atomic
def second_factor_demand(*, organisation: Organisation, by: User, demanded: bool) -> None:
    """Every member needs a second factor, or none does. Raises Forbidden, Conflict where the owner who asks has none."""
    services.owner_lock(organisation=organisation, user=by, with_key=None)
    tenants.second_factor_demand(organisation=organisation, actor=by, demanded=demanded)


@transaction.atomic
def ownership_transfer(
    *,
    organisation: Organisation,
    by: User,
    membership_id: int,
    step_down_to: str | None = None,
    custom_role: str | None = None,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Membership:
    """Make another member owner; the membership of who is one now.

    `step_down_to`: what `by` is then, one of STEP_DOWN_TO; or `custom_role`, the id of a role of the organisation's own; neither:
    an owner, as before. To step down beside somebody who is an owner already is possible, too. `with_key`: the API key that asks.

    Raises NotFound, Invalid, Forbidden, Unauthenticated, LimitReached; Conflict where there is nothing to hand over, or they
    could not act.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    _role_check(organisation, step_down_to, custom_role)
    steps_down = step_down_to is not None or custom_role is not None
    target, own = _found(organisation, membership_id), member_list(organisation=organisation).get(user=by)
    if target.pk == own.pk:
        raise Invalid.field("member_id", "is yourself: name the member who is to be an owner")
    was_owner, email = target.role == Role.OWNER, target.user.email
    if was_owner and not steps_down:  # asked twice, it is not told twice
        raise Conflict(f"{email} is an owner already", code="already_owner")
    now = clock.now()
    sending_check(organisation, now)
    place: dict[str, Any] = {"organisation": organisation, "actor": by.email}
    if not was_owner:
        target = tenants.member_role_set(**place, membership_id=target.pk, role=Role.OWNER)
    if steps_down:
        custom_roles.member_role_give(
            organisation=organisation,
            by=by,
            membership_id=own.pk,
            role=step_down_to,
            custom_role=custom_role,
            with_key=with_key,
        )
    rule = rule_of(organisation)
    if rule is not None and steps_down and not owners_getting_in(rule):
        raise Conflict(
            f"{email} could not act as an owner yet: single sign-on is required here, and no owner would get in. They have to "
            "connect their account to the provider first",
            code="member_cannot_act",
        )
    is_shut = rule is not None and not owners_without(rule)
    detail = {"by": by.email, "steps_down_to": step_down_to or custom_role}
    audit.record(**place, action=TRANSFER, target=email, detail=detail, clock=clock)
    tell = letters.stepped_down if was_owner else letters.made_owner
    person_tell(organisation, target.user, lambda about: tell(about, by=by.email, is_shut=is_shut), now)
    person_tell(
        organisation,
        by,
        lambda about: letters.gave_ownership(about, to=email, is_owner=not steps_down, is_shut=is_shut),
        now,
    )
    return target


def _role_check(organisation: Organisation, step_down_to: str | None, custom_role: str | None) -> None:
    """What the owner who asks would be then. Raises Invalid, NotFound."""
    if step_down_to is not None and (custom_role is not None or step_down_to not in STEP_DOWN_TO):
        roles = ", ".join(STEP_DOWN_TO)
        raise Invalid.field("step_down_to", f"must be one of {roles}, and is left out beside custom_role")
    if custom_role is not None:
        custom_roles.custom_role_get(organisation=organisation, role_id=custom_role)


def _found(organisation: Organisation, membership_id: int) -> Membership:
    """Who is to be an owner. Raises NotFound, Conflict where they could not act as one."""
    target = member_list(organisation=organisation).filter(pk=membership_id).first()
    if target is None:
        raise NotFound("no such member")
    email = target.user.email
    if not target.user.is_active:
        raise Conflict(f"the account of {email} is closed", code="member_cannot_act")
    try:
        standing.member_check(target.user, target.organisation)
        standing.change_check(target.user)
    except SluiceError as error:
        raise Conflict(
            f"{email} could not act as an owner yet: they have to confirm their address, or to set up the second factor that the "
            "organisation requires",
            code="member_cannot_act",
        ) from error
    return target
