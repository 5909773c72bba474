"""What the service writes to the owners of an organisation about what belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.accounts import standing
from controlplane.accounts.identity.links import letter_write
from controlplane.accounts.models import User
from controlplane.mail import outbox
from controlplane.tenants.models import Role

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from controlplane.mail.letter import Letter
    from controlplane.tenants.models import Organisation


def owners_write(*, organisation: Organisation, compose: Callable[[bool], Letter], at: datetime) -> int:
    """A mail to each owner in their language, in the caller's transaction; to how many. None where the service sends no mails.

    `compose` is told whether its receiver is known to read the address: nothing that a tenant has written may stand in a mail
    to anybody else. Owners who have their address still to confirm, and accounts that are closed, get none.
    """
    if not outbox.is_on():
        return 0
    owners = User.objects.filter(
        is_active=True, memberships__organisation=organisation, memberships__role=Role.OWNER
    ).order_by("pk")
    told = 0
    for owner in owners:
        if standing.is_unconfirmed(owner):
            continue
        letter = compose(owner.email_verified_at is not None)
        letter_write(letter=letter, address=owner.email, language=owner.language, now=at)
        told += 1
    return told
