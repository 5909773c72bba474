"""One database with the lake and the job that fill it: the campaign has one of each kind of database, kept over its rounds."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg

from controlplane.env import ROOT
from controlplane.stack.process import dies_with_parent
from tests.killed.driver import DEATHS, ORDER
from tests.killed.oracle import COUNTERS, Key, Used
from tests.killed.plan import Fault
from tests.support.waiting import wait_for

_STOPS_WITHIN_S = 60.0
_DIES_WITHIN_S = 300.0
_GROWN = (f"CASE WHEN {name} > {name}_before THEN {name} - {name}_before ELSE 0 END" for name in COUNTERS)
_HOURS = f"SELECT instance, boot, topic, hour, {', '.join(_GROWN)} FROM metering_usagemaximum"
"""As `metering.selectors` and `reconcile_tables` take an hour's usage from a row."""


class Side:
    """`home`: the folder of Spark, `folder`: its own; `environment`: of the job, where brokers are and how to log in."""

    def __init__(self, home: Path, folder: Path, url: str, environment: dict[str, str]) -> None:
        self.url, self.folder = url, folder
        self.lake = folder / "lake"
        self.log = folder / "job.log"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "SPARK_MASTER"},
            **environment,
            "SLUICE_STACK_DIR": str(home),
            "SLUICE_LAKE": str(self.lake),
            "DATABASE_URL": url,
            "SLUICE_USAGE_TRIGGER_S": "1",
            "SLUICE_TESTS_ORDERS": str(folder),
        }
        self._job: subprocess.Popen[bytes] | None = None
        self._of_cluster: dict[str, str] = {}

    # --- the job ------------------------------------------------------------------------------------------------------

    def start(self, of_cluster: dict[str, str] | None = None) -> None:
        """Returns at once. `of_cluster`: what a driver is told that is to work on a Spark cluster; as before, where None."""
        if of_cluster is not None:
            self._of_cluster = of_cluster
        with self.log.open("ab") as log:
            self._job = subprocess.Popen(
                [sys.executable, "-m", "tests.killed.driver"],
                cwd=ROOT, env=self.environment | self._of_cluster, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL to driver and JVM."""
        if self._job is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._job.pid, signal.SIGKILL)
            self._job.wait(20)
            self._job = None

    def stop(self) -> None:
        """SIGTERM, as whoever operates it does."""
        assert self._job is not None
        self._job.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._job.wait(_STOPS_WITHIN_S)
        self.kill()

    def dies_at(self, fault: Fault) -> str:
        """Have it kill itself; where it died."""
        job = self._job
        assert job is not None
        before = self._deaths()
        new = self.folder / f"{ORDER}.new"
        new.write_text(json.dumps({"kind": fault.kind, "batch": fault.batch}))
        new.rename(self.folder / ORDER)
        wait_for(lambda: job.poll() is not None, _DIES_WITHIN_S, f"the job to die {fault.kind}")
        (self.folder / ORDER).unlink(missing_ok=True)
        deaths = self._deaths()
        assert len(deaths) == len(before) + 1, f"the job ended with status {job.returncode}:\n{self.tail()}"
        self.kill()
        return deaths[-1]

    def _deaths(self) -> list[str]:
        path = self.folder / DEATHS
        return path.read_text().splitlines() if path.exists() else []

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    # --- the database -------------------------------------------------------------------------------------------------

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Of one statement, which sees one state of the database."""
        if self.url.startswith("sqlite:"):
            path = self.url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
                return connection.execute(statement).fetchall()
        with psycopg.connect(self.url) as connection:
            return connection.execute(statement.encode()).fetchall()

    def positions(self) -> dict[int, int]:
        """By partition of `__usage`, the first offset that the database does not have."""
        return dict(self.rows("SELECT partition, next_offset FROM metering_progress"))

    def wait_moved(self, before: dict[int, int], within_s: float) -> None:
        """Until the database has records more than then."""
        begun = sum(before.values())
        wait_for(lambda: sum(self.positions().values()) > begun, within_s, "the job to bring records")

    def hours(self) -> dict[Key, Used]:
        """Usage by key."""
        return {tuple(row[:4]): tuple(map(int, row[4:])) for row in self.rows(_HOURS)}

    def metered(self) -> dict[str, tuple[int, int]]:
        """Bytes produced and consumed by instance."""
        found: dict[str, tuple[int, int]] = {}
        for (instance, *_), (produced, consumed, _) in self.hours().items():
            before = found.get(instance, (0, 0))
            found[instance] = before[0] + produced, before[1] + consumed
        return found

    def counted(self) -> int:
        """Records that the job says it has counted."""
        return int(sum(row[0] for row in self.rows("SELECT records FROM metering_pipelinestatus")))

    # --- the product's bills ------------------------------------------------------------------------------------------

    def bills(self, word: str, asked: dict[str, Any]) -> Any:
        """What `tests.killed.bills` answers."""
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "tests.killed.bills", word, str(self.folder), self.url],
            cwd=ROOT, input=json.dumps(asked), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"after {time.monotonic() - began:.0f} s: {done.stderr[-2000:]}"
        return json.loads(done.stdout.splitlines()[-1])
