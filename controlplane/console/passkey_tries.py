"""A passkey that is presented in front of the console is checked; tries are counted like those at passwords.

By the account where it is known, else by the passkey; and by the address. Strangers' challenges are counted by address, too.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from controlplane.accounts import attempts, services
from controlplane.accounts.identity import passkeys
from controlplane.accounts.identity.proving import proof_failed
from controlplane.console import challenges
from controlplane.console.page import SSO
from controlplane.core.errors import Invalid
from controlplane.core.origin import address_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from controlplane.accounts.models import User
    from controlplane.tenants.models import Organisation

ASKED, SIGN_IN = "passkey-asked", "passkey"
_WHAT = {challenges.SIGN_IN: SIGN_IN, challenges.SECOND: attempts.CODE, challenges.PROOF: attempts.PROOF}


def challenge_count(request: HttpRequest) -> None:
    """A stranger wants a challenge. Raises TooManyAttempts."""
    attempts.attempt_begin(email=secrets.token_hex(8), address=address_of(request), what=ASKED)


def proof_counted(request: HttpRequest) -> dict[str, str]:
    """What a try at a proof is counted by: the person, and apart in a session that an organisation's provider has begun."""
    mark = request.session.get(SSO)
    counted = {"email": request.user.email, "address": address_of(request), "what": attempts.PROOF}
    if mark is not None:
        organisation = mark["organisation"]
        counted |= {"email": f"{organisation} {counted['email']}", "what": attempts.PROOF_BY_SSO}
    return counted


def proof_told_in(request: HttpRequest) -> Organisation | None:
    """The one organisation in whose audit trail a wrong proof stands; None: in those of all that the person belongs to."""
    caller = getattr(request, "caller", None)
    return caller.organisation if caller is not None and SSO in request.session else None


def checked(request: HttpRequest, purpose: str, text: str, user: User | None = None) -> User:
    """Whose passkey it is; `user`: it has to be theirs. Raises Invalid, TooManyAttempts, Unsupported."""
    answer = passkeys.presented(text)
    challenge = challenges.taken(request, purpose)
    counted = {
        "email": user.email if user is not None else answer.credential_id,
        "address": address_of(request),
        "what": _WHAT[purpose],
    }
    if purpose == challenges.PROOF:
        counted = proof_counted(request)
    attempts.attempt_begin(**counted)
    try:
        found = passkeys.passkey_check(answer=answer, challenge=challenge.value, user=user)
    except Invalid:
        if user is not None and purpose == challenges.SECOND:
            services.sign_in_failed(user=user, step="passkey")
        elif user is not None:
            proof_failed(user, only_in=proof_told_in(request))
        raise
    attempts.attempt_succeeded(**counted)
    if user is None:
        attempts.attempt_succeeded(email="", address=address_of(request), what=ASKED)
    return found
