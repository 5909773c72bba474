"""A simulated cluster whose instance has ACLs and users: a specification of version 2, with nodes beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dataplane.doors import Create, SetData
from dataplane.handlers.context import RequestContext
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.schema import message_info
from dataplane.tenancy.session import Session
from quota.contracts.acls import AclSet
from quota.contracts.apart import acls_from_json, acls_path, nodes_of, users_from_json, users_path
from quota.contracts.change import NEW_CHANGE_PATH, Change
from quota.contracts.identity import ANYBODY
from quota.contracts.instance import InstanceSpec
from quota.contracts.namespace import ClusterNames
from quota.contracts.users import UserSet
from tests.simulation.cluster import INSTANCE, SimulatedCluster

SPEC = f"/sluice/instances/{INSTANCE}"


def cluster_with_access(seed: int) -> SimulatedCluster:
    """Up, and every broker has read the nodes."""
    cluster = SimulatedCluster(seed=seed)
    cluster.until(cluster.up)
    spec = InstanceSpec.from_json(cluster.zookeeper.tree.node(SPEC).data)
    nodes = nodes_of(replace(spec, generation=spec.generation + 1))
    cluster.zookeeper.write([Create(path) for path in ("/sluice/whitelists", "/sluice/acls", "/sluice/users")])
    cluster.zookeeper.write([SetData(SPEC, nodes.pop(SPEC)), *(Create(*node) for node in nodes.items())])
    told(cluster)
    cluster.until(lambda: all(spec.acls is not None for spec in specs(cluster)))
    return cluster


def told(cluster: SimulatedCluster) -> None:
    """The brokers hear that something has changed."""
    cluster.zookeeper.write([Create(NEW_CHANGE_PATH, Change(INSTANCE).to_json(), sequential=True)])


def specs(cluster: SimulatedCluster) -> list[InstanceSpec]:
    """As each broker has it."""
    return [broker.registry.get(INSTANCE).spec for broker in cluster.brokers.values()]


def acls_in(cluster: SimulatedCluster) -> AclSet:
    """As they stand in ZooKeeper."""
    node = cluster.zookeeper.tree.find(acls_path(INSTANCE))
    return acls_from_json(None if node is None else node.data)


def users_in(cluster: SimulatedCluster) -> UserSet:
    """As they stand in ZooKeeper."""
    node = cluster.zookeeper.tree.find(users_path(INSTANCE))
    return users_from_json(None if node is None else node.data)


def call(cluster: SimulatedCluster, request: Any, version: int = 3, broker: int = 1) -> Any:
    """The answer to the tenant."""
    answer = cluster.client.call(broker, request, version)
    cluster.until(lambda: answer.done, 30)
    return answer.result()


def call_inside(cluster: SimulatedCluster, request: Any, version: int = 3) -> Any:
    """The answer to an operator, on the cluster's own listener."""
    broker: Any = cluster.brokers[1]
    row = HANDLERS[message_info(type(request)).api_key]
    session = Session(None, "internal", ClusterNames(), "10.0.1.1", authenticated=True, identity=ANYBODY)
    return cluster.run(row.handle(RequestContext(broker, session, row.api.key, version, 1, None, 100), request))
