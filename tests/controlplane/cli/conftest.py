"""The program in this process against the real site on a real socket, over the fake world of the control plane's tests.

Whenever the program pauses to look at an operation again, the fake clock is the worker and carries the operation on: nothing
sleeps, and no test depends on how fast the machine is.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field

import pytest

from controlplane.cli.app import main
from controlplane.cli.waiting import Clock
from controlplane.core import operations
from controlplane.core.models import Operation
from tests.controlplane.fakes import ManualClock


@dataclass(frozen=True)
class Ran:
    """What a run of the program has left."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@dataclass
class Worker:
    """The clock of the program. `works`: whether pauses are used to carry operations on."""

    works: bool = True
    seconds: float = 0.0
    pauses: list[float] = field(default_factory=list)
    clock: ManualClock = field(default_factory=ManualClock)

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.seconds += seconds
        if self.works:
            for row in Operation.objects.unscoped("a test").filter(state="running"):
                self.clock.time = max(self.clock.time, row.runnable_at)
                operations.run(row.id, clock=self.clock)
                self.clock.advance(2)

    def now(self):
        return self.seconds


@pytest.fixture
def worker():
    return Worker()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A person's own configuration, and nothing of whoever runs the tests."""
    for name in ("SLUICE_URL", "SLUICE_API_KEY", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "sluice"


@pytest.fixture
def sluice(home, worker, capsys, monkeypatch):
    """Runs one command: ``sluice("topic", "list", "events", stdin="")``."""

    def run(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        capsys.readouterr()
        status = main([str(each) for each in arguments], clock=Clock(worker.sleep, worker.now))
        said = capsys.readouterr()
        return Ran(status, said.out, said.err)

    return run


@pytest.fixture
def site(transactional_db, live_server):
    """The address of the site."""
    return live_server.url


@pytest.fixture
def as_alice(site, alice, sluice, monkeypatch):
    """Alice, by her environment."""
    monkeypatch.setenv("SLUICE_URL", site)
    monkeypatch.setenv("SLUICE_API_KEY", alice.key)
    return sluice


@pytest.fixture
def ok(as_alice):
    """Runs a command that has to succeed; what it says."""

    def run(*arguments, stdin=""):
        ran = as_alice(*arguments, stdin=stdin)
        assert ran.status == 0, ran.err
        return ran

    return run
