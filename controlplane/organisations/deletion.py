"""The end of an organisation: marked for deletion, taken back, deleted.

::

                an owner, with its name typed             the clock, 7 days later
    in use ─────────────────────────────────> marked ──────────────────────────────> deleted
      ^                                          │
      └──────────── an owner takes it back ──────┘

Marked: from the next request on its API keys and access keys are refused and sessions that its single sign-on has begun end;
nobody is signed in by that, links of invitations lead nowhere, and each of its pages leads to the one that says so. Members, keys
and settings are kept, and good again as soon as an owner takes it back, who is asked whether keys are to be revoked instead: one
that was stolen would be good again with the others. That takes an owner who signs in to the console: keys are refused, and
somebody who has stolen one must not keep alive what is deleted because of it.

Deleted: `removal`. It waits for what has come in the way meanwhile; as long as it does, an owner can still take it back, so that
no organisation is closed to everybody without an end.

It is refused as long as something is in the way (`obstacles`), which is looked at under the lock on the organisation. Whoever
buys an instance has taken that lock before the purchase is committed, and looks whether the organisation is in use
(admission.admit): of a purchase and a deletion at once the one that comes second is refused.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.accounts import services
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Invalid
from controlplane.organisations import letters
from controlplane.organisations.obstacles import obstacles
from controlplane.organisations.telling import DELETE, RESTORE, SETTINGS, owners_tell, sending_check
from controlplane.sso.services import sessions_end
from controlplane.tenants import in_use
from controlplane.tenants.invitations import invitations_end_all

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.accounts.models import ApiKey, User
    from controlplane.tenants.models import Organisation

GRACE = timedelta(days=7)
"""For how long an owner can take a deletion back."""
ACTIVE, DELETING, DELETED = "active", "deleting", "deleted"
STATES = (ACTIVE, DELETING, DELETED)


def state_of(organisation: Organisation) -> str:
    """One of STATES."""
    if organisation.is_in_use:
        return ACTIVE
    return DELETING if organisation.deleted_at is None else DELETED


def is_due(organisation: Organisation, now: datetime) -> bool:
    """Whether it is marked, and the grace is over: it is deleted as soon as nothing is in the way."""
    return organisation.deletes_at is not None and organisation.deletes_at <= now


def is_too_late(organisation: Organisation, now: datetime) -> bool:
    """Whether nobody takes the deletion back any more."""
    if organisation.deleted_at is not None:
        return True
    return is_due(organisation, now) and not obstacles(organisation=organisation, now=now)


@transaction.atomic
def organisation_delete(
    *,
    organisation: Organisation,
    by: User,
    confirmation: str,
    with_key: ApiKey | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Organisation:
    """Mark it for deletion in GRACE. `confirmation` is its name, whole; `with_key`: the API key that asks.

    Raises Forbidden, Unauthenticated, Invalid, LimitReached; Conflict with each reason where something is in the way, or it is
    marked already.
    """
    services.owner_lock(organisation=organisation, user=by, with_key=with_key)
    row, now = in_use.locked(organisation), clock.now()
    if confirmation.strip() != row.name.strip():
        raise Invalid.field("name", "must be the name of the organisation, whole")
    found = obstacles(organisation=row, now=now)
    if found:
        reasons = "; ".join(each.detail for each in found)
        raise Conflict(
            f"the organisation cannot be deleted: {reasons}",
            code="organisation_in_use",
            errors=[FieldProblem("", each.detail) for each in found],
            members={"obstacles": [{"code": each.code, "count": each.count} for each in found]},
        )
    sending_check(row, now)
    ends = now + GRACE
    row.deletion_asked_at, row.deletes_at, row.deletion_foretold_at = now, ends, None
    row.save(update_fields=["deletion_asked_at", "deletes_at", "deletion_foretold_at"])
    invitations_end_all(organisation=row, actor=by.email, clock=clock)
    sessions_end(row)  # one that asks for nothing until it is taken back would go on
    owners_tell(row, lambda about: letters.marked(about, by=by.email, until=ends), now)
    detail = {"name": row.name, "deletes_at": ends.isoformat()} | audit.changed({"in_use": True}, {"in_use": False})
    _audit(row, by.email, DELETE, detail, clock)
    return row


@transaction.atomic
def organisation_restore(
    *, organisation: Organisation, by: User, revokes_keys: bool = False, clock: Clock = SYSTEM_CLOCK
) -> Organisation:
    """Take the deletion back: it is in use again, with its keys unless `revokes_keys`.

    Of one that is in use nothing else is changed: another owner has taken it back, and keys are revoked as they were meant to be.

    Raises Forbidden; Conflict where the time for it is over.
    """
    row, now = in_use.locked_any(organisation), clock.now()
    services.owner_check(organisation=row, user=by)
    if is_too_late(row, now):
        raise Conflict("the time in which the deletion could be taken back is over", code="grace_over")
    if revokes_keys:
        services.organisation_keys_revoke(organisation=row, actor=by.email, clock=clock)
    if row.is_in_use:
        return row
    row.deletion_asked_at = row.deletes_at = row.deletion_foretold_at = None
    row.save(update_fields=["deletion_asked_at", "deletes_at", "deletion_foretold_at"])
    owners_tell(
        row, lambda about: letters.taken_back(about, by=by.email, is_without_keys=revokes_keys), now, page=SETTINGS
    )
    detail = {"keys": "revoked" if revokes_keys else "kept"} | audit.changed({"in_use": False}, {"in_use": True})
    _audit(row, by.email, RESTORE, detail, clock)
    return row


def _audit(row: Organisation, actor: str, action: str, detail: dict[str, Any], clock: Clock) -> None:
    audit.record(organisation=row, actor=actor, action=action, target=row.id, detail=detail, clock=clock)
