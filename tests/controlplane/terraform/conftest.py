"""The provider as a process of its own against the real site on a real socket, over the fake world of the control plane's tests.

While a call of the provider is waited for, the test's own thread carries operations on: it is the service's worker.
"""

from __future__ import annotations

import pytest

from controlplane.core import operations
from controlplane.core.models import Operation
from tests.controlplane.fakes import ManualClock

pytest.importorskip("msgpack", reason="the provider's requirements are not installed: requirements/terraform.txt")
pytest.importorskip("grpc", reason="the provider's requirements are not installed: requirements/terraform.txt")

from tests.controlplane.terraform.between import Between
from tests.controlplane.terraform.core import Terraform


@pytest.fixture
def between(transactional_db, live_server):
    with Between(live_server.url) as found:
        yield found


class Worker:
    """Carries operations on, while `works`."""

    def __init__(self, between):
        self.between, self.works, self.clock = between, True, ManualClock()

    def __call__(self):
        with self.between.lock:
            if not self.works:
                return
            for row in Operation.objects.unscoped("a test").filter(state="running"):
                self.clock.time = max(self.clock.time, row.runnable_at)
                operations.run(row.id, clock=self.clock)
                self.clock.advance(2)


@pytest.fixture
def worker(between):
    return Worker(between)


@pytest.fixture(scope="session")
def process():
    """One process for all tests: each configures it anew, as Terraform does for each of its runs."""
    with Terraform({}) as found:
        yield found


@pytest.fixture
def terraform(process, between, worker, alice):
    """Alice's."""
    process.work, process.write_only = worker, True
    process.log.clear()
    process.configure(endpoint=between.url, api_key=alice.key)
    yield process
    process.work = lambda: None


@pytest.fixture
def own_terraform(between, worker, alice):
    """A process of the test's own, configured by its environment: for what ends it."""
    with Terraform({"SLUICE_URL": between.url, "SLUICE_API_KEY": alice.key}, worker) as found:
        found.configure()
        yield found
