"""Invitations: links by which people come into organisations. Made, withdrawn and used here.

Nobody is made a member by their address alone: whoever signs up first with an address need not be its owner. A link works
once, for the address that it was made for, and for a week. Whoever is no owner any more has their open invitations withdrawn;
and a link works only while whoever made it is an owner whose account is active.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, Q

from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.tenants import in_use
from controlplane.tenants.models import CustomRole, Invitation, Role

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.tenants.models import Membership, Organisation
    from controlplane.tenants.services import Person

VALID_FOR = timedelta(days=7)
MOST_OPEN = 100
"""Of one organisation."""
_TOKEN_BYTES = 32
_OPEN = Q(accepted_at__isnull=True, withdrawn_at__isnull=True)
_BY_AN_OWNER = Q(
    invited_by__is_active=True,
    invited_by__memberships__organisation=F("organisation"),
    invited_by__memberships__role=Role.OWNER,
)
"""As it is now: an account may be closed, and the role be taken between the look at it and the invitation."""


def invitation_list(*, organisation: Organisation) -> QuerySet[Invitation]:
    """Those that are open, expired ones too, the newest first."""
    rows = Invitation.objects.for_organisation(organisation).filter(_OPEN)
    return rows.select_related("invited_by", "custom_role").order_by("-created_at", "id")


@transaction.atomic
def invitation_create(
    *,
    organisation: Organisation,
    inviter: Person,
    email: str,
    role: Role,
    custom_role: CustomRole | None = None,
    is_mailed: bool = False,
    language: str = "en",
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Invitation, str]:
    """An invitation, and the token of its link: the only time that it can be seen. An earlier one of this address ends.

    With `custom_role`, which the organisation must have, `role` is a viewer's.

    Whether somebody has signed up with the address makes no difference, and is not said. `is_mailed`: the caller sends the
    token to the address and shows it to nobody. Raises Invalid beside `email`,
    NotFound for a role that there is not, Conflict where too many are open.
    """
    in_use.locked(organisation)
    if custom_role is not None:
        # Under the lock: whoever deletes the role waits for it, or has done so.
        custom_role = CustomRole.objects.for_organisation(organisation).filter(pk=custom_role.pk).first()
        if custom_role is None:
            raise NotFound("no such role")
        role = Role.VIEWER
    email = email.strip().lower()
    if organisation.memberships.filter(user__email=email).exists():
        raise Invalid.field("email", f"the organisation has a member {email} already")
    now = clock.now()
    still_open = Invitation.objects.for_organisation(organisation).filter(_OPEN)
    _withdraw(still_open.filter(Q(email=email) | Q(expires_at__lte=now)), inviter.email, now)
    if still_open.count() >= MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} invitations are open already: withdraw some first", code="too_many_invitations")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    invitation = Invitation(
        id=ids.invitation_id(random.SystemRandom()),
        organisation=organisation,
        email=email,
        role=role.value,
        custom_role=custom_role,
        digest=_digest(token),
        invited_by_id=inviter.pk,
        created_at=now,
        expires_at=now + VALID_FOR,
        is_mailed=is_mailed,
        language=language,
    )
    invitation.save(force_insert=True)
    _audit(invitation, inviter.email, "invitation.create")
    return invitation, token


@transaction.atomic
def invitation_withdraw(
    *, organisation: Organisation, actor: str, invitation_id: str, clock: Clock = SYSTEM_CLOCK
) -> Invitation:
    """End an invitation: its link leads nowhere from now on. Withdrawing twice is once. Raises NotFound, Conflict."""
    in_use.locked(organisation)
    invitation = Invitation.objects.for_organisation(organisation).filter(pk=invitation_id).first()
    if invitation is None:
        raise NotFound("no such invitation")
    if invitation.accepted_at is not None:
        raise Conflict(f"{invitation.email} has accepted it already: remove the member instead", code="accepted")
    if invitation.withdrawn_at is None:
        _withdraw([invitation], actor, clock.now())
    return invitation


def invitations_end(
    *, organisation: Organisation, actor: str, membership: Membership, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Whoever made them decides no more who belongs to the organisation."""
    made = Invitation.objects.for_organisation(organisation).filter(_OPEN, invited_by=membership.user)
    _withdraw(made, actor, clock.now())


def invitations_end_all(*, organisation: Organisation, actor: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Nobody comes into it any more by a link of before."""
    _withdraw(Invitation.objects.for_organisation(organisation).filter(_OPEN), actor, clock.now())


def role_leave(custom_role: CustomRole, *, actor: str, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Whether no link brings anybody in with this role any more: those that were used or withdrawn name it no longer.

    Those that have expired are withdrawn. The audit trail goes on saying what they were made with.
    """
    rows = Invitation.objects.for_organisation(custom_role.organisation).filter(custom_role=custom_role)
    now, still_open = clock.now(), rows.filter(_OPEN)
    if still_open.filter(expires_at__gt=now).exists():
        return False
    _withdraw(still_open.filter(expires_at__lte=now), actor, now)
    rows.update(custom_role=None)
    return True


def _withdraw(invitations: Iterable[Invitation], actor: str, now: datetime) -> None:
    """Each with an entry of its own in the audit trail."""
    for invitation in invitations:
        invitation.withdrawn_at = now
        invitation.save(update_fields=["withdrawn_at"])
        _audit(invitation, actor, "invitation.withdraw")


def invitation_find(*, token: str, clock: Clock = SYSTEM_CLOCK) -> Invitation:
    """The invitation that a link leads to. Raises NotFound, with one sentence for whatever is wrong with it."""
    return _found(clock, digest=_digest(token))


def _found(clock: Clock, **which: object) -> Invitation:
    rows = Invitation.objects.unscoped("whoever has the link is not a member yet").filter(_OPEN, _BY_AN_OWNER)
    found = rows.filter(**which, expires_at__gt=clock.now()).select_related("organisation", "invited_by", "custom_role")
    invitation = found.first()
    if invitation is None:
        raise NotFound("this link is not valid any more: sign in if you have joined by it, or else ask for a new one")
    return invitation


def invitation_use(*, token: str, clock: Clock = SYSTEM_CLOCK) -> Invitation:
    """As `invitation_find`, and it is used up: of two at once, one. Within the caller's transaction."""
    return _used(invitation_find(token=token, clock=clock), clock)


def invitation_use_by_id(*, organisation: Organisation, invitation_id: str, clock: Clock = SYSTEM_CLOCK) -> Invitation:
    """The same of one of this organisation, whose link somebody has opened before. Raises NotFound."""
    return _used(_found(clock, organisation=organisation, pk=invitation_id), clock)


def _used(invitation: Invitation, clock: Clock) -> Invitation:
    in_use.locked(invitation.organisation)
    invitation = _found(clock, pk=invitation.pk)  # it may have ended before the lock was had
    invitation.accepted_at = clock.now()
    invitation.save(update_fields=["accepted_at"])
    return invitation


def _digest(token: str) -> str:
    """No salt and no slow hash: the token is random, so that there is nothing to guess."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _audit(invitation: Invitation, actor: str, action: str) -> None:
    audit.record(
        organisation=invitation.organisation,
        actor=actor,
        action=action,
        target=invitation.email,
        detail={"role": invitation.role, "invitation": invitation.id}
        | ({"custom_role": invitation.custom_role_id} if invitation.custom_role_id else {}),
    )
