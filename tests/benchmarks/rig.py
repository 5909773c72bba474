"""Our brokers as processes of their own, with one instance whose limits are charged and never reached."""

from __future__ import annotations

import time

from kazoo.client import KazooClient

from quota.contracts.instance import Limits
from tests.benchmarks.server import Server
from tests.support.ports import free_port
from tests.support.processes import broker_process, secrets_file
from tests.support.specs import Specs
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer

_PLENTY = 100 * 2**30


class Rig(Server):
    """ZooKeeper, brokers, a tenant. Everything is measured through the tenant's port: tenancy, quota and meter are on."""

    name = "sluice"

    def __init__(self, settings: dict[str, object] | None = None, *, brokers: int = 1) -> None:
        super().__init__(brokers)
        self._zookeeper = ZooKeeperServer(self.directory / "zookeeper", free_port())
        factor = min(3, brokers)
        defaults = {"default_replication_factor": factor, "offsets_topic_replication_factor": factor}
        secrets = secrets_file(self.directory)
        self._processes = {
            broker: broker_process(
                self.directory,
                broker,
                zookeeper=self._zookeeper.hosts,
                secrets=secrets,
                settings={**defaults, **(settings or {})},
            )
            for broker in self.brokers
        }
        self._addresses: dict[int, tuple[str, int]] = {}
        self.accepts_after_s = 0.0

    def start(self) -> None:
        self._zookeeper.start()
        began = time.monotonic()
        for process in self._processes.values():
            process.start()
        for process in self._processes.values():
            wait_for(process.accepts, 30, "a broker")
        self.accepts_after_s = time.monotonic() - began
        client = KazooClient(self._zookeeper.hosts)
        client.start(timeout=20)
        wait_for(lambda: len(client.get_children("/brokers/ids")) == len(self.brokers), 20, "the brokers to register")
        tenant = Specs(client).create(list(self.brokers), limits=Limits(_PLENTY, _PLENTY, _PLENTY, 1000, 100_000))
        client.stop()
        client.close()
        self._addresses = tenant.addresses

    def stop(self) -> None:
        for process in self._processes.values():
            process.stop()
        self._zookeeper.stop()

    def pid(self, broker: int = 1) -> int:
        return self._processes[broker].pid

    def address(self, broker: int = 1) -> tuple[str, int]:
        return self._addresses[broker]


class FullRig(Rig):
    """The same with every record checked (`record_validation = "full"`)."""

    name = "sluice-full"

    def __init__(self, settings: dict[str, object] | None = None, *, brokers: int = 1) -> None:
        super().__init__({"record_validation": "full", **(settings or {})}, brokers=brokers)
