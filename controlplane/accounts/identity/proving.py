"""Whether it is the person: by the password of the account, or by a code of its second factor. By a passkey: passkeys.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.accounts.identity import letters, links, second_factor
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.mail import outbox

if TYPE_CHECKING:
    from controlplane.accounts.models import User
    from controlplane.tenants.models import Organisation


def proof_check(
    *,
    user: User,
    text: str,
    by_factor: bool = False,
    only_in: Organisation | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """Whether it was a code, of the app or one of those for recovery. Raises Invalid beside `proof`.

    `by_factor`: the password is none. `only_in`: as of `proof_failed`.
    """
    if not by_factor and user.check_password(text):
        return False
    if _is_code(user, text, clock):
        return True
    proof_failed(user, only_in=only_in)
    if by_factor:
        raise Invalid.field("proof", "this is not a code that is good now")
    has_codes = user.second_factor_at is not None
    raise Invalid.field("proof", f"this is not your password{', nor a code that is good now' if has_codes else ''}")


def proof_failed(user: User, *, only_in: Organisation | None = None) -> None:
    """Somebody in their session could not show that it is them.

    `only_in`: the organisation whose provider has begun the session. Others learn nothing of what is done there in their name.
    """
    if only_in is None:
        record_everywhere(user, "account.proof_failed")
    else:
        audit.record(organisation=only_in, actor=user.email, action="account.proof_failed", target=user.email)


def proofs_used_up(*, user: User, clock: Clock = SYSTEM_CLOCK) -> None:
    """The person is told by mail that somebody guesses in sessions of providers: those who run one read its audit log alone."""
    if outbox.is_on():
        links.letter_write(letter=letters.proofs_used_up(), address=user.email, language=user.language, now=clock.now())


def _is_code(user: User, text: str, clock: Clock) -> bool:
    if user.second_factor_at is None:
        return False
    try:
        second_factor.code_check(user=user, code=text, clock=clock)
    except Invalid:
        return False
    return True
