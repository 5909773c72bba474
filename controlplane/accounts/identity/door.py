"""What strangers do at the door with somebody's address: a forgotten password, a sign-in that failed, being kept out.

A request writes down what was asked, whoever has the address or nobody. The worker looks whether there is an account, so that
neither the answer nor its time tells. A note is taken by deleting it: of two workers one has it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts.identity import letters, links
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import DoorKind, DoorNote, LinkPurpose, MailedLink, User
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.origin import Origin, current
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime

RESETS_AN_HOUR = 3
"""Links to a new password for one account. They are good for an hour: whoever is refused the fourth has three that work."""
BROWSERS_AN_HOUR = 3
"""The same of links that let a new browser try, for the same reason."""
BROWSERS_A_DAY = 10
"""More are asked for by nobody who wants to sign in, and each is a mail."""
AT_ONCE = 200
LONGEST_ADDRESS = 64


def note_write(*, kind: DoorKind, email: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Written down, and nothing looked up."""
    origin = current()
    DoorNote.objects.create(
        kind=kind,
        email=email.strip().lower()[:254],
        at=clock.now(),
        request_id=origin.request_id,
        address=origin.address[:LONGEST_ADDRESS],
    )


def notes_answer(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """The worker's part; how many there were."""
    found = list(DoorNote.objects.order_by("pk")[:AT_ONCE])
    for note in found:
        with transaction.atomic():
            if DoorNote.objects.filter(pk=note.pk).delete()[0]:
                _answer(note, clock.now())
    return len(found)


def _answer(note: DoorNote, now: datetime) -> None:
    user = User.objects.select_for_update().filter(email=note.email, is_active=True).first()
    if user is None:
        return
    origin = Origin(note.request_id, note.address)
    if note.kind == DoorKind.RESET:
        _send_reset(user, origin, now)
    elif note.kind == DoorKind.BROWSER:
        _send_browser(user, origin, now)
    else:
        record_everywhere(user, "account.sign_in_failed", origin=origin, at=note.at)


def _send_reset(user: User, origin: Origin, now: datetime) -> None:
    lately = MailedLink.objects.filter(user=user, purpose=LinkPurpose.RESET, created_at__gt=now - timedelta(hours=1))
    # Also where there is no password yet, as of whoever has joined by an organisation's provider: they have no other way to one.
    if not outbox.is_on() or lately.count() >= RESETS_AN_HOUR:
        return
    link = links.link_make(user=user, purpose=LinkPurpose.RESET, address=user.email, now=now)
    links.letter_write(letter=letters.password_reset(link=link), address=user.email, language=user.language, now=now)
    record_everywhere(user, "account.password_ask", origin=origin, at=now)


def _send_browser(user: User, origin: Origin, now: datetime) -> None:
    today = MailedLink.objects.filter(user=user, purpose=LinkPurpose.BROWSER, created_at__gt=now - timedelta(days=1))
    lately = today.filter(created_at__gt=now - timedelta(hours=1))
    if not outbox.is_on() or lately.count() >= BROWSERS_AN_HOUR or today.count() >= BROWSERS_A_DAY:
        return
    link = links.link_make(user=user, purpose=LinkPurpose.BROWSER, address=user.email, now=now)
    links.letter_write(letter=letters.browser(link=link), address=user.email, language=user.language, now=now)
    record_everywhere(user, "account.browser_ask", origin=origin, at=now)
