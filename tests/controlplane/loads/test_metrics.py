"""What Prometheus reads of loads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controlplane.loads import claiming
from controlplane.loads.metrics import loads_text
from controlplane.loads.models import RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.services import run_ask

from .rows import load_row

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def samples(now=NOW):
    lines = [line for line in loads_text(now).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def ask(instance, number, at):
    return run_ask(load_row(instance, f"load-{number:012}"), asked_by="alice", asked=Asked(), now=at)


def test_what_waits_what_runs_and_what_has_failed_is_counted_of_everybody(db, instance):
    assert samples()["sluice_loads_waiting_seconds"] == 0
    for number in range(3):
        ask(instance, number, NOW - timedelta(minutes=number))
    first = claiming.claim("one", NOW)
    claiming.end(first, "one", NOW, state=RunState.FAILED, members={"says": "so"})
    claiming.claim("one", NOW)
    found = samples()
    assert (found['sluice_loads{state="waiting"}'], found['sluice_loads{state="running"}']) == (1, 1)
    assert (found['sluice_loads_ended_24h{state="failed"}'], found["sluice_loads_in_vain"]) == (1, 1)
    assert found["sluice_loads_waiting_seconds"] == 0, "the oldest two have begun"
    assert samples(NOW + timedelta(hours=1))["sluice_loads_waiting_seconds"] == 3600
    assert samples(NOW + timedelta(hours=25))['sluice_loads_ended_24h{state="failed"}'] == 0
