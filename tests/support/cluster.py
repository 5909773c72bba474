"""A whole data plane for tests: a real ZooKeeper, three broker processes, two masters, tenants written by contract.

cluster.brokers[2].kill(); cluster.restart(2)
cluster.heal()                               # everything runs and every partition has all its replicas in sync
ProcessCluster(folder, security=InternalSecurity.SSL)  # all of them speak TLS to each other
tenant = cluster.tenant(limits=Limits(…))    # an instance of its own; see `tests.support.specs`
cluster.state("k3v9x2qa.orders", 0)          # {"leader": …, "isr": […]} as ZooKeeper has it
"""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from kazoo.exceptions import NoNodeError

from dataplane.coordination.placement import partition_of
from dataplane.protocol.messages.discovery import DescribeClusterRequest, FindCoordinatorRequest
from quota.contracts.identity import OPERATOR, Keys
from quota.contracts.internal_security import InternalSecurity
from tests.support.inside import Certificates
from tests.support.ports import free_port
from tests.support.processes import HOST, SECRET, ServerProcess, broker_process, master_process, secrets_file
from tests.support.specs import Specs, Tenant
from tests.support.waiting import wait_for
from tests.support.wire import Wire
from tests.support.zookeeper import ZooKeeperServer, operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

BROKERS = (1, 2, 3)
MASTERS = (1, 2)
LEASE_MS = 4_000  # a new master learns for one lease: short, so that tests need not wait long


class ProcessCluster:
    """A context manager: started whole, stopped by pid."""

    is_secured = False  # brokers and masters are reached over TLS

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        racks: Mapping[int, str] | None = None,
        security: InternalSecurity = InternalSecurity.SASL_PLAINTEXT,
        **members: object,
    ) -> None:
        """`members`: further ones of each broker's table [broker]."""
        self.certificates = Certificates(folder / "tls")
        self.is_secured = security.has_tls
        secrets = secrets_file(folder)
        self._zookeeper = ZooKeeperServer(folder / "zookeeper", free_port())
        hosts = self._zookeeper.hosts
        self.brokers = {
            n: broker_process(
                folder,
                n,
                zookeeper=hosts,
                secrets=secrets,
                settings=settings,
                rack=(racks or {}).get(n, ""),
                **self.securing(f"broker-{n}", security),
                **members,
            )
            for n in BROKERS
        }
        self.masters = {
            n: master_process(
                folder,
                n,
                zookeeper=hosts,
                secrets=secrets,
                lease_ms=LEASE_MS,
                **self.securing(f"master-{n}", security),
            )
            for n in MASTERS
        }
        self.zookeeper = operator(hosts, timeout=10)
        self.specs = Specs(self.zookeeper)
        self.tenants: list[Tenant] = []

    def __enter__(self) -> Self:
        self._zookeeper.start()
        try:
            self.zookeeper.start(timeout=20)
            for server in (*self.brokers.values(), *self.masters.values()):
                server.start()
            self.heal()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for server in (*self.masters.values(), *self.brokers.values()):
            server.kill()
        self.zookeeper.stop()
        self.zookeeper.close()
        self._zookeeper.stop()

    def securing(self, name: str, security: InternalSecurity) -> dict[str, object]:
        """What the configuration of a process says of it."""
        if not security.has_tls:
            return {}
        return {"internal_security": str(security), "tls_folder": str(self.certificates.folder(name))}

    # --- what runs ----------------------------------------------------------------------------------------------------

    def heal(self) -> None:
        """Start what is dead; wait until brokers are registered, replicas in sync, and a master active."""
        for server in (*self.brokers.values(), *self.masters.values()):
            if not server.is_running:
                server.start()
        wait_for(lambda: all(server.accepts() for server in self.brokers.values()), 60, "the brokers")
        wait_for(lambda: self.registered() == list(BROKERS), 20, "the registrations")
        wait_for(self._is_governed, 20, "a controller that has decided over who died before it")
        wait_for(lambda: not self.behind(), 60, "all replicas to be in sync")
        wait_for(self._is_steered, 30, "a master that hears of all brokers")
        for tenant in self.tenants:
            wait_for(lambda: self.specs.is_applied(tenant), 20, f"{tenant.id}")  # noqa: B023 - called at once

    def _is_governed(self) -> bool:
        """A controller says who it is only after its first decisions, by which replicas may leave the ISR."""
        controller = self.controller()
        return controller is not None and all(
            self.controller_according_to(server) == controller for server in self.brokers.values()
        )

    @contextmanager
    def wire(self, broker: ServerProcess, name: str = "operator") -> Iterator[Wire]:
        """A connection to a broker's internal listener, as one of the cluster's identities."""
        context = self.certificates.context(name) if self.is_secured else None
        with Wire((HOST, broker.ports["internal"]), context=context) as wire:
            assert self.is_secured or wire.log_in(SECRET, name) == 0
            yield wire

    def controller_according_to(self, server: ServerProcess) -> int:
        """Whom a broker takes for the controller."""
        with self.wire(server) as wire:
            return int(wire.call(DescribeClusterRequest(), 0).controller_id)

    def _is_steered(self) -> bool:
        return list(BROKERS) == self.master_says("/v1/instances")["brokers"]

    def restart(self, broker: int) -> None:
        """Start a dead broker and wait until it is a member again."""
        self.brokers[broker].start()
        wait_for(lambda: broker in self.registered(), 20, f"broker {broker} to register")

    def registered(self) -> list[int]:
        return sorted(int(name) for name in self.zookeeper.get_children("/brokers/ids"))

    def controller(self) -> int | None:
        document = self.read("/controller")
        return None if document is None else document["brokerid"]

    def master(self) -> int | None:
        document = self.read("/sluice/master")
        return None if document is None else document["id"]

    def master_says(self, path: str) -> dict[str, Any]:
        """The active master's read API."""
        master = self.master()
        if master is None:
            raise LookupError("no master is active")
        url = f"{'https' if self.is_secured else 'http'}://{HOST}:{self.masters[master].ports['http']}{path}"
        headers = {} if self.is_secured else {"Authorization": Keys(SECRET).bearer(OPERATOR)}
        context = self.certificates.context("operator") if self.is_secured else None
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5, context=context) as answer:
            return dict(json.load(answer))

    def other_brokers(self, broker: int) -> list[int]:
        return [other for other in BROKERS if other != broker]

    # --- partitions ---------------------------------------------------------------------------------------------------

    def read(self, path: str) -> Any:
        """The JSON of a node; None where there is none."""
        try:
            return json.loads(self.zookeeper.get(path)[0])
        except NoNodeError:
            return None

    def state(self, topic: str, partition: int) -> dict[str, Any]:
        found = self.read(f"/brokers/topics/{topic}/partitions/{partition}/state")
        return found if found is not None else {"leader": -1, "isr": []}

    def leader(self, tenant: Tenant, topic: str, partition: int = 0) -> int:
        return int(self.state(f"{tenant.key}.{topic}", partition)["leader"])

    def behind(self) -> list[str]:
        """Partitions without a leader, or with replicas out of sync."""
        found = []
        for topic in self.zookeeper.get_children("/brokers/topics"):
            assignment = self.read(f"/brokers/topics/{topic}")
            for partition, replicas in (assignment or {"partitions": {}})["partitions"].items():
                state = self.state(topic, int(partition))
                if state["leader"] < 0 or sorted(state["isr"]) != sorted(replicas):
                    found.append(f"{topic}-{partition}")
        return found

    def coordinator(self, tenant: Tenant, group: str) -> int:
        """The broker that leads the group's partition of __consumer_offsets."""
        topic = "__consumer_offsets"
        count = len(self.read(f"/brokers/topics/{topic}")["partitions"])
        return int(self.state(topic, partition_of(f"{tenant.key}.{group}", count))["leader"])

    # --- tenants ------------------------------------------------------------------------------------------------------

    def tenant(self, **members: Any) -> Tenant:
        """A new instance on all brokers; see `Specs.create`."""
        tenant = self.specs.create(BROKERS, **members)
        self.tenants.append(tenant)
        return tenant

    def forget(self, tenant: Tenant) -> None:
        """Close its listeners, and ask for its topics to be deleted; what fails of that is of no consequence."""
        self.specs.remove(tenant)
        self.tenants.remove(tenant)
        for topic in self.zookeeper.get_children("/brokers/topics"):
            if topic.startswith(f"{tenant.key}."):
                self.zookeeper.create(f"/admin/delete_topics/{topic}", makepath=True)

    def spread_coordinators(self) -> None:
        """Have each partition of __consumer_offsets led by its preferred replica: after kills one broker may lead them all."""
        node, topic = "/admin/preferred_replica_election", "__consumer_offsets"
        count = len(self.read(f"/brokers/topics/{topic}")["partitions"])
        asked = {"version": 1, "partitions": [{"topic": topic, "partition": index} for index in range(count)]}
        self.zookeeper.create(node, json.dumps(asked).encode(), makepath=True)
        wait_for(lambda: not self.zookeeper.exists(node), 20, "the election of preferred leaders")

    def make_coordinators(self) -> None:
        """Have __consumer_offsets made, as the first client of a cluster does."""
        tenant = self.tenant()
        request = FindCoordinatorRequest(coordinator_keys=("first",))

        def found() -> bool:
            with Wire(tenant.addresses[1]) as wire:
                return bool(wire.call(request, 4).coordinators[0].error_code == 0)

        wait_for(found, 20, "a coordinator")
        self.forget(tenant)

    def logs(self) -> str:
        """The ends of all logs, for a failure's report."""
        servers = (*self.brokers.values(), *self.masters.values())
        return os.linesep.join(f"--- {server.name}\n{server.tail()}" for server in servers)
