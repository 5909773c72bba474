"""Celery's edge of mails."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.mail import outbox


@app.task(name="mail.send")
def mail_send() -> None:
    """Send the mails that are due. Beat calls it every 2 s: somebody waits in front of a page."""
    outbox.send_due()


@app.task(name="mail.purge")
def mail_purge() -> None:
    """Forget what is old. Beat calls it every ten minutes."""
    outbox.purge()
