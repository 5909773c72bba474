"""The second factor of an account: a secret that an app has, and ten codes on paper for the day when the phone is lost.

========================  ====================================================================================
the secret                sealed in its row; on once a code of it was typed
a code of the app         taken once: the row keeps the last step, and an update of it is won by one of two at once
a recovery code           random, stored as a digest, taken once
========================  ====================================================================================

Passkeys (passkeys.py) are second factors, too. `User.second_factor_at` says whether there is one of
either kind, so that no request asks for another row; recovery codes are there as long as there is one.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

import pyotp
from django.db import transaction

from controlplane.accounts import standing
from controlplane.accounts.identity import letters, links, totp
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import Passkey, RecoveryCode, SecondFactor, User
from controlplane.core import ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, NotFound, Unavailable
from controlplane.core.sealed import opened, sealed
from controlplane.mail import outbox

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

RECOVERY_CODES, RECOVERY_LETTERS, GROUP = 10, 16, 4
_WRONG = "this code is not right; each is taken once"


@transaction.atomic
def enrol_begin(*, user: User) -> None:
    """A new secret, which counts for nothing yet. Raises Conflict, Forbidden, Unavailable.

    An address that is to be confirmed is confirmed first. Else a stranger who signs up with it keeps its owner out for good, who
    can replace the password by mail, and the second factor by nothing.
    """
    standing.change_check(user)
    _locked(user)
    if app_is_on(user):
        raise Conflict("this account has a second factor already", code="second_factor_on")
    secret = sealed(SecondFactor, "secret", pyotp.random_base32().encode(), user_id=user.pk)
    SecondFactor.objects.update_or_create(user=user, defaults={"secret": secret, "last_step": 0})


def secret_of(user: User) -> str | None:
    """In base32; None: there is none. Raises Unavailable where it cannot be opened."""
    row = SecondFactor.objects.filter(user=user).first()
    return _opened(row) if row else None


@transaction.atomic
def enrol_confirm(*, user: User, code: str, clock: Clock = SYSTEM_CLOCK) -> list[str]:
    """It is on from now; the recovery codes, which can be seen this once. Raises Invalid beside `code`, NotFound, Forbidden.

    Sessions that began with the password alone are the caller's to end.
    """
    standing.change_check(user)
    user.second_factor_at = _locked(user).second_factor_at
    if app_is_on(user):
        raise Conflict("this account has a second factor already", code="second_factor_on")
    row = SecondFactor.objects.filter(user=user).first()
    if row is None:
        raise NotFound("nothing is being set up: begin anew")
    if not _code_taken(row, _plain(code), clock):
        raise Invalid.field("code", "this code is not right: look at the clock of your phone, and type the newest one")
    user.second_factor_at = user.second_factor_at or clock.now()
    user.save(update_fields=["second_factor_at"])
    record_everywhere(user, "account.second_factor_on")
    _tell(user, clock.now(), is_on=True)
    return _recovery_made(user)


def code_check(*, user: User, code: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """A code of the app or from paper, which is used up by this. Raises Invalid beside `code`, Unavailable.

    Where the secret cannot be opened, codes from paper are still good.
    """
    row = SecondFactor.objects.filter(user=user, last_step__gt=0).first()
    plain = _plain(code)
    is_right = row is not None and _code_taken(row, plain, clock)
    if user.second_factor_at is None or not (is_right or _recovery_taken(user, plain, clock)):
        raise Invalid.field("code", _WRONG)


@transaction.atomic
def recovery_renew(*, user: User) -> list[str]:
    """Ten others; those of before are worth nothing. Raises Conflict where there is no second factor."""
    if _locked(user).second_factor_at is None:
        raise Conflict("this account has no second factor", code="second_factor_off")
    record_everywhere(user, "account.recovery_codes")
    return _recovery_made(user)


def recovery_left(*, user: User) -> int:
    """How many can still be used."""
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


@transaction.atomic
def second_factor_remove(*, user: User, actor: str = "", clock: Clock = SYSTEM_CLOCK, **detail: Any) -> None:
    """No code of the app is asked for any more; without passkeys the password is enough.

    `actor`: an operator, where it was not the person: then passkeys go as well. Raises Conflict.
    """
    is_on = app_is_on(user)
    if _locked(user).second_factor_at is None or not (is_on or actor):
        raise Conflict("this account has no second factor", code="second_factor_off")
    SecondFactor.objects.filter(user=user).delete()
    if actor:  # the person can reach none of their factors, or would not have asked
        Passkey.objects.filter(user=user).delete()
    factor_left(user=user)
    record_everywhere(user, "account.second_factor_off", actor=actor, **detail)
    _tell(user, clock.now(), is_on=False)


def app_is_on(user: User) -> bool:
    """Whether an app makes codes that count: one was taken when it was set up, and that wrote the step."""
    return SecondFactor.objects.filter(user=user, last_step__gt=0).exists()


def factor_added(*, user: User, now: datetime) -> list[str]:
    """A passkey is there; the recovery codes, where it is the account's first factor. In the caller's transaction."""
    if user.second_factor_at is not None:
        return []
    user.second_factor_at = now
    user.save(update_fields=["second_factor_at"])
    record_everywhere(user, "account.second_factor_on", by="passkey")
    return _recovery_made(user)


def factor_left(*, user: User) -> bool:
    """The password is enough where neither the app nor a passkey is left: True beside that. In the caller's transaction."""
    if app_is_on(user) or Passkey.objects.filter(user=user).exists():
        return False
    RecoveryCode.objects.filter(user=user).delete()
    user.second_factor_at = None
    user.save(update_fields=["second_factor_at"])
    return True


def _locked(user: User) -> User:
    return User.objects.select_for_update().get(pk=user.pk)


def _plain(code: str) -> str:
    """As it is compared: people leave spaces and hyphens, and codes from paper are typed in capitals."""
    return "".join(letter for letter in code.lower() if letter.isascii() and letter.isalnum())


def _code_taken(row: SecondFactor, code: str, clock: Clock) -> bool:
    if len(code) != totp.DIGITS:
        return False
    step = totp.step_of(_opened(row), code, now_s=clock.now().timestamp(), after=row.last_step)
    return step is not None and bool(SecondFactor.objects.filter(pk=row.pk, last_step__lt=step).update(last_step=step))


def _recovery_taken(user: User, code: str, clock: Clock) -> bool:
    if len(code) != RECOVERY_LETTERS:
        return False
    rows = RecoveryCode.objects.filter(user=user, digest=_digest(code), used_at=None)
    if not rows.update(used_at=clock.now()):
        return False
    record_everywhere(user, "account.recovery_code", left=recovery_left(user=user))
    return True


def _recovery_made(user: User) -> list[str]:
    RecoveryCode.objects.filter(user=user).delete()
    plain = [ids.letters(random.SystemRandom(), RECOVERY_LETTERS) for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=_digest(each)) for each in plain)
    return ["-".join(each[start : start + GROUP] for start in range(0, len(each), GROUP)) for each in plain]


def _digest(code: str) -> str:
    """No salt and no slow hash: 82 random bits leave nothing to guess."""
    return hashlib.sha256(code.encode()).hexdigest()


def _opened(row: SecondFactor) -> str:
    lost = Unavailable("the second factor of this account cannot be read: ask the operators")
    return opened(row, "secret", lost).decode()


def _tell(user: User, now: datetime, *, is_on: bool) -> None:
    if outbox.is_on():
        links.letter_write(
            letter=letters.second_factor(is_on=is_on), address=user.email, language=user.language, now=now
        )
