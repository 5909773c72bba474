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
from controlplane.loads import claiming, installed, kept_tables, running
from controlplane.loads.destinations import table_of
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

    def turn(self, clock: Clock = SYSTEM_CLOCK) -> None:
        """Look once: at what runs, at what is due, at what waits.

        At most one run begins: a cluster that does not answer keeps those that run from their signs of life for one time-out.
        """
        for process in list(self._processes):
            try:
                is_over = self._look_after(process, clock)
            except (DatabaseError, InterfaceError):
                raise
            except Exception:  # whatever is the matter with one must not end the others
                LOG.exception("run %s of %s", process.run.pk, process.run.load_id)
                process.stop()
                self._fail(process.run, "the runner could not look after this run", clock)
                is_over = True
            if is_over:
                self._processes.remove(process)
                process.close()
        if self._turns % TIDY_EVERY == 0:
            claiming.bury(clock.now())
            self._remove_left_behind()
            self._remove_gone()
            kept_tables.tend(clock.now())
            claiming.forget_gone()
        self._turns += 1
        claiming.ask_due(clock.now())
        if len(self._processes) < self._at_once and (run := claiming.claim(self.name, clock.now())) is not None:
            self._start(run, clock)

    @property
    def running(self) -> int:
        """How many loads it runs now."""
        return len(self._processes)

    def close(self) -> None:
        """Stop what runs: it waits for another runner, but for what somebody has asked to stop."""
        for process in self._processes:
            process.ask()
        for process in self._processes:
            process.stop()
        for process in self._processes:
            run, copied = process.run, process.copied_version
            process.close()
            try:
                if not claiming.again(run, self.name, copied_version=copied):
                    self._stopped(run, claiming.STOPPED, copied, SYSTEM_CLOCK)
            except (DatabaseError, InterfaceError) as error:
                LOG.warning("the end of run %s is not written down: %s", run.pk, error)
        self._processes = []

    def _start(self, run: LoadRun, clock: Clock) -> None:
        state = run.load.instance.state
        if state != InstanceState.RUNNING:
            self._fail(run, f"the instance is {state}, not running", clock)
            return
        if run.load.kind not in installed.kinds():
            self._fail(run, "the operators of this service allow no such place for loads any more", clock)
            return
        folder = None
        try:
            folder = running.folder_of(run, self._home)
            self._processes.append(Process(run, running.prepare(run, folder), self._submit))
        except Exception as error:  # whatever is the matter with one must not end the runner
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            is_told = isinstance(error, SluiceError)
            self._fail(run, str(error) if is_told else "the program cannot be started", clock)
            LOG.warning("run %s of %s was not started: %s", run.pk, run.load_id, error, exc_info=not is_told)
            return
        LOG.info("run %s of %s has begun", run.pk, run.load_id)

    def _look_after(self, process: Process, clock: Clock) -> bool:
        """Whether it has ended. One that was asked to end is looked at again in later turns, so that others go on meanwhile."""
        run, is_running = process.run, process.status() is None
        if not is_running and process.stops_because:
            self._stopped(run, process.stops_because, process.copied_version, clock)
            return True
        if not is_running:
            self._end(process, clock)
            return True
        why = claiming.beat(run, self.name, clock.now(), process.says())
        if why is None and process.is_late:
            why = f"stopped after {running.LONGEST_S / 3600:g} hours; the next run goes on where the table is"
        if why is not None and not process.stops_because:
            process.ask(why)
        if process.has_had_its_turn and claiming.others_wait(run):
            process.give_way()
        return False

    def _end(self, process: Process, clock: Clock) -> None:
        run, outcome = process.run, process.outcome()
        state, copied = outcome.state, outcome.copied_version
        if state == RunState.SUCCEEDED and not outcome.is_whole:
            if claiming.again(run, self.name, members=outcome.members, copied_version=copied, at=clock.now()):
                LOG.info("run %s of %s lets others go before", run.pk, run.load_id)
                return
            state = RunState.STOPPED
        if claiming.end(run, self.name, clock.now(), state=state, members=outcome.members, copied_version=copied):
            LOG.info("run %s of %s has %s: %s", run.pk, run.load_id, state, outcome.members["says"])

    def _stopped(self, run: LoadRun, why: str, copied_version: int | None, clock: Clock) -> None:
        members = {"says": why}
        claiming.end(
            run, self.name, clock.now(), state=RunState.STOPPED, members=members, copied_version=copied_version
        )
        LOG.info("run %s of %s: %s", run.pk, run.load_id, why)

    def _fail(self, run: LoadRun, says: str, clock: Clock) -> None:
        claiming.end(run, self.name, clock.now(), state=RunState.FAILED, members={"says": says})

    def _remove_left_behind(self) -> None:
        """Folders of runs that a killed runner of this machine has left, with their secrets."""
        folders = list(self._home.iterdir()) if self._home.is_dir() else []
        under_way = LoadRun.objects.unscoped("the runner serves all").filter(state=RunState.RUNNING)
        kept = {str(pk) for pk in under_way.values_list("pk", flat=True)}
        for folder in folders:
            if folder.name.partition("-")[0] not in kept:
                shutil.rmtree(folder, ignore_errors=True)

    def _remove_gone(self) -> None:
        """Folders of instances that are gone, where they are on this machine; elsewhere operators remove them."""
        root = table_of(installed.folders())
        if root is None or not root.is_dir():
            return
        by_id = {folder.name: folder for each in root.iterdir() if each.is_dir() for folder in each.iterdir()}
        for instance_id in claiming.gone_of(by_id):
            shutil.rmtree(by_id[instance_id], ignore_errors=True)  # what is left is found again


def work(runner: Runner, over: threading.Event, *, waits: Callable[[float], object] | None = None) -> None:
    """Until `over`. A database that is away is asked again; what it was not told meanwhile, it may be told by others first."""
    wait = waits or over.wait
    try:
        while not over.is_set():
            try:
                close_old_connections()
                runner.turn()
            except (DatabaseError, InterfaceError) as error:
                LOG.warning("the database does not answer: %s", error)
            except Exception:  # the next turn may be better, and nobody else runs loads
                LOG.exception("a turn of the runner")
            wait(EVERY_S)
    finally:
        runner.close()


def submit_words() -> str:
    """How programs of Spark are started here; empty: by this Python."""
    return os.environ.get("SLUICE_SPARK_SUBMIT", "")
