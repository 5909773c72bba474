"""Celery's edge of certificates."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.certificates import services


@app.task(name="certificates.renew")
def renew() -> None:
    """Issue anew what ends within a month. Beat calls it every hour."""
    services.renew_due()
