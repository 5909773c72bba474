"""A browser in which somebody has signed in before: a stranger who guesses at the account does not keep it out.

A signed cookie says whose it is, with a random name of its own, by which its tries are counted instead of by the account,
whose count anybody can use up (`accounts/attempts.py`). It is worth nothing else: the password is asked for, and a code.
Another password makes it worthless, so that whoever had the one before has no more tries than strangers; who chooses it by a
link has a new cookie. Without the cookie, or with one that is not right, all is as for a stranger.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING

from django.core import signing
from django.utils.crypto import salted_hmac

from controlplane.accounts.models import User

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

COOKIE = "known_browser"
YEAR_S = 365 * 24 * 3600
_SALT = "controlplane.console.known_browser"
_NAME_BYTES = 16


def remember(request: HttpRequest, answer: HttpResponse, user: User) -> HttpResponse:
    """This person has signed in here, or reads the mail of the account."""
    value = signing.dumps([user.pk, secrets.token_urlsafe(_NAME_BYTES), _seal(user)], salt=_SALT)
    answer.set_cookie(COOKIE, value, max_age=YEAR_S, samesite="Lax", httponly=True, secure=request.is_secure())
    return answer


def name_of(request: HttpRequest, email: str) -> str:
    """What the browser is called among those of this account; empty: it is not known there."""
    try:
        key, name, seal = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=YEAR_S)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    # Nobody can make up a cookie, so that what is looked up here tells nobody which accounts there are.
    user = User.objects.filter(pk=key, email=email.strip().lower()).first()
    return str(name) if user is not None and hmac.compare_digest(str(seal), _seal(user)) else ""


def _seal(user: User) -> str:
    """Of the password of now."""
    return salted_hmac(_SALT, user.get_session_auth_hash(), algorithm="sha256").hexdigest()[:32]
