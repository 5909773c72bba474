"""Challenges of passkeys: each in the session that asked for it, for one purpose, five minutes, and used once.

A challenge is taken out of the session's row under a lock on it: an answer that is sent twice at the same moment finds it once.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from fido2.utils import websafe_decode, websafe_encode

from controlplane.accounts.identity.engine import stored_key
from controlplane.accounts.models import Session
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from django.http import HttpRequest

SIGN_IN, SECOND, PROOF, ADD = "sign_in", "second", "proof", "add"
PURPOSES = (SIGN_IN, SECOND, PROOF, ADD)
WITHIN = timedelta(minutes=5)
_STATE = "passkey_challenge"
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Challenge:
    """What an authenticator is to sign."""

    value: bytes
    handle: str = ""  # whose passkey is to be made, as the authenticator is told


def made() -> bytes:
    """A new one, random."""
    return secrets.token_bytes(_BYTES)


def keep(request: HttpRequest, purpose: str, value: bytes, handle: str = "") -> None:
    """Until it is used; one of before is worth nothing."""
    at = SYSTEM_CLOCK.now().isoformat()
    request.session[_STATE] = {"for": purpose, "value": websafe_encode(value), "at": at, "handle": handle}


def taken(request: HttpRequest, purpose: str) -> Challenge:
    """The one that was asked for in this session. Raises Invalid."""
    key = request.session.session_key
    with transaction.atomic():
        row = Session.objects.select_for_update().filter(pk=stored_key(key)).first() if key else None
        state = row.get_decoded().get(_STATE) if row is not None else None
        if state is not None:
            request.session.pop(_STATE, None)
            request.session.save()
    if state is None or state["for"] != purpose or SYSTEM_CLOCK.now() - datetime.fromisoformat(state["at"]) >= WITHIN:
        raise Invalid("this took too long, or was sent twice: try again", code="passkey_refused")
    return Challenge(websafe_decode(state["value"]), state["handle"])
