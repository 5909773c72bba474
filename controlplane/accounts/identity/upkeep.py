"""What is over goes: links that led nowhere for a month, sign-ups of which nothing came, sessions that have expired."""

from __future__ import annotations

from controlplane.accounts.identity import links, sessions, signing_up
from controlplane.core.clock import SYSTEM_CLOCK, Clock


def keep_up(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """All of it."""
    links.links_purge(now=clock.now())
    signing_up.purge(now=clock.now())
    sessions.sessions_purge(now=clock.now())
