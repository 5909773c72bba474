"""One broker as a process of its own, with one instance, its log on tmpfs where there is one; and its CPU time."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from quota.contracts.instance import Limits
from tests.benchmarks.warm import WarmPages
from tests.support.ports import free_port
from tests.support.processes import broker_process, secrets_file
from tests.support.specs import Specs
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer

BROKER = 1
_TICKS = os.sysconf("SC_CLK_TCK")


class Rig:
    """ZooKeeper, a broker, an instance with limits so high that they are charged and never reached."""

    def __init__(self, settings: dict[str, object] | None = None) -> None:
        shm = Path("/dev/shm")
        self.directory = Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=shm if shm.is_dir() else None))
        self.on_tmpfs = shm.is_dir()
        self._zookeeper = ZooKeeperServer(self.directory / "zookeeper", free_port())
        self._broker = broker_process(
            self.directory,
            BROKER,
            zookeeper=self._zookeeper.hosts,
            secrets=secrets_file(self.directory),
            settings={"default_replication_factor": 1, "offsets_topic_replication_factor": 1, **(settings or {})},
        )
        self.port = 0

    def __enter__(self) -> Self:
        self._zookeeper.start()
        self._broker.start()
        wait_for(self._broker.accepts, 30, "the broker")
        client = KazooClient(self._zookeeper.hosts)
        client.start(timeout=20)
        wait_for(lambda: client.get_children("/brokers/ids"), 20, "the broker to register")
        plenty = 100 * 2**30
        tenant = Specs(client).create([BROKER], limits=Limits(plenty, plenty, plenty, 1000, 1000))
        client.stop()
        client.close()
        self.port = tenant.addresses[BROKER][1]
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.stop()
        self._zookeeper.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        """The instance's address."""
        return f"127.0.0.1:{self.port}"

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until its files have gone: their pages are the next round's."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.delete_topics([name]).values():
            future.result(20)
        deadline = time.monotonic() + 20
        while list((self.directory / f"data-{BROKER}").glob(f"*{name}-*")) and time.monotonic() < deadline:
            time.sleep(0.1)

    def keep_pages_warm(self, size: int) -> None:
        """See `tests.benchmarks.warm`."""
        WarmPages(self.directory, size).write()

    @property
    def pid(self) -> int:
        """Of the broker."""
        return self._broker.pid

    def topic(self, name: str, partitions: int) -> None:
        """Create a topic and wait for its leaders."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            future.result(20)

    def cpu_s(self) -> float:
        """CPU seconds that the broker has used, in user and kernel mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mib(self) -> float:
        """Memory that the broker holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
