"""The search for silent connections walks through all of them, a few at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dataplane.admission import Admission
from dataplane.config import Settings
from dataplane.records.steps import Steps
from dataplane.tenancy.instance import Instance
from tests.dataplane.controller.test_topic_requests import SPEC
from tests.simulation.virtual_time import VirtualTime

IDLE_MS = 10_000


class Connection:
    def __init__(self, instance: Instance) -> None:
        self.session: Any = SimpleNamespace(peer="10.0.0.1", route="default")
        self.looks = self.noted = 0
        instance.connected(self)

    def look(self, _patience: int) -> None:
        self.looks += 1

    def lately(self, _now_s: float) -> None:
        """What it has sent is noted with every look, for whoever asks later."""
        self.noted = self.looks

    def close(self) -> None:
        raise AssertionError


def test_every_connection_is_looked_at_once_a_sweep_and_few_of_them_in_a_step() -> None:
    time, instances = VirtualTime(), [Instance(SPEC), Instance(SPEC)]
    sweeps: list[tuple[str, Steps[None]]] = []
    broker: Any = SimpleNamespace(
        doors=SimpleNamespace(loop=time, clock=SimpleNamespace(monotonic=lambda: IDLE_MS / 1000)),
        config=SimpleNamespace(settings=Settings(connections_max_idle_ms=IDLE_MS)),
        registry=SimpleNamespace(all=lambda: instances),
        slices=SimpleNamespace(run=lambda owner, steps: sweeps.append((owner, steps))),
    )
    connections = [Connection(instance) for instance in instances for _ in range(1000)]
    gone = connections[-1]
    Admission(broker).start()
    time.run(IDLE_MS / 1000 / 10)
    ((owner, steps),) = sweeps
    assert owner == ""
    looked = 0
    for _ in steps:
        now = sum(connection.looks for connection in connections)
        assert 0 <= now - looked <= 100
        looked = now
        instances[1].disconnected(gone)
    assert [connection.looks for connection in connections] == [1] * 1999 + [0]
    assert [connection.noted for connection in connections] == [1] * 1999 + [0]
    time.run(IDLE_MS / 1000 / 10)
    assert len(sweeps) == 2
