"""The runner: `python -m controlplane.metering.pipeline.runner`. Starts what is due, and what somebody has asked for.

One job at a time, as a process of its own: `python -m <module> --run <number>`, or by what SLUICE_SPARK_SUBMIT says, for example
`spark-submit --master yarn`. What there is to do stands in the database, so that a runner that is killed and started again goes
on, and two of them do no harm: the job takes its row, and a second one finds it taken. A process that takes longer than its job
may is stopped, so that one that hangs holds up nothing for more than that. What a job has started (a JVM, workers) ends with it,
and all of it with the runner, however that ends (`controlplane.spark.kept`). Who has a scheduler of their own needs no runner:
jobs that nobody asked for write their rows themselves.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from controlplane.env import Environment
from controlplane.metering.pipeline import runs
from controlplane.metering.pipeline.schedule import HOUR_MS, JOBS, Job, Run, State, next_start
from controlplane.metering.pipeline.tables import Database
from controlplane.spark.kept import Kept, program

LOG = logging.getLogger("sluice.runner")
EVERY_S = 5.0
STOPS_WITHIN_S = 15.0
LOOKED_AT = 20
"""Runs of a job: more than can fail between two that have to be told apart."""


class Stop(BaseException):
    """Raised in the main thread by SIGTERM."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A run that waits."""

    number: int
    job: Job
    what: str


class Runner:
    """What it does in one turn."""

    def __init__(self, environment: Environment, *, submit: str = "") -> None:
        self._database = Database(environment)
        self._submit = shlex.split(submit)

    def close(self) -> None:
        """Give up the connection."""
        self._database.close()

    def turn(self, now_ms: int) -> Wanted | None:
        """The run to be started now: the oldest that waits, or the first that is due. Those that died are buried.

        What waits for a run of the same job to end waits on, and holds up no other job.
        """
        with self._database.transaction() as cursor:
            runs.bury(self._database, cursor, now_ms)
            waiting = self._waiting(cursor)
            for job in JOBS.values():
                if any(each.job is job for each in waiting):
                    continue
                at_ms = next_start(job, self._runs(cursor, job), now_ms)
                if at_ms is not None and at_ms <= now_ms:
                    number = runs.ask(self._database, cursor, job=job.name, what="", at_ms=now_ms)
                    waiting.append(Wanted(number, job, ""))
            busy = self._busy(cursor)
        return next((each for each in waiting if each.job.name not in busy), None)

    def command(self, wanted: Wanted) -> list[str]:
        """What is started."""
        words = ["--run", str(wanted.number), *(["--day", wanted.what] if wanted.what else [])]
        return [*program(wanted.job.module, self._submit), *words]

    def ended(self, wanted: Wanted, status: int, now_ms: int) -> None:
        """A process that is gone has said how it went, or does not say it any more. One that found its run taken has no say."""
        if status != runs.TAKEN:
            self.failed(wanted, f"the process ended with status {status}, and did not say why", now_ms)

    def failed(self, wanted: Wanted, problem: str, now_ms: int) -> None:
        """Why a run came to nothing, unless it has said itself how it went."""
        with self._database.transaction() as cursor:
            runs.end(self._database, cursor, runs.Current(wanted.number), now_ms, problem=problem)

    def _waiting(self, cursor: Any) -> list[Wanted]:
        statement = f"SELECT id, job, what FROM {runs.TABLE} WHERE state = ? ORDER BY id"  # noqa: S608
        self._database.run(cursor, statement, [State.WAITING.value])
        return [Wanted(number, JOBS[job], what) for number, job, what in cursor.fetchall() if job in JOBS]

    def _busy(self, cursor: Any) -> set[str]:
        statement = f"SELECT DISTINCT job FROM {runs.TABLE} WHERE state = ?"  # noqa: S608
        self._database.run(cursor, statement, [State.RUNNING.value])
        return {job for (job,) in cursor.fetchall()}

    def _runs(self, cursor: Any, job: Job) -> list[Run]:
        self._database.run(
            cursor,
            f"SELECT state, started_at_ms, ended_at_ms, done_to_ms FROM {runs.TABLE}"  # noqa: S608
            f" WHERE job = ? AND started_at_ms IS NOT NULL ORDER BY started_at_ms DESC, id DESC LIMIT {LOOKED_AT}",
            [job.name],
        )
        return [Run(State(state), *rest) for state, *rest in cursor.fetchall()]


class Started:
    """A run's process. `now_s`: by a clock that nobody sets."""

    def __init__(self, wanted: Wanted, command: list[str], now_s: float) -> None:
        self.wanted = wanted
        self._process = Kept(command, stops_within_s=STOPS_WITHIN_S)
        self._last_s = now_s + wanted.job.longest_ms / 1000

    def status(self) -> int | None:
        """None: it goes on."""
        return self._process.poll()

    def is_late(self, now_s: float) -> bool:
        """Whether it has taken longer than its job may."""
        return now_s >= self._last_s

    def stop(self) -> int:
        """Ask it, and after a while do not ask any more; its status."""
        return self._process.stop()


def work(environment: Environment, *, submit: str, pause: Callable[[float], None] = time.sleep) -> None:
    """Until Stop. `pause`: between two turns, so many seconds."""
    runner = Runner(environment, submit=submit)
    started: Started | None = None
    try:
        while True:
            try:
                started = _begun(runner) if started is None else _gone_on(runner, started)
            except Exception:  # drivers have error trees of their own; the database may be away for a while
                LOG.exception("a turn of the runner")
            pause(EVERY_S)
    finally:
        if started is not None:
            _stopped(runner, started, "it was stopped together with the runner")
        runner.close()


def _begun(runner: Runner) -> Started | None:
    wanted = runner.turn(runs.now_ms())
    if wanted is None:
        return None
    command = runner.command(wanted)
    LOG.info("run %d of %s begins", wanted.number, wanted.job.name)
    try:
        return Started(wanted, command, time.monotonic())
    except OSError as error:
        LOG.error("%s: %s", command[0], error.strerror)  # noqa: TRY400  # it says all
        runner.failed(wanted, f"{command[0]} cannot be started: {error.strerror}", runs.now_ms())
        return None


def _gone_on(runner: Runner, started: Started) -> Started | None:
    """The same, where there is something to be done yet: its end, too, may find the database away."""
    wanted = started.wanted
    status = started.status()
    if status is None and started.is_late(time.monotonic()):
        LOG.warning("run %d of %s takes too long", wanted.number, wanted.job.name)
        _stopped(runner, started, f"stopped after {_span(wanted.job.longest_ms)}")
        return None
    if status is None:
        return started
    LOG.info("run %d of %s ended with status %d", wanted.number, wanted.job.name, status)
    runner.ended(wanted, status, runs.now_ms())
    return None


def _stopped(runner: Runner, started: Started, problem: str) -> None:
    if started.stop() == runs.TAKEN:
        return
    try:
        runner.failed(started.wanted, problem, runs.now_ms())
    except Exception:  # as in a turn; whoever looks a minute later says that it died
        LOG.exception("the end of run %d is not written down", started.wanted.number)


def _span(span_ms: int) -> str:
    hours = span_ms / HOUR_MS
    return f"{span_ms / 1000:g} s" if hours < 1 else f"{hours:g} hour{'' if hours == 1 else 's'}"


def main() -> int:
    """Until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    environment = Environment.read(os.environ)
    try:
        with runs.recorded(environment, job="runner"):
            try:
                work(environment, submit=os.environ.get("SLUICE_SPARK_SUBMIT", ""))
            except Stop:
                LOG.info("stopping")
    except Stop:
        pass
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stop


if __name__ == "__main__":
    sys.exit(main())
