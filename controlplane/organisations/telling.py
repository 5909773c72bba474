"""Mails about an organisation, in the transaction of what they are about; so many an hour."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from controlplane.accounts import standing
from controlplane.accounts.identity.links import address_of, letter_write
from controlplane.accounts.owners import owners_write
from controlplane.core.errors import LimitReached
from controlplane.core.models import AuditEntry
from controlplane.mail import outbox
from controlplane.organisations.letters import About

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from controlplane.accounts.models import User
    from controlplane.mail.letter import Letter
    from controlplane.tenants.models import Organisation

TRANSFER = "organisation.transfer"
DELETE, RESTORE, REMOVE = "organisation.delete", "organisation.restore", "organisation.remove"
"""Of the audit trail: handed over; marked, taken back, deleted by the clock."""
MAILED, LATELY = 20, timedelta(hours=1)
"""So often an organisation is handed over, marked and taken back in this time: each writes to its owners."""
SETTINGS, DELETION = "console:organisation_settings", "console:organisation_deletion"


def sending_check(organisation: Organisation, now: datetime) -> None:
    """Whether owners may be written to once more, by what one of them decides. Raises LimitReached.

    Taking a deletion back is never refused for this: it counts, and the next deletion is.
    """
    if not outbox.is_on():
        return
    acts = AuditEntry.objects.for_organisation(organisation).filter(action__in=(TRANSFER, DELETE, RESTORE))
    if acts.filter(at__gt=now - LATELY).count() >= MAILED:
        raise LimitReached(
            "this organisation was handed over, deleted and taken back too often lately: try again later",
            code="too_many_mails",
        )


def owners_tell(
    organisation: Organisation, compose: Callable[[About], Letter], at: datetime, *, page: str = DELETION
) -> None:
    """One mail to each owner: what `compose` makes of what may be said of the organisation. `page`: where its link leads."""
    owners_write(organisation=organisation, compose=lambda known: compose(_about(organisation, page, known)), at=at)


def person_tell(organisation: Organisation, user: User, compose: Callable[[About], Letter], at: datetime) -> None:
    """One mail, to somebody who need not be an owner any more. None where the service sends none, or not to this address yet."""
    if not outbox.is_on() or not user.is_active or standing.is_unconfirmed(user):
        return
    letter = compose(_about(organisation, SETTINGS, user.email_verified_at is not None))
    letter_write(letter=letter, address=user.email, language=user.language, now=at)


def _about(organisation: Organisation, page: str, is_known: bool) -> About:
    return About(organisation.id, organisation.name if is_known else "", address_of(page, organisation.id))
