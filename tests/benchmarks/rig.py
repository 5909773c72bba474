"""Our brokers as processes of their own, with one instance whose limits are charged and never reached."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from quota.contracts.instance import Limits
from quota.contracts.internal_security import InternalSecurity
from tests.benchmarks.server import Server
from tests.support.inside import Certificates
from tests.support.ports import free_port
from tests.support.processes import HOST, broker_process, secrets_file
from tests.support.specs import Specs, Tenant
from tests.support.waiting import wait_for
from tests.support.zookeeper import ZooKeeperServer, operator

_PLENTY = 100 * 2**30


class Rig(Server):
    """ZooKeeper, brokers, a tenant. Everything is measured through the tenant's port: tenancy, quota and meter are on."""

    name = "sluice"

    def __init__(
        self,
        settings: dict[str, object] | None = None,
        *,
        brokers: int = 1,
        parent: Path | None = None,
        module: str = "dataplane",
    ) -> None:
        super().__init__(brokers, parent)
        self._zookeeper = ZooKeeperServer(self.directory / "zookeeper", free_port())
        factor = min(3, brokers)
        defaults = {
            "default_replication_factor": factor,
            "offsets_topic_replication_factor": factor,
            "transaction_state_log_replication_factor": factor,
            "controller_mutation_rate": 100_000,  # some are about thousands of partitions, none about making them
        }
        secrets = secrets_file(self.directory)
        self._processes = {
            broker: broker_process(
                self.directory,
                broker,
                zookeeper=self._zookeeper.hosts,
                secrets=secrets,
                settings={**defaults, **(settings or {})},
                module=module,
                shared_secret="accepted",  # whoever measures asks as a broker, and as an operator
                **self.members(broker),
            )
            for broker in self.brokers
        }
        self._addresses: dict[int, tuple[str, int]] = {}
        self.accepts_after_s = 0.0

    def members(self, broker: int) -> dict[str, object]:
        """Further ones of a broker's configuration."""
        del broker
        return {}

    def start(self) -> None:
        self._zookeeper.start()
        self.start_brokers()
        self._addresses = self.add_tenant().addresses

    def start_brokers(self) -> None:
        """The brokers alone, on the data that they have."""
        began = time.monotonic()
        for process in self._processes.values():
            process.start()
        for process in self._processes.values():
            wait_for(process.accepts, 30, "a broker")
        self.accepts_after_s = time.monotonic() - began

    def add_tenant(self, **members: Any) -> Tenant:
        """An instance more; `members` as `Specs.create` has them."""
        client = operator(self._zookeeper.hosts)
        client.start(timeout=20)
        wait_for(lambda: len(client.get_children("/brokers/ids")) == len(self.brokers), 20, "the brokers to register")
        limits = Limits(_PLENTY, _PLENTY, _PLENTY, 100_000, 100_000)
        tenant = Specs(client).create(list(self.brokers), **{"limits": limits, **members})
        client.stop()
        client.close()
        return tenant

    def stop_brokers(self) -> None:
        """In order; ZooKeeper and the data stay."""
        for process in self._processes.values():
            process.stop()

    def stop(self) -> None:
        self.stop_brokers()
        self._zookeeper.stop()

    def pid(self, broker: int = 1) -> int:
        return self._processes[broker].pid

    @property
    def zookeeper(self) -> str:
        return self._zookeeper.hosts

    @property
    def zookeeper_pid(self) -> int:
        """Of the process."""
        return self._zookeeper.pid

    def internal_address(self, broker: int = 1) -> tuple[str, int]:
        """Where brokers and operators reach it."""
        return HOST, self._processes[broker].ports["internal"]

    def kill(self, broker: int) -> None:
        self._processes[broker].kill()

    def restart(self, broker: int) -> None:
        self._processes[broker].start()
        wait_for(self._processes[broker].accepts, 30, f"broker {broker}")

    def address(self, broker: int = 1) -> tuple[str, int]:
        return self._addresses[broker]


class FullRig(Rig):
    """The same with every record checked (`record_validation = "full"`)."""

    name = "sluice-full"

    def __init__(self, settings: dict[str, object] | None = None, *, brokers: int = 1) -> None:
        super().__init__({"record_validation": "full", **(settings or {})}, brokers=brokers)


class SecuredRig(Rig):
    """The same whose brokers speak TLS to each other. Clients come by a plain port, so that this is all that is different."""

    name = "sluice-tls"

    def members(self, broker: int) -> dict[str, object]:
        folder = Certificates(self.directory / "tls").folder(f"broker-{broker}")
        return {"internal_security": str(InternalSecurity.SSL), "tls_folder": str(folder)}
