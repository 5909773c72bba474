"""Apache Kafka's MirrorMaker 2 as a process, to compare with: its jars by Maven once, in its mode without a Connect cluster.

maker = MirrorMaker(folder, source="127.0.0.1:9092", target="127.0.0.1:9192", name="old", topics="orders")
maker.start()                         # copies orders to old.orders
maker.stop()

It copies messages and nothing else: heartbeats, checkpoints of groups, and configurations are off.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from controlplane.stack.process import dies_with_parent
from tests.support.apache_kafka import ROOT, VERSION, fetched

JARS = ROOT / "var" / "mirror-maker" / VERSION
_POM = Path(__file__).with_suffix(".pom.xml")
_STOP_WITHIN_S = 30
_ONE_REPLICA = (
    "replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset-syncs.topic.replication.factor",
    "offset.storage.replication.factor",
    "status.storage.replication.factor",
    "config.storage.replication.factor",
)


def jars() -> Path:
    """The folder of the jars. Raises NotAvailableError."""
    return fetched(_POM, JARS)


def properties(source: str, target: str, name: str, topics: str, tasks: int) -> dict[str, object]:
    """Of one direction, from the cluster of this name to one that is called by it with `-target` behind."""
    to = f"{name}-target"
    return {
        "clusters": f"{name}, {to}",
        f"{name}.bootstrap.servers": source,
        f"{to}.bootstrap.servers": target,
        f"{name}->{to}.enabled": "true",
        f"{name}->{to}.topics": topics,
        f"{to}->{name}.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "sync.topic.configs.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "tasks.max": tasks,
        **dict.fromkeys(_ONE_REPLICA, 1),
    }


class MirrorMaker:
    """One process; `name` is the source's, and the prefix of the topics that it makes. Its log is in `folder`."""

    def __init__(self, folder: Path, *, source: str, target: str, name: str, topics: str, tasks: int = 4) -> None:
        self._config = folder / f"{name}.properties"
        self._log = folder / f"{name}.log"
        rows = properties(source, target, name, topics, tasks)
        self._config.write_text("".join(f"{key}={value}\n" for key, value in rows.items()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the process, which has been started."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """It takes some seconds until it copies. Raises NotAvailableError."""
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["java", "-Xms1g", "-Xmx1g", "-server", quiet, "-cp", f"{jars()}/*", main, str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),  # noqa: PLW1509 - it only calls prctl
            )

    def check(self) -> None:
        """Raises AssertionError, with the end of its log, where it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"MirrorMaker has ended:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """In order; or by force, when it takes too long."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
