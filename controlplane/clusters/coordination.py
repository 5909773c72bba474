"""What stands in ZooKeeper, in our own words: brokers, instance specs, what brokers have applied, the master.

::

    /brokers/ids/<id>           Kafka's own registration; a broker's internal address      read
    /sluice/instances/<id>      quota.contracts.instance                                   written here
    /sluice/changes/change-<n>  {"instance": id}, one per write: what brokers watch        written here
    /sluice/applied/<broker>    quota.contracts.applied                                    read
    /sluice/master              {"id", "report", "http", "epoch"}                          read

A spec and its change node are written in one transaction: no broker can miss a write, whoever dies. A spec is only
ever replaced by one of a higher generation, guarded by the node's version.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from controlplane.clusters.zookeeper import Create, Delete, Put, Tree, VersionMismatch
from controlplane.core.errors import ConcurrentChange
from quota.contracts.applied import Applied
from quota.contracts.instance import (
    APPLIED_PATH,
    CHANGES_PATH,
    INSTANCES_PATH,
    MASTER_PATH,
    ContractError,
    InstanceSpec,
    parse_address,
)

LOG = logging.getLogger(__name__)
BROKERS_PATH = "/brokers/ids"
CHANGES_KEPT = 1000
TRIES = 5


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A registered broker and the address of its internal listener."""

    id: int
    host: str
    port: int
    rack: str = ""


@dataclass(frozen=True, slots=True)
class MasterAddress:
    """The active master."""

    id: int
    http: str  # a URL without a trailing slash
    epoch: int


def live_brokers(tree: Tree) -> list[LiveBroker]:
    """Registered brokers by id. One whose registration cannot be read is left out, and logged."""
    found = []
    for name in tree.children(BROKERS_PATH):
        node = tree.get(f"{BROKERS_PATH}/{name}")
        if node is None:
            continue  # gone since
        try:
            found.append(_broker(int(name), json.loads(node[0])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            LOG.warning("%s/%s is not a broker's registration: %s", BROKERS_PATH, name, error)
    return sorted(found, key=lambda broker: broker.id)


def _broker(broker_id: int, document: dict) -> LiveBroker:  # type: ignore[type-arg]
    rack = document.get("rack") or ""
    if document.get("host") and document.get("port", -1) > 0:
        return LiveBroker(broker_id, document["host"], document["port"], rack)
    # Kafka leaves host and port empty unless there is a PLAINTEXT listener: then the endpoint says it.
    _, _, address = document["endpoints"][0].partition("://")
    host, port = parse_address(address)
    return LiveBroker(broker_id, host, port, rack)


def spec_read(tree: Tree, instance_id: str) -> tuple[InstanceSpec, int] | None:
    """An instance's spec and its node's version. Raises ContractError."""
    node = tree.get(f"{INSTANCES_PATH}/{instance_id}")
    return None if node is None else (InstanceSpec.from_json(node[0]), node[1])


def spec_write(tree: Tree, spec: InstanceSpec) -> None:
    """Put a spec in force, unless one of the same or a higher generation stands there already.

    Raises ConcurrentChange when others kept writing.
    """
    tree.ensure(INSTANCES_PATH)
    tree.ensure(CHANGES_PATH)
    path = f"{INSTANCES_PATH}/{spec.id}"
    for _ in range(TRIES):
        node = tree.get(path)
        if node is not None and _generation(node[0]) >= spec.generation:
            return
        write = Create(path, spec.to_json()) if node is None else Put(path, spec.to_json(), node[1])
        try:
            tree.write([write, _change(spec.id)])
        except VersionMismatch:
            continue
        return
    raise ConcurrentChange(f"instance {spec.id} is being changed by others")


def spec_remove(tree: Tree, instance_id: str) -> None:
    """Take a spec away; nothing happens if it is gone."""
    path = f"{INSTANCES_PATH}/{instance_id}"
    tree.ensure(CHANGES_PATH)
    for _ in range(TRIES):
        node = tree.get(path)
        if node is None:
            return
        try:
            tree.write([Delete(path, node[1]), _change(instance_id)])
        except VersionMismatch:
            continue
        return
    raise ConcurrentChange(f"instance {instance_id} is being changed by others")


def _change(instance_id: str) -> Create:
    return Create(f"{CHANGES_PATH}/change-", json.dumps({"instance": instance_id}).encode(), sequence=True)


def _generation(data: bytes) -> int:
    """Of a stored spec; -1 for one that cannot be read, so that a good one replaces it."""
    try:
        return InstanceSpec.from_json(data).generation
    except ContractError:
        return -1


def applied(tree: Tree) -> dict[int, Applied]:
    """What each broker serves, by broker id. A broker that says nothing, or nothing legible, is absent."""
    found = {}
    for name in tree.children(APPLIED_PATH):
        node = tree.get(f"{APPLIED_PATH}/{name}")
        if node is None:
            continue
        try:
            found[int(name)] = Applied.from_json(node[0])
        except (ContractError, ValueError) as error:
            LOG.warning("%s/%s: %s", APPLIED_PATH, name, error)
    return found


def master(tree: Tree) -> MasterAddress | None:
    """The active master; None while there is none."""
    node = tree.get(MASTER_PATH)
    if node is None:
        return None
    try:
        document = json.loads(node[0])
        return MasterAddress(document["id"], document["http"].rstrip("/"), document["epoch"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        LOG.warning("%s: %s", MASTER_PATH, error)
        return None


def changes_prune(tree: Tree, *, keep: int = CHANGES_KEPT) -> int:
    """Remove the oldest change nodes beyond `keep`; says how many. Brokers that lag re-read every spec anyway."""
    names = tree.children(CHANGES_PATH)
    old = names[: max(0, len(names) - keep)]
    for name in old:
        try:
            tree.write([Delete(f"{CHANGES_PATH}/{name}")])
        except VersionMismatch:
            continue  # another worker prunes too
    return len(old)
