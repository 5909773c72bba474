"""The runner: `python -m controlplane.metering.pipeline.runner`. Starts what is due, and what somebody has asked for.

One job at a time, as a process of its own: `python -m <module> --run <number>`, or by what SLUICE_SPARK_SUBMIT says, for example
`spark-submit --master yarn`. What there is to do stands in the database, so that a runner that is killed and started again goes
on, and two of them do no harm: the job takes its row, and a second one finds it taken. Who has a scheduler of their own needs
no runner: jobs that nobody asked for write their rows themselves.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import FrameType
from typing import Any

from controlplane.env import Environment
from controlplane.metering.pipeline import runs
from controlplane.metering.pipeline.schedule import JOBS, Job, Run, State, next_start
from controlplane.metering.pipeline.tables import Database

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
        """The run to be started now: the oldest that waits, or the first that is due. Those that died are buried."""
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
        return waiting[0] if waiting else None

    def command(self, wanted: Wanted) -> list[str]:
        """What is started."""
        words = ["--run", str(wanted.number), *(["--day", wanted.what] if wanted.what else [])]
        if not self._submit:
            return [sys.executable, "-m", wanted.job.module, *words]
        found = importlib.util.find_spec(wanted.job.module)
        assert found is not None
        assert found.origin is not None
        return [*self._submit, found.origin, *words]

    def ended(self, wanted: Wanted, status: int, now_ms: int) -> None:
        """A process that is gone has said how it went, or does not say it any more."""
        with self._database.transaction() as cursor:
            problem = f"the process ended with status {status}, and did not say why"
            runs.end(self._database, cursor, runs.Current(wanted.number), now_ms, problem=problem)

    def _waiting(self, cursor: Any) -> list[Wanted]:
        statement = f"SELECT id, job, what FROM {runs.TABLE} WHERE state = ? ORDER BY id"  # noqa: S608
        self._database.run(cursor, statement, [State.WAITING.value])
        return [Wanted(number, JOBS[job], what) for number, job, what in cursor.fetchall() if job in JOBS]

    def _runs(self, cursor: Any, job: Job) -> list[Run]:
        self._database.run(
            cursor,
            f"SELECT state, started_at_ms, ended_at_ms, done_to_ms FROM {runs.TABLE}"  # noqa: S608
            f" WHERE job = ? AND started_at_ms IS NOT NULL ORDER BY started_at_ms DESC, id DESC LIMIT {LOOKED_AT}",
            [job.name],
        )
        return [Run(State(state), *rest) for state, *rest in cursor.fetchall()]


def work(environment: Environment, *, submit: str) -> None:
    """Until Stop."""
    runner = Runner(environment, submit=submit)
    process: subprocess.Popen[bytes] | None = None
    wanted: Wanted | None = None
    try:
        while True:
            try:
                if process is None:
                    wanted = runner.turn(runs.now_ms())
                    if wanted is not None:
                        process = subprocess.Popen(runner.command(wanted), stdin=subprocess.DEVNULL)  # noqa: S603  # ours
                        LOG.info("run %d of %s begins", wanted.number, wanted.job.name)
                elif (status := process.poll()) is not None:
                    process = None
                    assert wanted is not None
                    LOG.info("run %d of %s ended with status %d", wanted.number, wanted.job.name, status)
                    runner.ended(wanted, status, runs.now_ms())
            except Exception:  # drivers have error trees of their own; the database may be away for a while
                LOG.exception("a turn of the runner")
            time.sleep(EVERY_S)
    finally:
        if process is not None:
            process.terminate()
            try:
                process.wait(STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if wanted is not None:
                runner.ended(wanted, process.returncode, runs.now_ms())
        runner.close()


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
