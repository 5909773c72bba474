"""Bringing what brokers serve to what the database wants: observe, compare (plan.py), one step, look again.

Both the steps of operations and the periodic task come here, and any number of workers may: every write is guarded by
the instance's generation, the node's version in ZooKeeper, or the unique constraint of ports.

A round looks at each cluster once, and passes on what it saw: which brokers are alive and what they have applied. Of the
instances, rows, ports and specs are read many at a time. Most have nothing to be done for them, which is seen from
that; those that have are looked at again one by one, since a round is older than they are.

One instance that cannot be looked after is no obstacle to the others: what went wrong stands in its row, for its tenant and
for operators, until it goes well. A cluster whose ZooKeeper does not answer at all is left for the next time, and only
that one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F, Q, QuerySet

from controlplane.certificates import services as certificates
from controlplane.clusters import coordination, zookeeper
from controlplane.clusters import services as clusters
from controlplane.clusters.models import Broker
from controlplane.clusters.selectors import ports_by_owner
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, SluiceError
from controlplane.core.portions import portions
from controlplane.instances import plan
from controlplane.instances.history import spec_change_record
from controlplane.instances.models import Instance, InstanceState, RouteState, SpecChangeKind
from controlplane.instances.selectors import (
    instance_fresh,
    routes_by_instance,
    routes_of_any_state,
    routes_wanted,
    spec_wanted,
)
from quota.contracts.instance import ContractError
from quota.contracts.instance import InstanceState as SpecState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.clusters.coordination import LiveBroker, ObservedCluster
    from controlplane.clusters.models import PhysicalCluster, PortAllocation
    from controlplane.clusters.zookeeper import Tree
    from controlplane.instances.models import Route
    from quota.contracts.instance import InstanceSpec

LOG = logging.getLogger(__name__)
STEPS_AT_ONCE = 10
INSTANCES_AT_ONCE = 100
"""Rows and specs in memory: a spec with its whitelists has up to a megabyte."""
LOOKED_AFTER = Q(
    state__in=(InstanceState.RUNNING, InstanceState.FAILED, InstanceState.RESTORING), spec_state=SpecState.RUNNING
) | Q(state=InstanceState.ISOLATED, spec_state=SpecState.STOPPED)
"""Those that are to be served, and those that no broker may serve, a new one or one that was away neither."""
UNFORESEEN = "this instance cannot be looked after for a reason that was not foreseen; it is in the log"


def observe(tree: Tree, instance: Instance, cluster: ObservedCluster) -> plan.Observed:
    """What ZooKeeper shows of an instance now, and of its brokers when its cluster was looked at."""
    try:
        stored = coordination.spec_read(tree, instance.id)
    except ContractError as error:
        LOG.warning("the spec of %s in ZooKeeper is not legible and will be replaced: %s", instance.id, error)
        stored = None
    return plan.Observed(stored[0] if stored else None, cluster.applied_of(instance.id))


def converge(
    instance_id: str, *, cluster: ObservedCluster | None = None, clock: Clock = SYSTEM_CLOCK
) -> plan.Settled | plan.Await:
    """Do what can be done now; says what is being waited for.

    `cluster` is what a round saw: what brokers do about the steps taken here is for the next one. Without it, the
    cluster is looked at before each step.
    """
    for _ in range(STEPS_AT_ONCE):
        instance = instance_fresh(instance_id)
        tree = zookeeper.tree(instance.cluster.address)
        wanted, seen = spec_wanted(instance), cluster or coordination.observe(tree)
        step = plan.next_step(wanted, observe(tree, instance, seen))
        if isinstance(step, plan.Settled | plan.Await):
            return step
        LOG.info("instance %s: %s", instance_id, step)
        _take(tree, instance, step, seen, clock)
    return plan.Await("it keeps changing")


def _take(tree: Tree, instance: Instance, step: plan.NextStep, seen: ObservedCluster, clock: Clock) -> None:
    if isinstance(step, plan.Allocate):
        addresses_allocate(instance, live=seen.live, clock=clock)
        _raise_generation(instance)
    elif isinstance(step, plan.Advance):
        _generations(instance).filter(generation__lt=step.generation).update(generation=step.generation)
    elif isinstance(step, plan.Publish):
        publish(tree, instance.id)
    elif isinstance(step, plan.Replace):
        broker = Broker.objects.get(cluster=instance.cluster_id, broker_id=step.broker)
        if clusters.port_block(broker=broker, owner=instance.id, port=step.port, clock=clock):
            clusters.port_ensure(broker=broker, owner=instance.id, route=step.route, clock=clock)
            _raise_generation(instance)


def addresses_allocate(
    instance: Instance, *, live: Sequence[LiveBroker] | None = None, clock: Clock = SYSTEM_CLOCK
) -> list[PortAllocation]:
    """A port for each route on every broker of its cluster that is known. Raises ClusterUnavailable if none ever registered.

    `live` are the brokers that were just seen; without it they are looked for.
    """
    if live is None:
        live = coordination.live_brokers(zookeeper.tree(instance.cluster.address))
    brokers = clusters.brokers_sync(cluster=instance.cluster, live=live)
    if not brokers:
        raise ClusterUnavailable("no broker has registered yet")
    wanted = routes_wanted(instance.id)
    ports = [
        clusters.port_ensure(broker=broker, owner=instance.id, route=route.key, clock=clock)
        for route in wanted
        for broker in brokers
    ]
    # One may have gone meanwhile. Whoever removes it says so first and gives its ports back then: one of us finds these.
    gone = routes_of_any_state(instance.id).filter(state=RouteState.REMOVED, key__in=[route.key for route in wanted])
    for route in gone:
        clusters.ports_release(owner=instance.id, route=route.key, clock=clock)
    return ports


def publish(tree: Tree, instance_id: str) -> None:
    """Put the row as it is now in force. Raises Invalid where it is larger than ZooKeeper takes."""
    _adopt_limits(tree, instance_id)
    instance = instance_fresh(instance_id)
    spec = spec_wanted(instance)
    coordination.spec_write(tree, spec)
    _ensure_certificates(instance, spec)


def _ensure_certificates(instance: Instance, spec: InstanceSpec) -> None:
    if any(route.wants_tls for route in spec.routes) or certificates.has_any(instance):
        certificates.ensure_for(instance)


_ONCE_IN_ZOOKEEPER = ("topics", "requests_per_s", "loop_ms_per_s")
"""Limits that operators set there."""


def _adopt_limits(tree: Tree, instance_id: str) -> None:
    """While specs were of version 1, operators set limits in ZooKeeper, which were kept there. Now the row keeps them."""
    try:
        stored = coordination.spec_read(tree, instance_id)
    except ContractError:
        return
    if stored is None or stored[0].whitelists_of is not None:
        return
    limits = {name: getattr(stored[0].limits, name) for name in _ONCE_IN_ZOOKEEPER}
    found = {name: limit for name, limit in limits.items() if limit is not None}
    instance = instance_fresh(instance_id)
    if found and not instance.operators_limits:
        _generations(instance).filter(generation=instance.generation).update(operators_limits=found)


def reconcile_all(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Look after every instance that should be served, or be kept shut: a new broker, a lost node, a port that was taken over."""
    for cluster in clusters.cluster_list():
        seen = clusters.cluster_observe(cluster)
        if seen is not None:
            _reconcile_cluster(cluster, seen, clock)


def _reconcile_cluster(cluster: PhysicalCluster, seen: ObservedCluster, clock: Clock) -> None:
    """One round over a cluster's instances. It ends when the cluster's ZooKeeper no longer answers."""
    served = Instance.objects.unscoped("the reconciler serves every organisation").filter(LOOKED_AFTER, cluster=cluster)
    names = list(served.values_list("pk", flat=True))
    for some in portions(names, INSTANCES_AT_ONCE):
        rows = served.select_related("cluster").in_bulk(some)
        part = [rows[name] for name in some if name in rows]
        for instance in _unsettled(cluster, part, seen):
            try:
                problem = _reconcile(instance.id, seen, clock)
            except ClusterUnavailable as error:
                if clusters.cluster_observe(cluster) is None:  # not about this one instance only
                    LOG.warning("reconciling of cluster %s stops: %s", cluster, error)
                    return
                problem = str(error)
            except Exception:  # whatever is the matter with one must not keep the others from being looked after
                LOG.exception("instance %s", instance.id)
                problem = UNFORESEEN
            _remember(instance.id, problem)


def _unsettled(cluster: PhysicalCluster, instances: Sequence[Instance], seen: ObservedCluster) -> list[Instance]:
    """Those of which this look does not show that all is well with them, and was before."""
    names = [instance.id for instance in instances]
    routes, ports = routes_by_instance(names), ports_by_owner(names)
    try:
        published = coordination.specs_read(zookeeper.tree(cluster.address), names)
    except ClusterUnavailable:
        published = {}  # each is tried by itself, and says what is the matter
    return [
        instance
        for instance in instances
        if not _is_settled(instance, routes.get(instance.id, []), ports.get(instance.id, []), published, seen)
    ]


def _is_settled(
    instance: Instance,
    routes: Sequence[Route],
    ports: Sequence[PortAllocation],
    published: Mapping[str, InstanceSpec],
    seen: ObservedCluster,
) -> bool:
    if instance.problem or instance.state not in (InstanceState.RUNNING, InstanceState.ISOLATED):
        return False
    try:
        wanted = spec_wanted(instance, routes, ports)
    except Exception:  # noqa: BLE001  # told when the instance is looked at by itself
        return False
    observed = plan.Observed(published.get(instance.id), seen.applied_of(instance.id))
    return isinstance(plan.next_step(wanted, observed), plan.Settled)


def _reconcile(instance_id: str, seen: ObservedCluster, clock: Clock) -> str:
    """Look after one; what is the matter with it, nothing if all is well. Raises ClusterUnavailable."""
    was = InstanceState(instance_fresh(instance_id).state)  # before: what brokers have settled is at least as new
    try:
        outcome = converge(instance_id, cluster=seen, clock=clock)
        instance = instance_fresh(instance_id)
        _ensure_certificates(instance, spec_wanted(instance))  # the last time may have come no further than the spec
    except ClusterUnavailable:
        raise
    except SluiceError as error:
        LOG.warning("instance %s: %s", instance_id, error)
        return str(error)
    if isinstance(outcome, plan.Settled) and was in (InstanceState.FAILED, InstanceState.RESTORING):
        open_for_use(instance, was, clock=clock)
    return ""


def _remember(instance_id: str, problem: str) -> None:
    rows = Instance.objects.unscoped("the reconciler serves every organisation")
    rows.filter(pk=instance_id).exclude(problem=problem).update(problem=problem)


@transaction.atomic
def open_for_use(instance: Instance, was: InstanceState, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Its tenant may use it, and pays from now on."""
    kind = SpecChangeKind.RESTORED if was is InstanceState.RESTORING else SpecChangeKind.OPENED
    if _generations(instance).filter(state=was).update(state=InstanceState.RUNNING):
        spec_change_record(instance=instance, kind=kind, at=clock.now())


def _generations(instance: Instance) -> QuerySet[Instance]:
    return Instance.objects.unscoped("guarded by id and generation").filter(pk=instance.pk)


def _raise_generation(instance: Instance) -> None:
    """After ports have changed: brokers must hear of it."""
    _generations(instance).update(generation=F("generation") + 1)
