"""A real Apache Kafka 3.9.2 in ZooKeeper mode, to compare with: its jars by Maven once, brokers as processes on loopback.

kafka = ApacheKafka(directory, brokers=1)
with kafka:                       # its own ZooKeeper (tests.support.zookeeper) and brokers 0, 1, ...
    kafka.bootstrap               # "127.0.0.1:p0,127.0.0.1:p1"

The jars stay in `var/apache-kafka/3.9.2` of the project's folder; they hold Kafka's command-line tools as well.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from controlplane.stack.process import dies_with_parent
from tests.support.alone import alone
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = "3.9.2"
HOST = "127.0.0.1"
ROOT = Path(__file__).parents[2]
JARS = ROOT / "var" / "apache-kafka" / VERSION
_POM = Path(__file__).with_suffix(".pom.xml")
_START_WITHIN_S = 180  # of a busy machine
_FETCH_WITHIN_S = 300
_GARBAGE_COLLECTION = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""As Kafka's own start script has it."""


class NotAvailableError(Exception):
    """Apache Kafka cannot be had here; the text says what is missing."""


def jars() -> Path:
    """The folder of the jars, filled by Maven the first time (a minute). Raises NotAvailableError."""
    return fetched(_POM, JARS)


def fetched(pom: Path, into: Path) -> Path:
    """The folder, with all jars that a pom needs, by Maven where they are not there yet. Raises NotAvailableError."""
    if into.is_dir():
        return into
    try:
        with alone(into.with_name(f"{into.name}.lock"), _FETCH_WITHIN_S):
            if not into.is_dir():  # another worker may have fetched them meanwhile
                _fetch(pom, into)
    except (TimeoutError, subprocess.TimeoutExpired) as error:
        raise NotAvailableError(f"Apache Kafka was not fetched within {_FETCH_WITHIN_S} s") from error
    return into


def _fetch(pom: Path, into: Path) -> None:
    for program in ("mvn", "java"):
        if shutil.which(program) is None:
            raise NotAvailableError(f"Apache Kafka needs the program {program}")
    part = into.with_name(f"{into.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={part}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_FETCH_WITHIN_S)
    if done.returncode:
        raise NotAvailableError(f"Maven could not fetch Apache Kafka:\n{done.stdout[-2000:]}")
    part.rename(into)


def tool(main_class: str) -> list[str]:
    """The beginning of a command line that runs one of Kafka's tools, as `org.apache.kafka.tools.TopicCommand`."""
    return ["java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{jars()}/*", main_class]


class ApacheKafka:
    """Brokers with the ids 0, 1, ... and one ZooKeeper below `directory`; a context manager."""

    def __init__(
        self,
        directory: Path,
        *,
        brokers: int = 1,
        settings: Mapping[str, object] | None = None,
        heap: str = "1g",
        first_id: int = 0,
        more_listeners: str = "",
    ) -> None:
        self.directory = directory
        self.ports = {first_id + number: free_port() for number in range(brokers)}
        self._settings = dict(settings or {})
        self._heap = heap
        self._more_listeners = f",{more_listeners}" if more_listeners else ""
        self._zookeeper = ZooKeeperServer(directory / "zookeeper", free_port())
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    @property
    def zookeeper(self) -> str:
        """Address of its ZooKeeper."""
        return self._zookeeper.hosts

    def pid(self, broker: int = 0) -> int:
        """Of a broker's process."""
        return self._processes[broker].pid

    def __enter__(self) -> Self:
        self._zookeeper.start()
        for broker in self.ports:
            self._start(broker)
        deadline = time.monotonic() + _START_WITHIN_S
        for broker in self.ports:
            self._until_it_accepts(broker, deadline)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()
        self._zookeeper.stop()

    def kill(self, broker: int) -> None:
        """SIGKILL; the data stays."""
        self._processes[broker].kill()
        self._processes[broker].wait()

    def restart(self, broker: int) -> None:
        """Start one that was killed; returns when it accepts."""
        self._start(broker)
        self._until_it_accepts(broker, time.monotonic() + _START_WITHIN_S)

    def _until_it_accepts(self, broker: int, deadline: float) -> None:
        while not _accepts(self.ports[broker]):
            if self._processes[broker].poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"broker {broker} did not start:\n{self._log(broker).read_text()[-2000:]}")
            time.sleep(0.1)

    def _start(self, broker: int) -> None:
        data = self.directory / f"data-{broker}"
        data.mkdir(parents=True, exist_ok=True)
        factor = min(3, len(self.ports))
        settings = {
            "broker.id": broker,
            "listeners": f"PLAINTEXT://{HOST}:{self.ports[broker]}{self._more_listeners}",
            "log.dirs": data,
            "zookeeper.connect": self._zookeeper.hosts,
            "default.replication.factor": factor,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": min(2, factor),
            "group.initial.rebalance.delay.ms": 0,
            **self._settings,
        }
        config = self.directory / f"broker-{broker}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        heap = [f"-Xms{self._heap}", f"-Xmx{self._heap}", "-server", *_GARBAGE_COLLECTION]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        with self._log(broker).open("ab") as log:
            self._processes[broker] = subprocess.Popen(
                ["java", *heap, quiet, "-cp", f"{jars()}/*", "kafka.Kafka", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )

    def _log(self, broker: int) -> Path:
        return self.directory / f"broker-{broker}.log"


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((HOST, port)) == 0
