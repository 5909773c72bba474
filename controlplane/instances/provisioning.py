"""The steps of an instance's operations. Each is idempotent: a worker may die in the middle of any of them.

======================= =========================================================================================
create                  allocate addresses; write specification; wait for brokers; open for use
update                  write specification; wait for brokers
isolate                 write specification; wait for brokers
restore                 allocate addresses; write specification; wait for brokers; open for use
delete                  close listeners; delete topics; retire specification; remove specification; free addresses
======================= =========================================================================================

What isolating and restoring want of brokers stands in the row before their operations begin: these bring it to the brokers, as
those of a change do, and so does the reconciler where one gave up. An operation that a later one has overtaken ends.

Deleting closes the listeners first (spec state "stopped"), so that no client makes a topic while topics are deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, QuerySet

from controlplane.certificates import services as certificates
from controlplane.clusters import coordination, zookeeper
from controlplane.clusters import services as clusters
from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict
from controlplane.core.operations import Finished, NotYet, OperationKind, Step
from controlplane.instances import reconcile
from controlplane.instances.history import spec_change_record
from controlplane.instances.lifecycle import DELETE, ISOLATE, RESTORE, overtaken
from controlplane.instances.models import Instance, InstanceState, RouteState, SpecChangeKind
from controlplane.instances.plan import Await
from controlplane.instances.selectors import instance_fresh, routes_of_any_state
from controlplane.instances.services import CREATE, UPDATE
from controlplane.instances.telling import destroyed_tell
from controlplane.kafka import topics
from quota.contracts.instance import InstanceState as SpecState
from quota.contracts.instance import address_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.core.models import Operation

BROKERS_PATIENCE_S = 120.0
TOPICS_PATIENCE_S = 300.0


def register() -> None:
    """Make the kinds of operation known."""
    operations.register(
        OperationKind(
            CREATE,
            (
                Step("allocate addresses", allocate_addresses),
                Step("write specification", write_specification),
                Step("wait for brokers", wait_for_brokers, BROKERS_PATIENCE_S),
                Step("open for use", open_for_use),
            ),
            failed=mark_failed,
        )
    )
    operations.register(
        OperationKind(
            UPDATE,
            (
                Step("write specification", write_specification),
                Step("wait for brokers", wait_for_brokers, BROKERS_PATIENCE_S),
            ),
        )
    )
    operations.register(
        OperationKind(
            ISOLATE,
            (
                Step("write specification", _while_wanted(write_specification)),
                Step("wait for brokers", _while_wanted(wait_for_brokers), BROKERS_PATIENCE_S),
            ),
        )
    )
    operations.register(
        OperationKind(
            RESTORE,
            (
                Step("allocate addresses", _while_wanted(allocate_addresses)),
                Step("write specification", _while_wanted(write_specification)),
                Step("wait for brokers", _while_wanted(wait_for_brokers), BROKERS_PATIENCE_S),
                Step("open for use", _while_wanted(open_again)),
            ),
        )
    )
    operations.register(
        OperationKind(
            DELETE,
            (
                Step("close listeners", close_listeners, BROKERS_PATIENCE_S),
                Step("delete topics", delete_topics, TOPICS_PATIENCE_S),
                Step("retire specification", retire_specification, BROKERS_PATIENCE_S),
                Step("remove specification", remove_specification),
                Step("free addresses", free_addresses),
            ),
        )
    )


def _while_wanted(run: Callable[[Operation], Finished | NotYet]) -> Callable[[Operation], Finished | NotYet]:
    """A step, unless its tenant has thought otherwise since. Raises Conflict."""

    def step(operation: Operation) -> Finished | NotYet:
        if overtaken(operation):
            raise Conflict("the instance was isolated, restored or destroyed since", code="operation_overtaken")
        return run(operation)

    return step


def allocate_addresses(operation: Operation) -> Finished:
    """A port for each route on every broker."""
    ports = reconcile.addresses_allocate(instance_to_bring_up(operation))
    return Finished(note=", ".join(address_text((port.host, port.port)) for port in ports))


def write_specification(operation: Operation) -> Finished:
    """The row as it is now, into ZooKeeper."""
    instance = instance_to_bring_up(operation)
    reconcile.publish(zookeeper.tree(instance.cluster.address), instance.id)
    return Finished(note=f"generation {instance.generation}")


def wait_for_brokers(operation: Operation) -> Finished | NotYet:
    """Until every live broker serves the newest generation; ports that are taken are replaced on the way."""
    outcome = reconcile.converge(instance_to_bring_up(operation).id)
    return NotYet(outcome.note) if isinstance(outcome, Await) else Finished()


def open_for_use(operation: Operation) -> Finished:
    """The state its tenant waits for."""
    reconcile.open_for_use(instance_to_bring_up(operation), InstanceState.CREATING)
    return Finished(result={"instance_id": operation.target})


def open_again(operation: Operation) -> Finished:
    """As it was before it was isolated."""
    reconcile.open_for_use(instance_to_bring_up(operation), InstanceState.RESTORING)
    return Finished(result={"instance_id": operation.target})


def close_listeners(operation: Operation) -> Finished | NotYet:
    """No client gets in any more."""
    return _spec_state(operation, SpecState.STOPPED)


def delete_topics(operation: Operation) -> Finished | NotYet:
    """Through the cluster, until it shows none."""
    instance = instance_fresh(operation.target)
    left = topics.delete_all(instance.cluster.address, instance.id)
    return NotYet(f"{left} topics are being deleted", after_s=0.5) if left else Finished()


def retire_specification(operation: Operation) -> Finished | NotYet:
    """Brokers forget the instance."""
    return _spec_state(operation, SpecState.DELETED)


def remove_specification(operation: Operation) -> Finished:
    """Nothing is left in ZooKeeper."""
    instance = instance_fresh(operation.target)
    coordination.spec_remove(zookeeper.tree(instance.cluster.address), instance.id)
    return Finished()


def free_addresses(operation: Operation) -> Finished:
    """Give back the ports; the instance is gone, with the private keys of its certificates."""
    routes_of_any_state(operation.target).update(state=RouteState.REMOVED)  # before: reconcile.addresses_allocate
    freed = clusters.ports_release(owner=operation.target)
    now = SYSTEM_CLOCK.now()
    # Written when deletion was asked for, normally; not for one that began under a release without the history.
    spec_change_record(instance=instance_fresh(operation.target), kind=SpecChangeKind.CLOSED, at=now)
    certificates.forget(instance_fresh(operation.target))
    with transaction.atomic():
        gone = _rows(operation).exclude(state=InstanceState.DELETED)
        if gone.update(state=InstanceState.DELETED, deleted_at=now):  # not by a worker that died before it could say so
            destroyed_tell(instance_fresh(operation.target), now)
    return Finished(note=f"{freed} ports")


def mark_failed(operation: Operation) -> None:
    """Of a creation that gave up."""
    _rows(operation).filter(state=InstanceState.CREATING).update(state=InstanceState.FAILED)


def _spec_state(operation: Operation, state: SpecState) -> Finished | NotYet:
    """Tell brokers a state and wait until they have it."""
    stale = _rows(operation).exclude(spec_state=state.value)
    stale.update(spec_state=state.value, generation=F("generation") + 1)
    outcome = reconcile.converge(operation.target)
    return NotYet(outcome.note) if isinstance(outcome, Await) else Finished()


def instance_to_bring_up(operation: Operation) -> Instance:
    """The target, for steps that bring it up. Raises Conflict once it is to go."""
    instance = instance_fresh(operation.target)
    if instance.state in (InstanceState.DELETING, InstanceState.DELETED):
        raise Conflict("the instance is being deleted", code="instance_deleting")
    return instance


def _rows(operation: Operation) -> QuerySet[Instance]:
    return Instance.objects.unscoped("the operation names its target").filter(pk=operation.target)
