"""Signing up where the service sends mail: an address has an account once whoever reads it has opened a link.

What a stranger is told, and when, is the same whoever has the address. The request writes down what was typed and looks nothing
up; the worker answers, and by mail alone:

==========================  ==========================================================================================
nobody has the address      a link, good for a day, behind which a password is chosen
somebody has it             how to sign in, or to replace the password. It stands in the audit trail of their organisations
three mails within an hour  nothing: the links in those three are good
==========================  ==========================================================================================

Before the link is used there is no account, no organisation and no password. With an account a stranger would learn by signing in
whether there was one before; with an organisation by its name, which would be taken; and the owner of the address would confirm
an account whose password a stranger knows.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts.identity import letters, links
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import SignUp, User
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound
from controlplane.core.origin import Origin, current
from controlplane.core.text import name_checked
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.mail.letter import Letter

VALID_FOR = timedelta(hours=24)
KEPT = timedelta(days=2)
"""Somebody's address that may have been typed by a stranger is forgotten then, and what was to be done with it."""
MAILS_AN_HOUR = 3
AT_ONCE = 200
LONGEST_ADDRESS = 64
_TOKEN_BYTES = 32


def ask(
    *, email: str, name: str, organisation_name: str | None, language: str = "en", clock: Clock = SYSTEM_CLOCK
) -> None:
    """Written down, and nothing looked up. Raises Invalid.

    No `organisation_name`: of whoever is invited into one. `language`: of the page.
    """
    origin = current()
    SignUp.objects.create(
        email=email.strip().lower(),
        name=name_checked(name, may_be_empty=True),
        organisation_name=""
        if organisation_name is None
        else name_checked(organisation_name, field="organisation_name"),
        at=clock.now(),
        request_id=origin.request_id,
        address=origin.address[:LONGEST_ADDRESS],
        language=language,
    )


def answer(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """The worker's part; how many there were. One is taken by an update: of two workers one has it."""
    found = list(SignUp.objects.filter(answered_at=None).order_by("pk")[:AT_ONCE])
    for asked in found:
        now = clock.now()
        with transaction.atomic():
            if SignUp.objects.filter(pk=asked.pk, answered_at=None).update(answered_at=now):
                _answer(asked, now)
    return len(found)


def find(*, token: str, clock: Clock = SYSTEM_CLOCK) -> SignUp:
    """What a link is about. Raises NotFound, with one sentence for whatever is wrong with it."""
    rows = SignUp.objects.filter(digest=_digest(token), used_at=None, mailed_at__gt=clock.now() - VALID_FOR)
    asked = rows.first()
    if asked is None:
        raise _not_valid()
    return asked


def use(*, token: str, clock: Clock = SYSTEM_CLOCK) -> SignUp:
    """Use the link up: of two at once, one. The others of this address end with it. In the caller's transaction.

    Raises NotFound.
    """
    now, asked = clock.now(), find(token=token, clock=clock)
    if not SignUp.objects.filter(pk=asked.pk, used_at=None).update(used_at=now):
        raise _not_valid()
    SignUp.objects.filter(email=asked.email, used_at=None).exclude(digest="").update(used_at=now)
    return asked


def purge(*, now: datetime) -> None:
    """Those of which nothing will come."""
    SignUp.objects.filter(at__lt=now - KEPT).delete()


def _answer(asked: SignUp, now: datetime) -> None:
    lately = SignUp.objects.filter(email=asked.email, mailed_at__gt=now - timedelta(hours=1))
    if not outbox.is_on() or lately.count() >= MAILS_AN_HOUR:
        return
    user = User.objects.filter(email=asked.email).first()
    letter = _letter(asked, user)
    if letter is not None:
        SignUp.objects.filter(pk=asked.pk).update(mailed_at=now)
        # Somebody else may have typed the address, on a page of theirs.
        language = asked.language if user is None else user.language
        links.letter_write(letter=letter, address=asked.email, language=language, now=now)


def _letter(asked: SignUp, user: User | None) -> Letter | None:
    """None: to an account that is closed there is nothing to say."""
    if user is None:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        SignUp.objects.filter(pk=asked.pk).update(digest=_digest(token))
        link = links.address_of("console:sign_up_confirm", token)
        return letters.sign_up(link=link, hours=int(VALID_FOR.total_seconds()) // 3600)
    if not user.is_active:
        return None
    record_everywhere(user, "account.sign_up_asked", origin=Origin(asked.request_id, asked.address), at=asked.at)
    return letters.signed_up_already(
        sign_in=links.address_of("console:sign_in"), forgotten=links.address_of("console:password_forgotten")
    )


def _digest(token: str) -> str:
    """No salt and no slow hash: the token is random, so that there is nothing to guess."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _not_valid() -> NotFound:
    return NotFound("this link is not valid any more: sign in if you have an account by it, or else sign up again")
