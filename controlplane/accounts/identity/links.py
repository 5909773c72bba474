"""Links by e-mail: random, stored as a digest, for one account, one address and one purpose, used once.

=========  ========= ===================================================================
purpose    valid for what it proves
=========  ========= ===================================================================
verify     24 h      that whoever uses it reads the address of the account
change     24 h      the same of the address that the account is to have
reset      1 h       the same, and it is enough for another password
browser    1 h       the same: the browser has tries of its own at signing in, and no more than that
=========  ========= ===================================================================

An earlier link stays good beside a later one: whoever asks often makes no link of somebody else worthless.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.urls import reverse

from controlplane.accounts.models import LinkPurpose, MailedLink
from controlplane.core.errors import LimitReached, NotFound, TooManyAttempts
from controlplane.core.wording import said_in
from controlplane.mail.outbox import mail_write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controlplane.accounts.models import User
    from controlplane.mail.letter import Letter

VALID_FOR: Mapping[str, timedelta] = {
    LinkPurpose.VERIFY: timedelta(hours=24),
    LinkPurpose.CHANGE: timedelta(hours=24),
    LinkPurpose.RESET: timedelta(hours=1),
    LinkPurpose.BROWSER: timedelta(hours=1),
}
PAGES: Mapping[str, str] = {
    LinkPurpose.VERIFY: "console:address_confirm",
    LinkPurpose.CHANGE: "console:address_confirm",
    LinkPurpose.RESET: "console:password_reset",
    LinkPurpose.BROWSER: "console:sign_in_browser",
}
MOST_A_DAY = 5
"""Of one purpose for one account."""
LEAST_BETWEEN = timedelta(minutes=1)
_TOKEN_BYTES = 32


def link_make(*, user: User, purpose: LinkPurpose, address: str, now: datetime) -> str:
    """The whole link, which is in the mail and nowhere else."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    row = MailedLink(
        digest=_digest(token),
        user=user,
        purpose=purpose,
        address=address,
        created_at=now,
        expires_at=now + VALID_FOR[purpose],
    )
    row.save(force_insert=True)
    return address_of(PAGES[purpose], token)


def address_of(page: str, *args: str) -> str:
    """The page of the console, as a link in a mail has it."""
    return str(settings.ENVIRONMENT.console_url) + reverse(page, args=args)


def link_find(*, token: str, purposes: tuple[LinkPurpose, ...], now: datetime) -> MailedLink:
    """The link, looked at. Raises NotFound, with one sentence for whatever is wrong with it."""
    rows = MailedLink.objects.filter(purpose__in=purposes, used_at=None, user__is_active=True, expires_at__gt=now)
    link = rows.filter(digest=_digest(token)).select_related("user").first()
    if link is None:
        raise NotFound("this link is not valid any more: ask for a new one")
    return link


def link_use(*, link: MailedLink, now: datetime) -> None:
    """Use it up: of two at once, one. In the caller's transaction. Raises NotFound."""
    if not MailedLink.objects.filter(pk=link.pk, used_at=None).update(used_at=now):
        raise NotFound("this link is not valid any more: ask for a new one")


def links_end(*, user: User, purposes: tuple[LinkPurpose, ...], now: datetime) -> None:
    """What they were for is done, or is not to be any more."""
    MailedLink.objects.filter(user=user, purpose__in=purposes, used_at=None).update(used_at=now)


def sending_check(*, user: User, purpose: LinkPurpose, now: datetime) -> None:
    """Mails of a kind are few. Raises TooManyAttempts, LimitReached."""
    rows = MailedLink.objects.filter(user=user, purpose=purpose)
    last = rows.order_by("-created_at").first()
    if last is not None and now - last.created_at < LEAST_BETWEEN:
        raise TooManyAttempts(math.ceil((last.created_at + LEAST_BETWEEN - now).total_seconds()))
    if rows.filter(created_at__gt=now - timedelta(days=1)).count() >= MOST_A_DAY:
        raise LimitReached(f"{MOST_A_DAY} mails were sent within a day: try again tomorrow", code="too_many_mails")


def letter_write(*, letter: Letter, address: str, language: str, now: datetime) -> None:
    """Into the outbox in the receiver's language, in the caller's transaction."""
    mail_write(address=address, subject=said_in(language, letter.subject), body=said_in(language, letter.body), at=now)


def links_purge(*, now: datetime) -> None:
    """Those that led nowhere for a month."""
    MailedLink.objects.filter(expires_at__lt=now - timedelta(days=30)).delete()


def _digest(token: str) -> str:
    """No salt and no slow hash: the token is random, so that there is nothing to guess."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
