"""Celery's edge of token issuers."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.token_issuers import services


@app.task(name="token_issuers.refresh")
def refresh() -> None:
    """Fetch anew the keys of which it is time. Beat calls it every 30 s."""
    services.refresh_due()
