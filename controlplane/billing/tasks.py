"""Celery's edge of billing."""

from __future__ import annotations

from controlplane.billing import closing, costs
from controlplane.celery import app


@app.task(name="billing.invoices_close")
def invoices_close() -> None:
    """Close months that are due. Beat calls it every ten minutes; it finds nothing to do on all but one of them."""
    closing.invoices_close()


@app.task(name="billing.costs_refresh")
def costs_refresh() -> None:
    """Compute costs and forecasts that are old. Beat calls it every five minutes."""
    costs.costs_refresh()
