"""Celery's edge of history."""

from __future__ import annotations

from controlplane.celery import app
from controlplane.history import services
from controlplane.history.lag import expiry, looks, rebalances, rolling, sampling
from controlplane.history.requests import sampling as requests
from controlplane.history.store import writing


@app.task(name="history.sample")
def history_sample() -> None:
    """Take a sample of every instance, unless these ten seconds have one. Beat calls it every 5 s."""
    services.sample()


@app.task(name="history.requests_sample")
def requests_sample() -> None:
    """Keep the requests of every instance, as far as they have settled. Beat calls it every 5 s."""
    requests.sample()


@app.task(name="history.roll_up")
def history_roll_up() -> None:
    """Make minutes and hours. Beat calls it every minute."""
    services.roll_up()


@app.task(name="history.purge")
def history_purge() -> None:
    """Remove what has expired. Beat calls it every minute."""
    services.purge()


@app.task(name="history.store_write")
def store_write() -> None:
    """Write to the metrics store what is due, where there is one. Beat calls it every 20 s."""
    writing.write()


@app.task(name="history.lag_sample")
def lag_sample() -> None:
    """Look at every group: for the minute, unless it was looked at, or else for these ten seconds. Beat calls it every 10 s."""
    sampling.sample()
    looks.look()


@app.task(name="history.lag_keep_up")
def lag_keep_up() -> None:
    """Make hours of the groups' minutes, and remove what has expired. Beat calls it every five minutes."""
    rolling.roll_up()
    rolling.purge()
    expiry.expiry_purge()
    rebalances.rebalances_purge()
