"""What stands in ZooKeeper, in our own words: brokers, instance specs, what brokers have applied, the master.

::

    /brokers/ids/<id>           Kafka's own registration; a broker's internal address      read
    /sluice/instances/<id>      quota.contracts.instance                                   written here
    /sluice/changes/change-<n>  {"instance": id}, one per write: what brokers watch        written here
    /sluice/applied/<broker>    quota.contracts.applied                                    read
    /sluice/master              {"id", "report", "http", "epoch"}                          read

A spec and its change node are written in one transaction: no broker can miss a write, whoever dies. A spec is only
ever replaced by one of a higher generation, guarded by the node's version. The throttle rules in it are the cluster's
truth, as topics are: tenants write them by Kafka's protocol too. A new generation takes over the rules it finds.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controlplane.clusters.zookeeper import Create, Delete, Put, Tree, VersionMismatch
from controlplane.core.errors import ConcurrentChange, NotFound
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from quota.contracts.rules import ThrottleRule

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
        stored = None if node is None else _legible(node[0])
        if stored is not None and stored.generation >= spec.generation:
            return
        data = (spec if stored is None else spec.keeping(stored)).to_json()
        write = Create(path, data) if node is None else Put(path, data, node[1])
        try:
            tree.write([write, _change(spec.id)])
        except VersionMismatch:
            continue
        return
    raise ConcurrentChange(f"instance {spec.id} is being changed by others")


def rules_write(
    tree: Tree, instance_id: str, decide: Callable[[Sequence[ThrottleRule]], Sequence[ThrottleRule]]
) -> tuple[ThrottleRule, ...]:
    """Put in force, and return, what `decide` makes of an instance's throttle rules; asked again if others were faster.

    Raises NotFound where brokers have not been told of the instance, ConcurrentChange, and what `decide` raises.
    """
    for _ in range(TRIES):
        stored = spec_read(tree, instance_id)
        if stored is None:
            raise NotFound(f"brokers do not know instance {instance_id}")
        spec, version = stored
        rules = spec.rules.changed(decide(spec.rules.items))
        data = replace(spec, rules=rules).to_json()
        try:
            tree.write([Put(f"{INSTANCES_PATH}/{instance_id}", data, version), _change(instance_id)])
        except VersionMismatch:
            continue
        return rules.items
    raise ConcurrentChange(f"instance {instance_id} is being changed by others")


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


def _legible(data: bytes) -> InstanceSpec | None:
    """A stored spec; None for one that cannot be read, so that a good one replaces it."""
    try:
        return InstanceSpec.from_json(data)
    except ContractError:
        return None


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
