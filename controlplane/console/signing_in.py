"""Between the password and the code: who is signing in stands in a session that is nobody's yet, for ten minutes."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.accounts.models import User
from controlplane.core.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from django.http import HttpRequest

WITHIN = timedelta(minutes=10)
_STATE = "signing_in"


def password_was_right(request: HttpRequest, user: User, following: str) -> None:
    """The code is asked for next. The key of the session is a new one: nobody knows it from before."""
    request.session.flush()
    request.session[_STATE] = {
        "user": user.pk,
        "at": SYSTEM_CLOCK.now().isoformat(),
        "next": following,
        "hash": user.get_session_auth_hash(),
    }


def waiting(request: HttpRequest) -> tuple[User, str] | None:
    """Who, and where they wanted to go; None: nobody, or too long ago, or the password has changed meanwhile."""
    state = request.session.get(_STATE)
    if state is None or SYSTEM_CLOCK.now() - datetime.fromisoformat(state["at"]) >= WITHIN:
        return None
    user = User.objects.filter(pk=state["user"], is_active=True).first()
    if user is None or not hmac.compare_digest(state["hash"], user.get_session_auth_hash()):
        return None
    return user, state["next"]


def over(request: HttpRequest) -> None:
    """It is signed in, or begins anew."""
    request.session.pop(_STATE, None)
