"""Two instances on a simulated cluster of two brokers, and connections to them on virtual time.

A has addresses on the broker that is the controller, and on no other, so that there is a broker that it must not hear of.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dataplane.doors import Create
from quota.contracts.apart import nodes_of
from quota.contracts.change import NEW_CHANGE_PATH, Change
from quota.contracts.instance import (
    ACLS_PATH,
    RULES_PATH,
    USERS_PATH,
    WHITELISTS_PATH,
    Endpoint,
    InstanceSpec,
    InstanceState,
    Limits,
)
from tests.leaks.client import Address, Client
from tests.leaks.world import Sides, routes_of
from tests.simulation.cluster import SETTINGS, SimulatedCluster

PATIENCE_S = 60.0
USUAL, APART = "10.0.2.1", "10.66.77.88"
A, B = "ins-k7hq2xna", "ins-w9zt4mfb"
PORTS = {A: (9301, 9302), B: (9401, 9402)}
_QUICK = replace(
    SETTINGS,
    default_replication_factor=1,
    offsets_topic_replication_factor=1,
    transaction_state_log_replication_factor=1,
    offsets_topic_num_partitions=7,  # with an even number two instances' groups of one name might never meet on one broker
    group_initial_rebalance_delay_ms=0,
    controller_mutation_rate=100_000,
)


def two_instances(seed: int = 5, *, survives: tuple[type[Exception], ...] = ()) -> tuple[SimulatedCluster, Sides]:
    """Both are served when this returns. `survives`: errors that end a connection, as with a real loop, and not the run."""
    cluster = SimulatedCluster(seed, brokers=2, settings=_QUICK)
    cluster.network.survives = lambda error: isinstance(error, survives)
    cluster.until(cluster.up)
    cluster.until(lambda: cluster.controller() > 0)
    cluster.zookeeper.write([Create(path) for path in (WHITELISTS_PATH, RULES_PATH, ACLS_PATH, USERS_PATH)])
    served = {A: (cluster.controller(),), B: tuple(cluster.ids)}
    for instance, brokers in served.items():
        _write(cluster, _spec(cluster, instance, brokers))
    cluster.until(lambda: all(b.registry.get(name) for b in cluster.brokers.values() for name in served))
    cluster.network.run_for(1.0)
    network = VirtualNetwork(cluster)
    host = cluster.host(cluster.controller())
    clients = [Client(network, (host, PORTS[name][0])) for name in served]
    return cluster, Sides(*clients, login=(host, PORTS[A][1]), inside=(("a data directory", b"/data"),))


def _spec(cluster: SimulatedCluster, instance: str, brokers: tuple[int, ...]) -> InstanceSpec:
    plain, sasl = (
        {broker: Endpoint((cluster.host(broker), port), (cluster.host(broker), port)) for broker in brokers}
        for port in PORTS[instance]
    )
    return InstanceSpec(
        id=instance,
        generation=1,
        state=InstanceState.RUNNING,
        limits=Limits(None, None, None, None),
        whitelist=("0.0.0.0/0",),
        routes=routes_of(plain, sasl),
        brokers=brokers,
    )


def _write(cluster: SimulatedCluster, spec: InstanceSpec) -> None:
    nodes = [Create(path, data) for path, data in nodes_of(spec).items()]
    cluster.zookeeper.write([*nodes, Create(NEW_CHANGE_PATH, Change(spec.id).to_json(), sequential=True)])


class VirtualNetwork:
    """A `client.Network`."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._network = cluster.network

    def open(self, address: Address, *, apart: bool) -> VirtualLine:
        return VirtualLine(self._network, address, APART if apart else USUAL)

    def pause(self, seconds: float) -> None:
        self._network.run_for(seconds)

    def now(self) -> float:
        return float(self._network.clock.seconds)


class VirtualLine:
    """A `client.Line`."""

    def __init__(self, network: Any, address: Address, source: str) -> None:
        self._network, self._end = network, _End()
        network.loop(source).connect(*address, self._end.opened, self._end.closed)
        network.run_until(lambda: self._end.connection is not None or self._end.is_closed, PATIENCE_S)

    def send(self, data: bytes) -> None:
        if not self._end.is_closed:
            self._end.connection.send([data])

    def frame(self) -> bytes | None:
        self._network.run_until(lambda: self._end.frames or self._end.is_closed, PATIENCE_S)
        return self._end.frames.pop(0) if self._end.frames else None

    def close(self) -> None:
        if not self._end.is_closed:
            self._end.connection.close()


class _End:
    """What the loop calls."""

    def __init__(self) -> None:
        self.connection: Any = None
        self.frames: list[bytes] = []
        self.is_closed = False

    def opened(self, connection: Any) -> _End:
        self.connection = connection
        return self

    def frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))

    def closed(self, _reason: str) -> None:
        self.is_closed = True
