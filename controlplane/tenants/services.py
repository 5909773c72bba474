"""Organisations are made here, and members get and lose their roles."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Protocol

from django.db import IntegrityError, transaction

from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, Conflict, NotFound
from controlplane.core.text import name_checked
from controlplane.tenants import in_use
from controlplane.tenants.invitations import invitations_end
from controlplane.tenants.models import CustomRole, Membership, Organisation, Role

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


class Person(Protocol):
    """A row of `accounts.models.User`: its own app stands above this one, which needs the address for the audit trail."""

    @property
    def pk(self) -> int: ...

    @property
    def email(self) -> str: ...

    @property
    def second_factor_at(self) -> datetime | None: ...


@transaction.atomic
def organisation_create(*, name: str, owner: Person, clock: Clock = SYSTEM_CLOCK) -> Organisation:
    """A new organisation with its first owner. Raises Invalid, AlreadyExists."""
    name = name_checked(name)
    taken = AlreadyExists(f"there is an organisation called {name}")
    if Organisation.objects.filter(name=name, deleted_at=None).exists():
        raise taken
    organisation = Organisation(id=ids.organisation_id(random.SystemRandom()), name=name, created_at=clock.now())
    try:
        with transaction.atomic():
            organisation.save(force_insert=True)
    except IntegrityError as error:  # made by somebody else at the same moment
        raise taken from error
    membership_set(organisation=organisation, user=owner, role=Role.OWNER)
    place: dict[str, Any] = {"organisation": organisation, "actor": owner.email, "target": organisation.id}
    audit.record(**place, action="organisation.create", detail={"name": name, "owner": owner.email})
    return organisation


@transaction.atomic
def organisation_rename(
    *, organisation: Organisation, actor: str, name: str, check: Callable[[Organisation], None] | None = None
) -> Organisation:
    """Another name, which no other organisation has. The caller has looked who asks. `check` is told the row as it is.

    Raises Invalid, AlreadyExists, Conflict.
    """
    name = name_checked(name)
    row = in_use.locked(organisation)
    if check is not None:
        check(row)
    if row.name == name:
        return row
    taken = AlreadyExists(f"there is an organisation called {name}")
    if Organisation.objects.filter(name=name, deleted_at=None).exists():
        raise taken
    detail = audit.changed({"name": row.name}, {"name": name})
    row.name = name
    try:
        with transaction.atomic():
            row.save(update_fields=["name"])
    except IntegrityError as error:  # taken by somebody else at the same moment
        raise taken from error
    audit.record(organisation=row, actor=actor, action="organisation.rename", target=row.id, detail=detail)
    return row


def membership_set(
    *, organisation: Organisation, user: Person, role: Role, custom_role: CustomRole | None = None
) -> Membership:
    """Put a person into an organisation, or change the role. With `custom_role`, `role` is a viewer's."""
    membership, _ = Membership.objects.update_or_create(
        organisation=organisation, user_id=user.pk, defaults={"role": role.value, "custom_role": custom_role}
    )
    return membership


@transaction.atomic
def member_add(
    *, organisation: Organisation, actor: str, user: Person, role: Role, custom_role: CustomRole | None = None
) -> Membership:
    """Bring a person into an organisation. Whoever is in it keeps the role that they have."""
    membership = Membership.objects.filter(organisation=organisation, user=user.pk).first()
    if membership is None:
        membership = membership_set(organisation=organisation, user=user, role=role, custom_role=custom_role)
        _audit(organisation, actor, "member.add", user, role, custom_role)
    return membership


@transaction.atomic
def member_role_set(
    *,
    organisation: Organisation,
    actor: str,
    membership_id: int,
    role: Role,
    custom_role: CustomRole | None = None,
    check: Callable[[Membership], None] | None = None,
) -> Membership:
    """Change what a member may do. With `custom_role`, which the organisation must have, `role` is a viewer's.

    `check` is told the member as they are. Raises NotFound, Conflict for the last owner.
    """
    membership = _membership(organisation, membership_id)
    if check is not None:
        check(membership)
    if custom_role is not None:
        # Under the lock: whoever deletes the role waits for it, or has done so.
        custom_role = CustomRole.objects.for_organisation(organisation).filter(pk=custom_role.pk).first()
        if custom_role is None:
            raise NotFound("no such role")
        role = Role.VIEWER
    if role != Role.OWNER:
        _keep_an_owner(organisation, membership)
        invitations_end(organisation=organisation, actor=actor, membership=membership)
    before = {"role": membership.role, "custom_role": membership.custom_role_id}
    membership.role, membership.custom_role = role.value, custom_role
    membership.save(update_fields=["role", "custom_role"])
    after = {"role": role.value, "custom_role": membership.custom_role_id}
    detail = audit.changed(before, after)
    audit.record(
        organisation=organisation, actor=actor, action="member.role", target=membership.user.email, detail=detail
    )
    return membership


@transaction.atomic
def member_remove(
    *,
    organisation: Organisation,
    actor: str,
    membership_id: int,
    check: Callable[[Membership], None] | None = None,
) -> Membership:
    """Take a person out; the row that is gone. Their keys are accounts/joining.py's. `check` is told the member as they are.

    Raises NotFound, Conflict.
    """
    membership = _membership(organisation, membership_id)
    if check is not None:
        check(membership)
    _keep_an_owner(organisation, membership)
    invitations_end(organisation=organisation, actor=actor, membership=membership)
    # Before what goes with the row: whoever ends a connection, or makes a key, has locked the member first, too.
    list(Membership.objects.select_for_update().filter(pk=membership.pk).values_list("pk"))
    membership.delete()
    _audit(organisation, actor, "member.remove", membership.user, Role(membership.role))
    return membership


@transaction.atomic
def second_factor_demand(*, organisation: Organisation, actor: Person, demanded: bool) -> None:
    """Every member needs a second factor, or none does. Raises Conflict where the owner who asks has none."""
    if demanded and actor.second_factor_at is None:
        raise Conflict("set up a second factor for yourself first", code="second_factor_off")
    rows = Organisation.objects.filter(pk=organisation.pk)
    before = rows.values_list("second_factor_demanded", flat=True).get()
    rows.update(second_factor_demanded=demanded)
    action = "organisation.second_factor_demanded" if demanded else "organisation.second_factor_left"
    detail = audit.changed({"demanded": before}, {"demanded": demanded})
    audit.record(organisation=organisation, actor=actor.email, action=action, target=organisation.id, detail=detail)


def _membership(organisation: Organisation, membership_id: int) -> Membership:
    # The lock on the organisation lets one change of its members happen at a time: the last two owners cannot both go.
    in_use.locked(organisation)
    membership = organisation.memberships.filter(pk=membership_id).select_related("user").first()
    if membership is None:
        raise NotFound("no such member")
    return membership


def _keep_an_owner(organisation: Organisation, leaving: Membership) -> None:
    others = organisation.memberships.filter(role=Role.OWNER, user__is_active=True).exclude(pk=leaving.pk)
    if leaving.role == Role.OWNER and not others.exists():
        raise Conflict("an organisation needs an owner: make someone else one first", code="last_owner")


def _audit(
    organisation: Organisation,
    actor: str,
    action: str,
    user: Person,
    role: Role,
    custom_role: CustomRole | None = None,
) -> None:
    audit.record(
        organisation=organisation,
        actor=actor,
        action=action,
        target=user.email,
        detail={"role": role.value} | ({} if custom_role is None else {"custom_role": custom_role.id}),
    )
