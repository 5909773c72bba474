"""Passwords are changed by whoever knows them, and replaced by whoever reads the address of the account.

A link signs nobody in: a second factor is still asked for after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts import services
from controlplane.accounts.identity import addresses, door, letters, links, sessions
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import DoorKind, LinkPurpose, MailedLink, User
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime


@transaction.atomic
def password_change(*, user: User, current: str, new: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Another password; every session but the caller's ends, API keys go on. Raises Invalid beside `current` or `password`."""
    if not user.check_password(current):
        raise Invalid.field("current", "this is not your password")
    if current == new:
        raise Invalid.field("password", "this is the password that you have")
    services.password_checked(new, user)
    user.set_password(new)
    user.save(update_fields=["password"])
    record_everywhere(user, "account.password")
    password_told(user=user, now=clock.now())


def reset_ask(*, email: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """A link goes to the address if it is an account's; the caller does not learn it. Raises Unsupported."""
    addresses.mail_needed()
    door.note_write(kind=DoorKind.RESET, email=email, clock=clock)


def reset_find(*, token: str, clock: Clock = SYSTEM_CLOCK) -> MailedLink:
    """The link, looked at. Raises NotFound."""
    return links.link_find(token=token, purposes=(LinkPurpose.RESET,), now=clock.now())


@transaction.atomic
def reset_use(*, token: str, password: str, revokes_keys: bool, clock: Clock = SYSTEM_CLOCK) -> User:
    """Another password. All sessions end; keys only where that was chosen. Raises NotFound, Invalid beside `password`."""
    now = clock.now()
    link = reset_find(token=token, clock=clock)
    user = link.user
    services.password_checked(password, user)
    links.link_use(link=link, now=now)
    user.set_password(password)
    user.save(update_fields=["password"])
    addresses.verified(user=user, now=now)
    # Others that wait may be somebody else's work: a change of the address above all.
    links.links_end(user=user, purposes=tuple(LinkPurpose), now=now)
    sessions.sessions_end(user=user, but=None)
    record_everywhere(user, "account.password_reset")
    if revokes_keys:
        services.keys_revoke(user=user, clock=clock)
    password_told(user=user, now=now)
    return user


def password_told(*, user: User, now: datetime) -> None:
    """To the person, by mail, where the service sends any."""
    if outbox.is_on():
        links.letter_write(letter=letters.password_changed(), address=user.email, language=user.language, now=now)
