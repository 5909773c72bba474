"""An address is confirmed by whoever reads it, and changed for another one that was confirmed.

Links are used by the person who is signed in to the account: whoever only reads the mail of an account that somebody else has
begun with their address would confirm it for them otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction

from controlplane.accounts.identity import letters, links
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import LinkPurpose, MailedLink, User
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, Unsupported
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime

PURPOSES = (LinkPurpose.VERIFY, LinkPurpose.CHANGE)
HOUR_S = 3600
TAKEN = "there is an account with this address"


@transaction.atomic
def verification_send(*, user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    """A link to the address of the account. Raises Conflict, TooManyAttempts, LimitReached, Unsupported."""
    mail_needed()
    now = clock.now()
    User.objects.select_for_update().get(pk=user.pk)  # two clicks at once are one mail
    if user.email_verified_at is not None:
        raise Conflict("this address is confirmed already", code="already_confirmed")
    links.sending_check(user=user, purpose=LinkPurpose.VERIFY, now=now)
    link = links.link_make(user=user, purpose=LinkPurpose.VERIFY, address=user.email, now=now)
    letter = letters.verification(link=link, hours=_hours(LinkPurpose.VERIFY))
    links.letter_write(letter=letter, address=user.email, language=user.language, now=now)


@transaction.atomic
def address_change_ask(*, user: User, email: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """A link to the new address; until it is used nothing changes. Raises Invalid, TooManyAttempts, LimitReached.

    Whether somebody has the address already is not looked at: only who reads it learns that, by the link.
    """
    mail_needed()
    now, email = clock.now(), email.strip().lower()
    User.objects.select_for_update().get(pk=user.pk)
    if email == user.email:
        raise Invalid.field("email", "this is the address that you have")
    links.sending_check(user=user, purpose=LinkPurpose.CHANGE, now=now)
    links.links_end(user=user, purposes=(LinkPurpose.CHANGE,), now=now)  # the last one that was typed is meant
    link = links.link_make(user=user, purpose=LinkPurpose.CHANGE, address=email, now=now)
    letter = letters.address_change(link=link, hours=_hours(LinkPurpose.CHANGE), before=user.email)
    links.letter_write(letter=letter, address=email, language=user.language, now=now)
    record_everywhere(user, "account.address_ask", to=email)


def address_link_find(*, token: str, user: User, clock: Clock = SYSTEM_CLOCK) -> MailedLink:
    """What a link is about. Raises NotFound; Conflict where it is another account's."""
    link = links.link_find(token=token, purposes=PURPOSES, now=clock.now())
    if link.user_id != user.pk:
        raise Conflict("this link is for another account than the one you signed in with", code="another_account")
    return link


@transaction.atomic
def address_link_use(*, token: str, user: User, clock: Clock = SYSTEM_CLOCK) -> MailedLink:
    """The address of the link is confirmed, and the account's. Raises NotFound, Conflict."""
    now = clock.now()
    link = address_link_find(token=token, user=user, clock=clock)
    links.link_use(link=link, now=now)
    if link.purpose == LinkPurpose.CHANGE:
        _change(user, link.address, now)
    else:
        verified(user=user, now=now)
    return link


def verified(*, user: User, now: datetime) -> None:
    """Whoever acts for this account reads its address."""
    if user.email_verified_at is None:
        user.email_verified_at = now
        user.save(update_fields=["email_verified_at"])
        links.links_end(user=user, purposes=(LinkPurpose.VERIFY,), now=now)
        record_everywhere(user, "account.address_confirm")


def mail_needed() -> None:
    """Raises Unsupported where the service writes to nobody."""
    if not outbox.is_on():
        raise Unsupported("this installation sends no e-mail", code="email_off")


def _change(user: User, email: str, now: datetime) -> None:
    before = user.email
    record_everywhere(user, "account.address", to=email, address={"from": before, "to": email})
    user.email, user.email_verified_at = email, now
    try:
        with transaction.atomic():
            user.save(update_fields=["email", "email_verified_at"])
    except IntegrityError as error:  # somebody has signed up with it, before or meanwhile
        raise Conflict(TAKEN, code="address_taken") from error
    links.links_end(user=user, purposes=tuple(LinkPurpose), now=now)  # all others were for the address of before
    letter = letters.address_changed(after=email)
    links.letter_write(letter=letter, address=before, language=user.language, now=now)


def _hours(purpose: LinkPurpose) -> int:
    return int(links.VALID_FOR[purpose].total_seconds()) // HOUR_S
