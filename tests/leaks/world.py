"""The two sides, and our own cluster of three brokers with an instance for each of them.

A has addresses on two brokers, the controller among them, B on all three.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quota.contracts.instance import RULES_PATH, Endpoint, Route, Security
from tests.leaks.client import Address, Client
from tests.leaks.lines import Sockets
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.ports import free_port
from tests.support.processes import HOST
from tests.support.specs import Tenant

_SETTINGS = {
    "offsets_topic_num_partitions": 10,
    "group_initial_rebalance_delay_ms": 0,
    "controller_mutation_rate": 100_000,
}


@dataclass(frozen=True)
class Sides:
    """Who asks, and whose things are asked for."""

    a: Client
    b: Client
    login: Address | None = None  # where A's users log in by SASL
    inside: tuple[tuple[str, bytes], ...] = ()  # what the cluster knows of itself, and no tenant may be told


def routes_of(plain: Mapping[int, Endpoint], sasl: Mapping[int, Endpoint]) -> tuple[Route, ...]:
    """One where everybody is let in, and one where users log in."""
    mechanisms = ("PLAIN", "SCRAM-SHA-256")
    logins = Route("logins", sasl, Security.SASL_PLAINTEXT.value, mechanisms, allow_plain_in_clear=True)
    return Route("default", plain), logins


@contextmanager
def our_cluster(folder: Path, logs: Path) -> Iterator[Sides]:
    """Real brokers. Raises RuntimeError at the end where one has died or logged a traceback; its log is in `logs` then."""
    with ProcessCluster(folder, _SETTINGS) as cluster:
        cluster.zookeeper.ensure_path(RULES_PATH)  # as the control plane does
        controller = cluster.controller()
        assert controller is not None
        first = (controller, *cluster.other_brokers(controller))
        a, b = (_tenant(cluster, brokers) for brokers in (first[:2], first))
        network = Sockets()
        clients = [Client(network, tenant.addresses[controller]) for tenant in (a, b)]
        login = a.spec.routes[1].endpoints[controller].advertised
        inside = (("a data directory", str(folder).encode()),)
        try:
            yield Sides(*clients, login=login, inside=inside)
        finally:
            for client in clients:
                client.close()
        for broker in (cluster.brokers[number] for number in BROKERS):
            if not broker.is_running or "Traceback (most recent" in broker.log.read_text(errors="replace"):
                logs.mkdir(parents=True, exist_ok=True)
                shutil.copy(broker.log, logs)
                raise RuntimeError(f"{broker.name} has died, or logged a traceback: {logs / broker.log.name}")


def _tenant(cluster: ProcessCluster, brokers: tuple[int, ...]) -> Tenant:
    """With listeners on these brokers, and its replicas there too."""
    tenant = cluster.specs.create(brokers, routes=routes_of(_endpoints(brokers), _endpoints(brokers)))
    cluster.specs.change(tenant, brokers=brokers)
    return tenant


def _endpoints(brokers: tuple[int, ...]) -> dict[int, Endpoint]:
    addresses = {broker: (HOST, free_port()) for broker in brokers}
    return {broker: Endpoint(address, address) for broker, address in addresses.items()}
