"""What is over goes: links that led nowhere for a month."""

from __future__ import annotations

from controlplane.accounts.identity import links
from controlplane.core.clock import SYSTEM_CLOCK, Clock


def keep_up(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """All of it."""
    links.links_purge(now=clock.now())
