"""The proposal of an instance in ZooKeeper, and what brokers have seen of it (`quota.contracts.proposals`).

Brokers write children of the proposal's node; a proposal goes with them, in one transaction. One that a broker was faster with
makes the transaction fail, and it is tried again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controlplane.clusters import coordination
from controlplane.clusters.zookeeper import Check, Create, VersionMismatch
from controlplane.core.errors import ConcurrentChange, Invalid, NotFound
from quota.contracts.apart import LARGEST_WRITE, acls_path, spec_path
from quota.contracts.instance import ACLS_PATH, ContractError
from quota.contracts.proposals import PROPOSALS_PATH, Findings, Proposal, findings_path, proposal_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controlplane.clusters.zookeeper import Tree, Write
    from quota.contracts.instance import InstanceSpec

LOG = logging.getLogger(__name__)
TRIES = 5


def proposal_read(tree: Tree, instance_id: str) -> Proposal | None:
    """That of an instance; None: there is none, or none that can be read. Raises ClusterUnavailable."""
    node = tree.get(proposal_path(instance_id))
    return None if node is None else _legible(instance_id, node[0])


def findings_read(tree: Tree, instance_id: str, proposal_id: str) -> dict[int, Findings]:
    """What brokers have seen of this proposal, by broker. Raises ClusterUnavailable."""
    brokers = [int(name) for name in tree.children(proposal_path(instance_id)) if name.isdigit()]
    nodes = tree.get_many([findings_path(instance_id, broker) for broker in brokers])
    found = {}
    for broker, node in zip(brokers, nodes, strict=True):
        try:
            seen = None if node is None else Findings.from_json(node[0])
        except ContractError as error:
            LOG.warning("findings of broker %s about %s: %s", broker, instance_id, error)
            continue
        if seen is not None and seen.proposal == proposal_id:
            found[broker] = seen
    return found


def proposal_write(tree: Tree, instance_id: str, proposal: Proposal) -> None:
    """Have brokers judge it, in place of the one before. Raises NotFound where they do not know the instance."""
    tree.ensure(PROPOSALS_PATH)
    for _ in range(TRIES):
        spec = tree.get(spec_path(instance_id))
        if spec is None:
            raise NotFound(f"brokers do not know instance {instance_id}")
        create = Create(proposal_path(instance_id), proposal.to_json())
        writes: list[Write] = [
            Check(spec_path(instance_id), spec[1]),
            *coordination.proposal_removal(tree, instance_id),
            create,
        ]
        if _is_written(tree, instance_id, writes):
            return
    raise ConcurrentChange(f"the proposal of {instance_id} is being changed by others")


def proposal_remove(tree: Tree, instance_id: str, proposal_id: str | None = None) -> bool:
    """Nobody judges it any more (None: whichever it is); False: it was not there. Raises ConcurrentChange."""
    for _ in range(TRIES):
        node = tree.get(proposal_path(instance_id))
        if node is None:
            return False
        there = _legible(instance_id, node[0])
        if proposal_id is not None and (there is None or there.id != proposal_id):
            return False
        if _is_written(tree, instance_id, coordination.proposal_removal(tree, instance_id)):
            return True
    raise ConcurrentChange(f"the proposal of {instance_id} is being changed by others")


def proposal_put_in_force(
    tree: Tree,
    instance_id: str,
    proposal_id: str,
    *,
    spec: InstanceSpec | None,
    acls: Callable[[bytes | None], bytes | None] | None,
) -> None:
    """In one transaction: the specification (None: it stays), what `acls` makes of the ACLs' node, and the proposal's end.

    Raises NotFound where there is no such proposal, Invalid where it is more than ZooKeeper takes, ConcurrentChange, and what
    `acls` raises.
    """
    for _ in range(TRIES):
        head, node = tree.get(spec_path(instance_id)), tree.get(proposal_path(instance_id))
        there = None if node is None else _legible(instance_id, node[0])
        if head is None or there is None or there.id != proposal_id:
            raise NotFound("the instance has no such proposal any more", code="proposal_not_found")
        writes: list[Write] = [Check(spec_path(instance_id), head[1])]
        if spec is not None:
            found = coordination.spec_writes(tree, spec)
            if found is None:  # ZooKeeper is ahead of the database: the reconciler sees to it first
                raise ConcurrentChange(f"instance {instance_id} is being changed by others")
            writes = found
        if acls is not None:
            tree.ensure(ACLS_PATH)
            present = tree.get(acls_path(instance_id))
            data = acls(present[0] if present else None)
            if data is not None:
                writes.append(coordination.written(acls_path(instance_id), data, present))
        _check_size(writes)
        if _is_written(tree, instance_id, [*writes, *coordination.proposal_removal(tree, instance_id)]):
            return
    raise ConcurrentChange(f"instance {instance_id} is being changed by others")


def proposals_ended(tree: Tree, now_ms: int) -> list[tuple[str, str]]:
    """Instance and proposal of those whose time is over. Raises ClusterUnavailable."""
    names = tree.children(PROPOSALS_PATH)
    nodes = tree.get_many([proposal_path(name) for name in names])
    found = [(name, _legible(name, node[0])) for name, node in zip(names, nodes, strict=True) if node is not None]
    return [(name, one.id) for name, one in found if one is not None and one.ends_at_ms <= now_ms]


def _is_written(tree: Tree, instance_id: str, writes: Sequence[Write]) -> bool:
    try:
        tree.write([*writes, coordination.change_of(instance_id)])
    except VersionMismatch:
        return False
    return True


def _check_size(writes: Sequence[Write]) -> None:
    size = sum(len(getattr(item, "data", b"")) for item in writes)
    if size > LARGEST_WRITE:
        raise Invalid(
            f"what is to be written at once takes {size} bytes, and ZooKeeper takes {LARGEST_WRITE}: make the change in parts",
            code="too_large",
        )


def _legible(instance_id: str, data: bytes) -> Proposal | None:
    try:
        return Proposal.from_json(data)
    except ContractError as error:
        LOG.warning("the proposal of %s in ZooKeeper is not legible: %s", instance_id, error)
        return None
