"""A standalone Spark on 127.0.0.1: a Master and two Workers of one core each, whose executors are JVMs of their own.

`spark-class` starts them, as it stands in pyspark's wheel. A worker leads a process group, which its executors belong to; one
that is killed leaves them behind, and they end by themselves when they notice.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyspark

from controlplane.env import ROOT
from controlplane.spark.session import LOG4J2, prepare_java
from controlplane.stack.process import dies_with_parent
from tests.support.ports import free_port
from tests.support.processes import HOST
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from types import TracebackType

WORKERS = 2
EXECUTOR_MEMORY = "640m"
LITTLE_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
EXECUTOR = b"CoarseGrainedExecutorBackend"
_STARTS_WITHIN_S = 120.0
_SPARK_HOME = Path(pyspark.__file__).parent


class SparkCluster:
    """A context manager; `folder` is its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._port, self._ui = folder, free_port(), free_port()
        log4j2 = folder / "log4j2.properties"
        log4j2.write_text(LOG4J2)
        java = f"{LITTLE_JAVA} -Dlog4j2.configurationFile={log4j2}"
        (folder / "spark-defaults.conf").write_text(
            f"spark.driver.host {HOST}\n"
            f"spark.driver.bindAddress {HOST}\n"
            f"spark.executor.memory {EXECUTOR_MEMORY}\n"
            "spark.executor.cores 1\n"
            f"spark.cores.max {WORKERS}\n"
            f"spark.executor.extraJavaOptions {java}\n"
        )
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(_SPARK_HOME),
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": java,
            "JAVA_HOME": str(prepare_java(folder)),
            "PYTHONPATH": str(ROOT),  # the project is on every node
            "PYSPARK_PYTHON": sys.executable,
        }
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def of_jobs(self) -> dict[str, str]:
        """The environment of a driver that is to work here."""
        return {
            "SPARK_MASTER": f"spark://{HOST}:{self._port}",
            "SPARK_CONF_DIR": str(self._folder),
            "SPARK_LOCAL_IP": HOST,
        }

    def __enter__(self) -> Self:
        try:
            words = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._ui)]
            self._master = self._started("master", "org.apache.spark.deploy.master.Master", words)
            wait_for(lambda: self._state()["status"] == "ALIVE", _STARTS_WITHIN_S, "Spark's master")
            for number in range(1, WORKERS + 1):
                self.worker_start(number)
            self.wait_whole()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for process in (*self._workers.values(), *([self._master] if self._master else [])):
            _kill_group(process)

    def wait_whole(self) -> None:
        """Until all workers are known to the master."""
        wait_for(lambda: self._alive() == WORKERS, _STARTS_WITHIN_S, "Spark's workers")

    def worker_start(self, number: int) -> None:
        words = [
            *("--host", HOST, "--port", str(free_port()), "--webui-port", str(free_port())),
            *("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / f"work-{number}")),
            self.of_jobs["SPARK_MASTER"],
        ]
        self._workers[number] = self._started(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", words)

    def worker_kill(self, dice: random.Random) -> int:
        """SIGKILL to one of them, not to its executors; its number."""
        number = dice.choice(sorted(self._workers))
        process = self._workers[number]
        process.kill()
        process.wait(20)
        return number

    def executors(self) -> list[int]:
        """Process ids of those that run."""
        return [pid for worker in self._workers.values() for pid in _children(worker.pid) if _is_executor(pid)]

    def executor_kill(self, dice: random.Random) -> None:
        """SIGKILL to one of them."""
        os.kill(dice.choice(self.executors()), signal.SIGKILL)

    def tidy(self) -> None:
        """What executors of jobs that have ended left: each has had all the jars."""
        for left in self._folder.glob("work-*/app-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _started(self, name: str, main: str, words: list[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(_SPARK_HOME / "bin" / "spark-class"), main, *words],
                cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )  # fmt: skip

    def _state(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{HOST}:{self._ui}/json/", timeout=5) as answer:
            return dict(json.load(answer))

    def _alive(self) -> int:
        running = {process.pid for process in self._workers.values() if process.poll() is None}
        return min(len(running), sum(worker["state"] == "ALIVE" for worker in self._state()["workers"]))


def executors_of(folder: Path, application: str) -> dict[str, str]:
    """By their ids, those that an application had on a cluster in `folder`, and the work folder of each one's worker."""
    found = folder.glob(f"work-*/{application}/*")
    return {path.name: path.parent.parent.name for path in found if path.is_dir()}


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


def _children(pid: int) -> list[int]:
    with suppress(FileNotFoundError, ProcessLookupError):
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    return []


def _is_executor(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False
