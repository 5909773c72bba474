"""Passkeys of a person: added, used, removed.

===================  ================================================================================================
signs in             alone: it verifies its person, so that it is both factors. Nobody is named before: the browser
                     shows whichever passkeys it has, and strangers learn nothing
second factor        after the password, in place of a code
proof                before what is dangerous
===================  ================================================================================================

Who has a passkey has a second factor: from then on the password alone signs them in no more, and recovery codes are there for
the day when it is lost. The counter of an authenticator goes up with each use; one that does not is of a copy, and is refused
and noted. Authenticators that do not count say 0, always.
"""

from __future__ import annotations

import hmac
import logging
import random
import secrets
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction
from fido2.utils import websafe_encode

from controlplane.accounts import standing
from controlplane.accounts.identity import letters, links, second_factor, webauthn
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import Passkey, User
from controlplane.core import ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, NotFound, Unsupported
from controlplane.core.text import name_checked
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime

    from controlplane.accounts.identity.webauthn import Answer, Site

LOG = logging.getLogger(__name__)
MOST = 20
"""Of one person."""
_HANDLE_BYTES = 32


def is_on() -> bool:
    """Whether this installation has an address that browsers make passkeys for."""
    return webauthn.site_of(settings.ENVIRONMENT.console_url) is not None


def passkey_list(*, user: User) -> list[Passkey]:
    """Those of a person, the oldest first."""
    return list(Passkey.objects.filter(user=user).order_by("created_at", "pk"))


def adding_options(*, user: User, challenge: bytes) -> dict[str, Any]:
    """What the browser is to make. Raises Unsupported, Forbidden, Conflict where there are too many."""
    site = _site()
    standing.change_check(user)
    known = passkey_list(user=user)
    _number_check(len(known))
    handle = known[0].handle if known else websafe_encode(secrets.token_bytes(_HANDLE_BYTES))
    return webauthn.creation_options(
        site, challenge=challenge, handle=handle, email=user.email, known=[each.credential_id for each in known]
    )


def asking_options(*, user: User | None, challenge: bytes) -> dict[str, Any]:
    """What the browser is to ask for: one of the person's; None: whichever. Raises Unsupported."""
    known = passkey_list(user=user) if user is not None else []
    return webauthn.request_options(_site(), challenge=challenge, known=[each.credential_id for each in known])


@transaction.atomic
def passkey_add(
    *, user: User, name: str, challenge: bytes, handle: str, text: str, clock: Clock = SYSTEM_CLOCK
) -> tuple[Passkey, list[str]]:
    """One more; recovery codes beside it, where it is the account's first second factor.

    `handle` is what the options of this challenge said. Raises Unsupported, Forbidden, Conflict, Invalid.
    Sessions that began with the password alone are the caller's to end, where there are codes.
    """
    site, now = _site(), clock.now()
    standing.change_check(user)
    name = name_checked(name)
    user.second_factor_at = User.objects.select_for_update().get(pk=user.pk).second_factor_at
    _number_check(Passkey.objects.filter(user=user).count())
    try:
        found = webauthn.made(site, challenge=challenge, text=text)
    except webauthn.PasskeyProblem as error:
        LOG.info("a passkey was not added: %s", error)
        raise Invalid(
            "the browser has made no passkey that can be used here: try again", code="passkey_refused"
        ) from error
    row = Passkey(
        id=ids.passkey_id(random.SystemRandom()),
        user=user,
        name=name,
        credential_id=found.credential_id,
        credential=found.credential,
        handle=handle,
        sign_count=found.sign_count,
        created_at=now,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("this passkey is in use already", code="passkey_exists") from error
    record_everywhere(user, "account.passkey_add", passkey=row.id)
    codes = second_factor.factor_added(user=user, now=now)
    _tell(user, now, is_added=True)
    return row, codes


@transaction.atomic
def passkey_remove(*, user: User, passkey_id: str, may_be_last: bool, clock: Clock = SYSTEM_CLOCK) -> None:
    """One fewer. `may_be_last`: the person knows that no second factor is left then. Raises NotFound, Conflict."""
    user.second_factor_at = User.objects.select_for_update().get(pk=user.pk).second_factor_at
    row = Passkey.objects.filter(user=user, pk=passkey_id).first()
    if row is None:
        raise NotFound("no such passkey")
    if not may_be_last and is_only_factor(user=user):
        raise Conflict("this is your only second factor: confirm that you want none", code="only_factor")
    row.delete()
    record_everywhere(user, "account.passkey_remove", passkey=passkey_id)
    if second_factor.factor_left(user=user):
        record_everywhere(user, "account.second_factor_off", by="passkey")
    _tell(user, clock.now(), is_added=False)


def is_only_factor(*, user: User) -> bool:
    """Whether one passkey is all that the account has beside its password."""
    return Passkey.objects.filter(user=user).count() == 1 and not second_factor.app_is_on(user)


def presented(text: str) -> Answer:
    """Which passkey somebody shows, not verified. Raises Invalid."""
    try:
        return webauthn.answer_of(text)
    except webauthn.PasskeyProblem as error:
        raise _wrong() from error


def passkey_check(*, answer: Answer, challenge: bytes, user: User | None, clock: Clock = SYSTEM_CLOCK) -> User:
    """Whose passkey it is; `user`: it has to be theirs. Raises Invalid, with one sentence whatever is wrong; Unsupported.

    Without `user` the authenticator has to name the person as well, as those do that can sign in alone.
    """
    site, now = _site(), clock.now()
    rows = Passkey.objects.filter(credential_id=answer.credential_id, user__is_active=True).select_related("user")
    row = (rows if user is None else rows.filter(user=user)).first()
    if row is None:
        raise _wrong()
    if (answer.handle or user is None) and not hmac.compare_digest(answer.handle, row.handle):
        raise _wrong()
    try:
        count = webauthn.verified(site, challenge=challenge, credential=row.credential, answer=answer)
    except webauthn.PasskeyProblem as error:
        LOG.info("a passkey was refused: %s", error)
        raise _wrong() from error
    before = Passkey.objects.filter(pk=row.pk)
    # Compared and written at once: of two with the same counter one is right.
    before = before.filter(sign_count__lt=count) if count else before.filter(sign_count=0)
    if not before.update(sign_count=count, last_used_at=now):
        if Passkey.objects.filter(pk=row.pk).update(refused_at=now):
            record_everywhere(row.user, "account.passkey_copied", passkey=row.pk, count=count, known=row.sign_count)
        raise _wrong()
    return row.user


def _site() -> Site:
    site = webauthn.site_of(settings.ENVIRONMENT.console_url)
    if site is None:
        raise Unsupported(
            "this installation has no address that passkeys can be bound to: its operators have to set one",
            code="passkeys_off",
        )
    return site


def _number_check(number: int) -> None:
    if number >= MOST:
        raise Conflict(f"you have {MOST} passkeys already: remove one first", code="too_many_passkeys")


def _wrong() -> Invalid:
    return Invalid("this passkey is not right: try again, or sign in another way", code="passkey_refused")


def _tell(user: User, now: datetime, *, is_added: bool) -> None:
    if outbox.is_on():
        links.letter_write(
            letter=letters.passkey(is_added=is_added), address=user.email, language=user.language, now=now
        )
