"""The nodes of an instance's users and ACLs: read, and changed by compare-and-set. Brokers write them, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.clusters import coordination, zookeeper
from controlplane.core.errors import Conflict, Unavailable
from controlplane.instances.selectors import instance_running_get
from quota.contracts.apart import (
    acls_from_json,
    acls_path,
    token_issuers_path,
    users_from_json,
    users_path,
    with_access,
)
from quota.contracts.instance import ContractError, UnreadAccessError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation
    from quota.contracts.acls import Acl, AclSet
    from quota.contracts.instance import InstanceSpec
    from quota.contracts.users import User, UserSet


def acls_read(instance: Instance) -> tuple[Acl, ...]:
    """Raises Conflict where they are not legible, ClusterUnavailable."""
    tree = zookeeper.tree(instance.cluster.address)
    return legible_acls(coordination.beside_read(tree, acls_path(instance.id))).items


def users_read(instance: Instance) -> tuple[User, ...]:
    """Raises Conflict where they are not legible, ClusterUnavailable."""
    tree = zookeeper.tree(instance.cluster.address)
    return _legible_users(coordination.beside_read(tree, users_path(instance.id))).items


def spec_read(instance: Instance) -> InstanceSpec:
    """What brokers go by: the specification with all that stands beside it but rules. Raises Conflict, Unavailable."""
    tree = zookeeper.tree(instance.cluster.address)
    try:
        found = coordination.spec_read(tree, instance.id)
        if found is None:
            raise Conflict("brokers have not been told of the instance yet", code="instance_not_running")
        beside = tree.get_many([path(instance.id) for path in (acls_path, users_path, token_issuers_path)])
        return with_access(found[0], *(node[0] if node else None for node in beside))
    except UnreadAccessError as error:
        raise illegible(error) from error
    except ContractError as error:
        raise Unavailable(
            f"brokers cannot read the specification of the instance, so nobody knows who may: {error}",
            code="specification_illegible",
        ) from error


def acls_write(
    organisation: Organisation, instance_id: str, decide: Callable[[Sequence[Acl]], Sequence[Acl]]
) -> Instance:
    """Put in force what `decide` makes of them; asked again if others were faster.

    Raises NotFound, Conflict, ConcurrentChange, ClusterUnavailable, and what `decide` raises.
    """
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)

    def written(data: bytes | None) -> bytes | None:
        before = legible_acls(data)
        after = before.changed(decide(before.items))
        return None if after.items == before.items else after.to_json()

    tree = zookeeper.tree(instance.cluster.address)
    coordination.beside_write(tree, instance.id, acls_path(instance.id), written)
    return instance


def users_write(
    organisation: Organisation, instance_id: str, decide: Callable[[Sequence[User]], Sequence[User]]
) -> Instance:
    """`acls_write` of users."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)

    def written(data: bytes | None) -> bytes | None:
        before = _legible_users(data)
        after = before.changed(decide(before.items))
        return None if after.items == before.items else after.to_json()

    tree = zookeeper.tree(instance.cluster.address)
    coordination.beside_write(tree, instance.id, users_path(instance.id), written)
    return instance


def legible_acls(data: bytes | None) -> AclSet:
    """Those of a node. Raises Conflict."""
    try:
        return acls_from_json(data)
    except UnreadAccessError as error:
        raise illegible(error) from error


def _legible_users(data: bytes | None) -> UserSet:
    try:
        return users_from_json(data)
    except UnreadAccessError as error:
        raise illegible(error) from error


def illegible(error: UnreadAccessError) -> Conflict:
    """What is told of a node that nobody can read; the document itself is not repeated, it may hold verifiers."""
    return Conflict(
        f"nobody may connect to the instance, because {str(error).partition(':')[0]}: an operator has to repair them",
        code="access_illegible",
    )
