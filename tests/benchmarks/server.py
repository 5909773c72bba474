"""What a benchmark may ask of a cluster under test, whoever made it: ours (`rig`) and Apache Kafka's (`apache`)."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic

from tests.benchmarks.warm import WarmPages

_TICKS = os.sysconf("SC_CLK_TCK")


class Server(ABC):
    """Brokers with their logs on tmpfs, where there is one and no `parent` is said; a context manager. Ids begin with 1."""

    name = ""

    def __init__(self, brokers: int, parent: Path | None = None) -> None:
        shm = Path("/dev/shm")
        self.on_tmpfs = parent is None and shm.is_dir()
        self.directory = Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=shm if self.on_tmpfs else parent))
        self.brokers = tuple(range(1, brokers + 1))

    @abstractmethod
    def start(self) -> None:
        """Start everything; returns when clients can connect."""

    @abstractmethod
    def stop(self) -> None:
        """Stop what was started."""

    @abstractmethod
    def pid(self, broker: int = 1) -> int:
        """Of a broker's process."""

    @property
    @abstractmethod
    def zookeeper(self) -> str:
        """Where the cluster's ZooKeeper is."""

    @abstractmethod
    def kill(self, broker: int) -> None:
        """SIGKILL; the data stays."""

    @abstractmethod
    def restart(self, broker: int) -> None:
        """Start one that was killed, on the data that it has; returns when clients can connect."""

    @abstractmethod
    def address(self, broker: int = 1) -> tuple[str, int]:
        """Where clients reach a broker."""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(f"{host}:{port}" for host, port in map(self.address, self.brokers))

    def topic(self, name: str, partitions: int, replicas: int = 1) -> None:
        """Create a topic and wait until clients see its leaders."""
        create_topic(self.bootstrap, name, partitions, replicas)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until its files have gone: their pages are the next round's."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.delete_topics([name]).values():
            future.result(20)
        deadline = time.monotonic() + 60
        while list(self.directory.glob(f"data-*/*{name}-*")) and time.monotonic() < deadline:
            time.sleep(0.1)

    def keep_pages_warm(self, size: int) -> None:
        """See `tests.benchmarks.warm`."""
        WarmPages(self.directory, size).write()

    def cpu_s(self) -> float:
        """CPU seconds that the brokers have used, in user and kernel mode, together."""
        total = 0
        for broker in self.brokers:
            fields = Path(f"/proc/{self.pid(broker)}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / _TICKS

    def resident_mib(self) -> float:
        """Memory that the first broker holds."""
        return int(Path(f"/proc/{self.pid()}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def create_topic(bootstrap: str, name: str, partitions: int, replicas: int = 1, *, on: Sequence[int] = ()) -> None:
    """Create a topic, all of it `on` these brokers where they are given, and wait until clients see its leaders."""
    new = (
        NewTopic(name, partitions, replica_assignment=[[*on]] * partitions)
        if on
        else NewTopic(name, partitions, replicas)
    )
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([new]).values():
        future.result(20)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = admin.list_topics(name, timeout=10).topics[name]
        if len(found.partitions) == partitions and all(p.leader > 0 for p in found.partitions.values()):
            return
        time.sleep(0.05)
    raise TimeoutError(f"{name} has no leaders")
