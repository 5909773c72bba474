"""Apache Kafka's brokers, under the same clients, on the same kind of file system."""

from __future__ import annotations

import time
from pathlib import Path

from tests.benchmarks.server import Server
from tests.support.apache_kafka import HOST, ApacheKafka, jars


class ApacheRig(Server):
    """Kafka 3.9.2 with a heap of 1 GiB and its own start script's garbage collector."""

    name = "apache"

    def __init__(
        self, settings: dict[str, object] | None = None, *, brokers: int = 1, parent: Path | None = None
    ) -> None:
        super().__init__(brokers, parent)
        defaults = {"log.segment.delete.delay.ms": 0, "file.delete.delay.ms": 0}
        self._kafka = ApacheKafka(
            self.directory, brokers=brokers, first_id=1, settings={**defaults, **(settings or {})}
        )
        self.accepts_after_s = 0.0

    def start(self) -> None:
        jars()  # fetched before the clock starts
        began = time.monotonic()
        self._kafka.__enter__()
        self.accepts_after_s = time.monotonic() - began  # with its ZooKeeper, which takes about half a second

    def stop(self) -> None:
        self._kafka.__exit__()

    def pid(self, broker: int = 1) -> int:
        return self._kafka.pid(broker)

    @property
    def zookeeper(self) -> str:
        return self._kafka.zookeeper

    def kill(self, broker: int) -> None:
        self._kafka.kill(broker)

    def restart(self, broker: int) -> None:
        self._kafka.restart(broker)

    def address(self, broker: int = 1) -> tuple[str, int]:
        return HOST, self._kafka.ports[broker]
