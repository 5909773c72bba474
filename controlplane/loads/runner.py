"""The loop that runs loads: `manage.py lake_runner`. What there is to do stands in rows (`claiming`).

It looks every two seconds. When it is told to stop, its runs wait for the next runner and go on where their tables are; killed,
it says nothing more, and after a minute its runs have failed. Several of them share the work.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import socket
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import SluiceError
from controlplane.instances.models import InstanceState
from controlplane.loads import claiming, installed, running
from controlplane.loads.models import LoadRun, RunState
from controlplane.loads.running import Process

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger("sluice.loads")
EVERY_S = 2.0
TIDY_EVERY = 15
"""Turns: half a minute."""


class Runner:
    """One of them."""

    def __init__(self, *, home: Path | None = None, submit: str = "", at_once: int | None = None) -> None:
        self.name = f"{socket.gethostname()[:20]}-{uuid.uuid4().hex[:12]}"
        self._home = home or settings.ENVIRONMENT.stack_dir / "lake-load" / "runs"
        self._submit = shlex.split(submit)
        self._at_once = at_once or installed.at_once()
        self._processes: list[Process] = []
        self._turns = 0
        self._left_behind()

    def turn(self, clock: Clock = SYSTEM_CLOCK) -> None:
        """Look once: at what runs, at what is due, at what waits."""
        self._processes = [process for process in self._processes if self._goes_on(process, clock)]
        if self._turns % TIDY_EVERY == 0:
            claiming.tidy(clock.now())
        self._turns += 1
        claiming.ask_due(clock.now())
        while len(self._processes) < self._at_once:
            run = claiming.claim(self.name, clock.now())
            if run is None:
                return
            self._start(run, clock)

    @property
    def running(self) -> int:
        """How many loads it runs now."""
        return len(self._processes)

    def close(self) -> None:
        """Stop what runs: it waits for another runner."""
        for process in self._processes:
            process.stop()
            claiming.again(process.run, self.name)
            process.close()
        self._processes = []

    def _start(self, run: LoadRun, clock: Clock) -> None:
        state = run.load.instance.state
        if state != InstanceState.RUNNING:
            self._fail(run, f"the instance is {state}, not running", clock)
            return
        folder = running.folder_of(run, self._home)
        try:
            self._processes.append(Process(run, running.prepare(run, folder), self._submit))
        except (SluiceError, OSError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            self._fail(run, str(error) if isinstance(error, SluiceError) else "the program cannot be started", clock)
            LOG.warning("run %s of %s was not started: %s", run.pk, run.load_id, error)
            return
        LOG.info("run %s of %s has begun", run.pk, run.load_id)

    def _goes_on(self, process: Process, clock: Clock) -> bool:
        run, status = process.run, process.status()
        if status is None and not process.is_late and claiming.beat(run, self.name, clock.now(), process.says()):
            return True
        if status is None:
            self._stop(process, clock)
        else:
            state, members = process.outcome()
            claiming.end(run, self.name, clock.now(), state=state, members=members)
            LOG.info("run %s of %s has %s: %s", run.pk, run.load_id, state, members["says"])
        process.close()
        return False

    def _stop(self, process: Process, clock: Clock) -> None:
        process.stop()
        says = "stopped; what was committed by then stays, and the next run goes on there"
        if not claiming.is_stopped(process.run):
            says = f"stopped after {running.LONGEST_S / 3600:g} hours; the next run goes on where the table is"
        claiming.end(process.run, self.name, clock.now(), state=RunState.STOPPED, members={"says": says})
        LOG.info("run %s of %s was stopped", process.run.pk, process.run.load_id)

    def _fail(self, run: LoadRun, says: str, clock: Clock) -> None:
        claiming.end(run, self.name, clock.now(), state=RunState.FAILED, members={"says": says})

    def _left_behind(self) -> None:
        """Folders of runs that a killed runner of this machine has left, with their secrets."""
        if not self._home.is_dir():
            return
        under_way = LoadRun.objects.unscoped("the runner serves all").filter(state=RunState.RUNNING)
        kept = {str(pk) for pk in under_way.values_list("pk", flat=True)}
        for folder in self._home.iterdir():
            if folder.name.partition("-")[0] not in kept:
                shutil.rmtree(folder, ignore_errors=True)


def work(runner: Runner, over: threading.Event, *, waits: Callable[[float], object] | None = None) -> None:
    """Until `over`. A database that is away is asked again."""
    wait = waits or over.wait
    while not over.is_set():
        try:
            close_old_connections()
            runner.turn()
        except (DatabaseError, InterfaceError) as error:
            LOG.warning("the database does not answer: %s", error)
        except SluiceError as error:
            LOG.warning("%s", error)
        wait(EVERY_S)
    runner.close()


def submit_words() -> str:
    """How programs of Spark are started here; empty: by this Python."""
    return os.environ.get("SLUICE_SPARK_SUBMIT", "")
