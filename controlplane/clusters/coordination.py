"""What stands in ZooKeeper, in our own words: brokers, instance specs, what brokers have applied, the master.

::

    /brokers/ids/<id>           Kafka's own registration; a broker's internal address      read
    /sluice/instances/<id>      quota.contracts.instance                                   written here
    /sluice/whitelists/<id>     quota.contracts.apart                                      written here
    /sluice/rules/<id>          quota.contracts.rules                                      written here, and by brokers
    /sluice/acls/<id>           quota.contracts.acls                                       likewise
    /sluice/users/<id>          quota.contracts.users                                      likewise
    /sluice/token_issuers/<id>  quota.contracts.token_issuers                              written here
    /sluice/proposals/<id>      quota.contracts.proposals (`proposals`); brokers its children
    /sluice/changes/change-<n>  quota.contracts.change, one per write: brokers watch them  written here, and by brokers
    /sluice/applied/<broker>    quota.contracts.applied                                    read
    /sluice/master              quota.contracts.mastership                                 read

A spec, its whitelists and its change node are written in one transaction: no broker can miss a write, whoever dies. A spec is
only ever replaced by one of a higher generation, guarded by the node's version. The throttle rules, ACLs and users are the
cluster's truth, as topics are: tenants write them by Kafka's protocol too. A spec of version 1 has the rules in it; whoever
replaces it by one of version 2 gives them a node of their own in the same transaction.

What ZooKeeper would not take is refused before it is asked: it would drop the connection, as if it were away.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from controlplane.clusters.zookeeper import Check, Create, Delete, Put, Tree, VersionMismatch
from controlplane.core.errors import ConcurrentChange, Invalid, NotFound
from quota.contracts.addresses import checked, checked_address
from quota.contracts.apart import (
    LARGEST_WRITE,
    beside_paths,
    joined,
    nodes_of,
    rules_node,
    rules_path,
    spec_path,
    whitelists_path,
    whitelists_problem,
    with_rules,
)
from quota.contracts.applied import Applied
from quota.contracts.change import NEW_CHANGE_PATH, Change
from quota.contracts.instance import (
    ACLS_PATH,
    APPLIED_PATH,
    CERTIFICATES_PATH,
    CHANGES_PATH,
    INSTANCES_PATH,
    MASTER_PATH,
    RULES_PATH,
    USERS_PATH,
    WHITELISTS_PATH,
    ContractError,
    InstanceSpec,
)
from quota.contracts.mastership import Mastership
from quota.contracts.proposals import proposal_path
from quota.contracts.rules import RuleSet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.clusters.zookeeper import Write
    from quota.contracts.applied import AppliedInstance
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
class ObservedCluster:
    """What one look at a cluster showed: enough for a round over all its instances."""

    live: tuple[LiveBroker, ...]
    applied: Mapping[int, Applied]  # by broker id, see `applied`

    def applied_of(self, instance_id: str) -> dict[int, AppliedInstance | None]:
        """What each live broker has made of an instance; None for one that does not know it."""
        return {
            broker.id: self.applied[broker.id].instances.get(instance_id) if broker.id in self.applied else None
            for broker in self.live
        }


@dataclass(frozen=True, slots=True)
class MasterAddress:
    """Where the active flow master answers questions, and the epoch of its election."""

    id: int
    http: str  # a URL without a trailing slash
    epoch: int


def observe(tree: Tree) -> ObservedCluster:
    """Brokers that are registered and what they have applied, read once. Raises ClusterUnavailable."""
    return ObservedCluster(tuple(live_brokers(tree)), applied(tree))


def live_brokers(tree: Tree) -> list[LiveBroker]:
    """Registered brokers by id. One whose registration cannot be read is left out, and logged."""
    found = []
    names = tree.children(BROKERS_PATH)
    for name, node in zip(names, tree.get_many([f"{BROKERS_PATH}/{name}" for name in names]), strict=True):
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
        return LiveBroker(broker_id, *checked(document["host"], document["port"]), rack)
    # Kafka leaves host and port empty unless there is a PLAINTEXT listener: then the endpoint says it.
    _, _, address = document["endpoints"][0].partition("://")
    return LiveBroker(broker_id, *checked_address(address), rack)


def spec_read(tree: Tree, instance_id: str) -> tuple[InstanceSpec, int] | None:
    """An instance's spec with its whitelists, and its node's version; rules only of version 1. Raises ContractError."""
    node = tree.get(spec_path(instance_id))
    return None if node is None else (_with_whitelists(tree, node[0]), node[1])


def _with_whitelists(tree: Tree, data: bytes) -> InstanceSpec:
    spec = InstanceSpec.from_json(data)
    if spec.whitelists_of is None:
        return spec
    whitelists = tree.get(whitelists_path(spec.id))
    return joined(spec, whitelists[0] if whitelists else None, None)


def specs_read(tree: Tree, instance_ids: Sequence[str]) -> dict[str, InstanceSpec]:
    """`spec_read` of many with two questions. Those that are not there, or not legible, are absent."""
    found = {}
    heads = tree.get_many([spec_path(name) for name in instance_ids])
    beside = tree.get_many([whitelists_path(name) for name in instance_ids])
    for name, head, whitelists in zip(instance_ids, heads, beside, strict=True):
        if head is None:
            continue
        try:
            spec = InstanceSpec.from_json(head[0])
            found[name] = spec if spec.whitelists_of is None else joined(spec, whitelists and whitelists[0], None)
        except ContractError as error:
            LOG.warning("the spec of %s in ZooKeeper is not legible: %s", name, error)
    return found


def spec_write(tree: Tree, spec: InstanceSpec) -> None:
    """Put a spec and its whitelists in force, unless one of the same or a higher generation stands there already.

    Raises Invalid where they are larger than a node can be, ConcurrentChange when others kept writing.
    """
    for directory in (
        INSTANCES_PATH,
        WHITELISTS_PATH,
        RULES_PATH,
        ACLS_PATH,
        USERS_PATH,
        CERTIFICATES_PATH,
        CHANGES_PATH,
    ):
        tree.ensure(directory)
    for _ in range(TRIES):
        writes = spec_writes(tree, spec)
        if writes is None:
            return
        try:
            tree.write([*writes, change_of(spec.id)])
        except VersionMismatch:
            continue
        return
    raise ConcurrentChange(f"instance {spec.id} is being changed by others")


def spec_writes(tree: Tree, spec: InstanceSpec) -> list[Write] | None:
    """What puts a spec and its whitelists in force; None: one of the same or a higher generation stands there. Raises Invalid."""
    node = tree.get(spec_path(spec.id))
    stored = None if node is None else _legible(tree, node[0])
    if stored is not None and stored.generation >= spec.generation:
        return None
    rules = stored.rules if stored is not None and stored.whitelists_of is None else RuleSet()
    head, *beside = nodes_of(replace(spec, rules=rules)).items()
    _check_size(spec, dict([head, *beside]))
    return [written(*head, node), *(written(path, data, tree.get(path)) for path, data in beside)]


def written(path: str, data: bytes, node: tuple[bytes, int] | None) -> Write:
    """A node made, or replaced as it was read (None: there was none)."""
    return Create(path, data) if node is None else Put(path, data, node[1])


def _check_size(spec: InstanceSpec, nodes: Mapping[str, bytes]) -> None:
    problem = whitelists_problem(spec.whitelist, spec.topic_whitelists)
    size = sum(map(len, nodes.values()))
    if problem is None and size > LARGEST_WRITE:
        problem = f"the specification of an instance may take {LARGEST_WRITE} bytes, not {size}"
    if problem is not None:
        raise Invalid(problem, code="too_large")


def rules_read(tree: Tree, instance_id: str) -> tuple[ThrottleRule, ...]:
    """An instance's throttle rules; none where brokers have not been told of it. Raises ContractError."""
    node = tree.get(spec_path(instance_id))
    if node is None:
        return ()
    there = tree.get(rules_path(instance_id))
    return with_rules(InstanceSpec.from_json(node[0]), there[0] if there else None).rules.items


def rules_write(
    tree: Tree, instance_id: str, decide: Callable[[Sequence[ThrottleRule]], Sequence[ThrottleRule]]
) -> tuple[ThrottleRule, ...]:
    """Put in force, and return, what `decide` makes of an instance's throttle rules; asked again if others were faster.

    Raises NotFound where brokers have not been told of the instance, ConcurrentChange, and what `decide` raises.
    """
    for _ in range(TRIES):
        node = tree.get(spec_path(instance_id))
        if node is None:
            raise NotFound(f"brokers do not know instance {instance_id}")
        spec, version = InstanceSpec.from_json(node[0]), node[1]
        there = None if spec.whitelists_of is None else tree.get(rules_path(instance_id))
        before = with_rules(spec, there[0] if there else None).rules
        rules = before.changed(decide(before.items))
        try:
            tree.write([*_rules_written(replace(spec, rules=rules), version, there), change_of(instance_id)])
        except VersionMismatch:
            continue
        return rules.items
    raise ConcurrentChange(f"instance {instance_id} is being changed by others")


def _rules_written(spec: InstanceSpec, version: int, there: tuple[bytes, int] | None) -> list[Write]:
    path, data = rules_node(spec)
    if path == spec_path(spec.id):
        return [Put(path, data, version)]
    # Of an instance that is taken away meanwhile nothing may be left: hence the check.
    return [Check(spec_path(spec.id), version), written(path, data, there)]


def beside_write(tree: Tree, instance_id: str, path: str, decide: Callable[[bytes | None], bytes | None]) -> None:
    """Put in force what `decide` makes of a node beside an instance's spec (None: there is none, or leave it as it is).

    Asked again if others were faster. Raises NotFound where brokers have not been told of the instance, ConcurrentChange, and
    what `decide` raises.
    """
    for _ in range(TRIES):
        node = tree.get(spec_path(instance_id))
        if node is None:
            raise NotFound(f"brokers do not know instance {instance_id}")
        there = tree.get(path)
        data = decide(there[0] if there else None)
        if data is None:
            return
        if there is None:  # the directory is younger than some specifications
            tree.ensure(path.rpartition("/")[0])
        try:
            # Of an instance that is taken away meanwhile nothing may be left: hence the check.
            tree.write([Check(spec_path(instance_id), node[1]), written(path, data, there), change_of(instance_id)])
        except VersionMismatch:
            continue
        return
    raise ConcurrentChange(f"instance {instance_id} is being changed by others")


def beside_read(tree: Tree, path: str) -> bytes | None:
    """A node beside an instance's spec; None: there is none."""
    node = tree.get(path)
    return node[0] if node is not None else None


def spec_remove(tree: Tree, instance_id: str) -> None:
    """Take a spec away, with all that stands beside it; nothing happens if it is gone."""
    tree.ensure(CHANGES_PATH)
    for _ in range(TRIES):
        node = tree.get(spec_path(instance_id))
        if node is None:
            return
        beside = [(path, tree.get(path)) for path in beside_paths(instance_id)]
        deletes = [Delete(path, found[1]) for path, found in beside if found is not None]
        deletes += proposal_removal(tree, instance_id)
        try:
            tree.write([Delete(spec_path(instance_id), node[1]), *deletes, change_of(instance_id)])
        except VersionMismatch:
            continue
        return
    raise ConcurrentChange(f"instance {instance_id} is being changed by others")


def proposal_removal(tree: Tree, instance_id: str) -> list[Delete]:
    """What takes an instance's proposal away, with what brokers have seen of it (`proposals`); nothing where there is none."""
    path = proposal_path(instance_id)
    node = tree.get(path)
    if node is None:
        return []
    return [*(Delete(f"{path}/{name}") for name in tree.children(path)), Delete(path, node[1])]


def change_of(instance_id: str) -> Create:
    """What tells brokers to read an instance again."""
    return Create(NEW_CHANGE_PATH, Change(instance_id).to_json(), sequence=True)


def _legible(tree: Tree, data: bytes) -> InstanceSpec | None:
    """A stored spec; None for one that cannot be read, or not its whitelists, so that a good one replaces it."""
    try:
        return _with_whitelists(tree, data)
    except ContractError:
        return None


def applied(tree: Tree) -> dict[int, Applied]:
    """What each broker serves, by broker id. A broker that says nothing, or nothing legible, is absent."""
    found = {}
    names = tree.children(APPLIED_PATH)
    for name, node in zip(names, tree.get_many([f"{APPLIED_PATH}/{name}" for name in names]), strict=True):
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
        found = Mastership.from_json(node[0])
    except ContractError as error:
        LOG.warning("%s: %s", MASTER_PATH, error)
        return None
    return MasterAddress(found.id, found.http.rstrip("/"), found.epoch)


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
