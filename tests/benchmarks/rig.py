"""One broker as a process of its own, with one instance, its log on tmpfs where there is one; and its CPU time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from tests.benchmarks.warm import WarmPages
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

INSTANCE = "ins-bench000"
_TICKS = os.sysconf("SC_CLK_TCK")


class Rig:
    """ZooKeeper, a broker, an instance with limits so high that they are charged and never reached."""

    def __init__(self, settings: dict[str, object] | None = None) -> None:
        shm = Path("/dev/shm")
        self.directory = Path(tempfile.mkdtemp(prefix="sluice-bench-", dir=shm if shm.is_dir() else None))
        self.on_tmpfs = shm.is_dir()
        self._settings = settings or {}
        self._zookeeper = ZooKeeperServer(self.directory / "zookeeper", free_port())
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._zookeeper.start()
        self._write_spec()
        self._start_broker()
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        self._zookeeper.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write_spec(self) -> None:
        address = ("127.0.0.1", self.port)
        plenty = 100 * 2**30
        spec = InstanceSpec(
            id=INSTANCE,
            generation=1,
            state=InstanceState.RUNNING,
            limits=Limits(plenty, plenty, plenty, 1000, 1000),
            whitelist=("127.0.0.0/8",),
            routes=(Route("default", {1: Endpoint(address, address)}),),
        )
        client = KazooClient(self._zookeeper.hosts)
        client.start(timeout=20)
        client.create(f"/sluice/instances/{INSTANCE}", spec.to_json(), makepath=True)
        client.create("/sluice/changes", makepath=True)
        client.stop()
        client.close()

    def _start_broker(self) -> None:
        secrets = self.directory / "secrets.json"
        secrets.write_text(json.dumps({"cluster_secret": "bench"}))
        values = "\n".join(f"{name} = {json.dumps(value)}" for name, value in self._settings.items())
        config = self.directory / "broker.toml"
        config.write_text(
            f"""[broker]
id = 1
data_dirs = ["{self.directory}/data"]
internal = "127.0.0.1:{free_port()}"
zookeeper = "{self._zookeeper.hosts}"
secrets_file = "{secrets}"
[settings]
default_replication_factor = 1
offsets_topic_replication_factor = 1
{values}
"""
        )
        with (self.directory / "broker.log").open("wb") as log:
            self._process = subprocess.Popen([sys.executable, "-m", "dataplane", str(config)], stdout=log, stderr=log)

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        while True:
            try:
                if admin.list_topics(timeout=2).brokers:
                    return
            except Exception:  # noqa: BLE001 - not yet
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = (self.directory / "broker.log").read_text()
                    raise RuntimeError(f"the broker does not answer:\n{log[-3000:]}") from None
                time.sleep(0.2)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until its files have gone: their pages are the next round's."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.delete_topics([name]).values():
            future.result(20)
        deadline = time.monotonic() + 20
        while list((self.directory / "data").glob(f"*{name}-*")) and time.monotonic() < deadline:
            time.sleep(0.1)

    def keep_pages_warm(self, size: int) -> None:
        """See `tests.benchmarks.warm`."""
        WarmPages(self.directory, size).write()

    @property
    def pid(self) -> int:
        """Of the broker."""
        assert self._process is not None
        return self._process.pid

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
