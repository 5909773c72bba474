"""Celery's edge of accounts."""

from __future__ import annotations

from controlplane.accounts import key_expiry
from controlplane.accounts.identity import door, signing_up, upkeep
from controlplane.celery import app
from controlplane.core.clock import SYSTEM_CLOCK


@app.task(name="accounts.door")
def accounts_door() -> None:
    """Forgotten passwords, sign-ins that failed, sign-ups. Beat calls it every 2 s: somebody waits for a mail."""
    door.notes_answer()
    signing_up.answer()


@app.task(name="accounts.keep_up")
def accounts_keep_up() -> None:
    """Forget what is over, and tell whose keys expire. Beat calls it every ten minutes."""
    upkeep.keep_up()
    key_expiry.expiries_tell(now=SYSTEM_CLOCK.now())
