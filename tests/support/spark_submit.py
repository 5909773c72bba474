"""Programs by `spark-submit`, as an operator starts them, from a folder of their own; what executors did is in Spark's event log.

The environment of the program is what the caller names and no more of ours than a process needs, so that whatever a job
wants of its executors goes by Spark's ways or not at all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from controlplane.env import ROOT
from controlplane.spark.session import prepare_java
from controlplane.stack.process import dies_with_parent
from tests.support.processes import HOST
from tests.support.spark_cluster import LITTLE_JAVA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_ENDS_WITHIN_S = 900
NO_DISK = {
    "spark.hadoop.fs.defaultFS": "viewfs://none/",
    "spark.hadoop.fs.viewfs.mounttable.none.link./nothing": "file:///",
}
"""As on a cluster with HDFS: a path without a scheme is not one of the driver's disk. Here it is nowhere."""
OUT, LOG, EVENTS = "out", "log", "events"
_OURS = ("PATH", "HOME", "LANG", "TMPDIR", "SPARK_LOCAL_IP")


@dataclass(frozen=True, slots=True)
class Done:
    """A program that has ended."""

    status: int
    out: str  # of the program, which spark-submit gives one stream for both
    log: str  # of spark-submit and the JVM
    events: tuple[dict[str, Any], ...]  # of Spark's event log; none where Spark was not started

    def tasks(self) -> Counter[str]:
        """How many ended well, by the executor's id."""
        return Counter(
            event["Task Info"]["Executor ID"]
            for event in self.events
            if event["Event"] == "SparkListenerTaskEnd" and event["Task End Reason"]["Reason"] == "Success"
        )

    def python_tasks(self) -> Counter[str]:
        """The same, of stages in which executors ran our code."""
        stages = {
            event["Stage Info"]["Stage ID"]
            for event in self.events
            if event["Event"] == "SparkListenerStageCompleted"
            and any(each["Name"] == "PythonRDD" for each in event["Stage Info"]["RDD Info"])
        }
        return Counter(
            event["Task Info"]["Executor ID"]
            for event in self.events
            if event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stages
        )

    @property
    def properties(self) -> dict[str, str]:
        """Spark's configuration as the program had it."""
        (found,) = (event for event in self.events if event["Event"] == "SparkListenerEnvironmentUpdate")
        return dict(found["Spark Properties"])

    @property
    def application(self) -> str:
        """Its id, by which workers name its folders."""
        (found,) = (event for event in self.events if event["Event"] == "SparkListenerApplicationStart")
        return str(found["App ID"])


class Begun:
    """A program that runs: JVM and Python, in a process group of their own; `folder` is its own."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        with (folder / OUT).open("wb") as out, (folder / LOG).open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )  # fmt: skip

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def tail(self) -> str:
        """What it said last."""
        return "\n".join((self.folder / name).read_text(errors="replace")[-3000:] for name in (OUT, LOG))

    def ask(self, number: signal.Signals = signal.SIGTERM) -> None:
        """A signal to what spark-submit has become, as whoever operates it does: the JVM."""
        self._process.send_signal(number)

    def left(self) -> list[int]:
        """Process ids of what it has started and still runs."""
        numbers = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        return [number for number in numbers if _session(number) == self._process.pid]

    def kill(self) -> None:
        """SIGKILL to all of it."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(20)

    def ended(self, within_s: float = _ENDS_WITHIN_S) -> Done:
        """Once it has. Skips the test where its packages cannot be had."""
        try:
            status = self._process.wait(within_s)
        except BaseException:
            self.kill()
            raise
        log = (self.folder / LOG).read_text(errors="replace")
        if "UNRESOLVED DEPENDENCIES" in log:
            pytest.skip("Delta Lake and Spark's Kafka source are not here, and Maven Central does not give them")
        return Done(status, (self.folder / OUT).read_text(errors="replace"), log, tuple(_events(self.folder / EVENTS)))


@dataclass(frozen=True, slots=True)
class Submitter:
    """`folder`: its own, of which programs get one each; `ivy`: where packages have been fetched to."""

    folder: Path
    master: str
    ivy: Path
    spark_conf: Path | None = None  # the folder SPARK_CONF_DIR
    packages: Sequence[str] = ()
    conf: Mapping[str, str] = field(default_factory=dict)

    def run(self, program: str, *words: str, environment: Mapping[str, str], packages: bool = True) -> Done:
        """A program of this project, by its path below the project's folder."""
        return self.start(program, *words, environment=environment, packages=packages).ended()

    def start(self, program: str, *words: str, environment: Mapping[str, str], packages: bool = True) -> Begun:
        """The same, without waiting for its end."""
        own = self.folder / f"{len(list(self.folder.glob('*'))) if self.folder.exists() else 0}-{Path(program).stem}"
        (own / EVENTS).mkdir(parents=True)
        conf = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.driver.extraJavaOptions": LITTLE_JAVA,
            "spark.ui.enabled": "false",
            "spark.jars.ivy": str(self.ivy),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (own / EVENTS).as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            # Both executors before the first task: what is little would be done before the second one is there.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            **self.conf,
        }
        command = [
            str(SPARK_SUBMIT), "--master", self.master,
            *(word for pair in conf.items() for word in ("--conf", "=".join(pair))),
            *(("--packages", ",".join(self.packages)) if self.packages and packages else ()),
            str(ROOT / program), *words,
        ]  # fmt: skip
        return Begun(command, own, self._environment(own) | dict(environment))

    def _environment(self, own: Path) -> dict[str, str]:
        found = {name: os.environ[name] for name in _OURS if name in os.environ}
        found |= {
            "JAVA_HOME": str(prepare_java(own)),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SLUICE_STACK_DIR": str(own),
        }
        return found | ({} if self.spark_conf is None else {"SPARK_CONF_DIR": str(self.spark_conf)})


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.iterdir()):
        yield from map(json.loads, path.read_text().splitlines())


def _session(pid: int) -> int | None:
    """Of a process; None: it has ended."""
    with suppress(OSError):
        return os.getsid(pid)
    return None
