"""Sessions of a person: looked at, and ended.

`key` and `but` are what a cookie says; rows have a digest of it, and pages name a session by a digest of that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.accounts.identity.agents import browser_text
from controlplane.accounts.identity.engine import stored_key
from controlplane.accounts.identity.trail import record_everywhere
from controlplane.accounts.models import Session
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.accounts.models import User

MOST_SHOWN = 100
PURGED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class ShownSession:
    """One of them, as a page shows it."""

    id: str
    browser: str
    address: str
    begun_at: datetime
    seen_at: datetime
    is_this: bool


def session_list(*, user: User, key: str, clock: Clock = SYSTEM_CLOCK) -> list[ShownSession]:
    """Those that go on, the one of `key` first, then the last seen."""
    rows, here = _living(user, clock).order_by("-seen_at")[:MOST_SHOWN], stored_key(key)
    shown = [
        ShownSession(
            session_id(row.pk), browser_text(row.agent), row.address, row.begun_at, row.seen_at, row.pk == here
        )
        for row in rows
    ]
    return sorted(shown, key=lambda each: not each.is_this)


@transaction.atomic
def session_end(*, user: User, session: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """End one; its next request is nobody's. Raises NotFound."""
    found = next((row for row in _living(user, clock) if session_id(row.pk) == session), None)
    if found is None:
        raise NotFound("this session has ended already")
    browser = browser_text(found.agent)
    found.delete()
    record_everywhere(user, "account.session_end", browser=browser, from_address=found.address)


@transaction.atomic
def sessions_end(*, user: User, but: str | None) -> int:
    """End all but one; None: all. How many there were."""
    ended = Session.objects.filter(user=user).exclude(pk=stored_key(but or "")).delete()[0]
    if ended:
        record_everywhere(user, "account.session_end", sessions=ended)
    return ended


def sessions_purge(*, now: datetime) -> int:
    """Those that have expired go, a bounded number at a time; how many."""
    keys = list(Session.objects.filter(expire_date__lte=now).values_list("pk", flat=True)[:PURGED_AT_ONCE])
    return Session.objects.filter(pk__in=keys, expire_date__lte=now).delete()[0]


def session_id(stored: str) -> str:
    """What names it on a page: 24 hexadecimal digits."""
    return hashlib.sha256(stored.encode()).hexdigest()[:24]


def _living(user: User, clock: Clock) -> QuerySet[Session]:
    return Session.objects.filter(user=user, expire_date__gt=clock.now())
