"""Changing instances. Each call checks, writes the row, and leaves the slow part to an operation.

Whitelists are the exception: they must be in force within 2 s, so the request itself writes them to ZooKeeper. The row
comes first. If ZooKeeper does not answer, the caller is told so, and the reconciler publishes the row later.
"""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.clusters import master, zookeeper
from controlplane.clusters import services as clusters
from controlplane.clusters.models import ClusterState, PhysicalCluster
from controlplane.clusters.selectors import broker_count
from controlplane.core import audit, dry_runs, ids, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import (
    ClusterFull,
    ClusterUnavailable,
    ConcurrentChange,
    Conflict,
    FieldProblem,
    Forbidden,
    Invalid,
    PreconditionFailed,
)
from controlplane.core.models import Operation, OperationState
from controlplane.core.whitelist import whitelist_parse, whitelist_problems
from controlplane.instances import validation
from controlplane.instances.history import SIZES, spec_change_record
from controlplane.instances.models import Instance, InstanceState, Route, RouteState, SpecChangeKind
from controlplane.instances.reconcile import publish
from controlplane.instances.selectors import SHOWN_AS, instance_fresh, instance_get, refuse_isolated
from controlplane.instances.spec import DEFAULT_ROUTE, OPERATORS_LIMITS, config_of
from quota.contracts.apart import whitelists_problem
from quota.contracts.instance import GIB
from quota.contracts.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from controlplane.accounts.selectors import Caller
    from controlplane.tenants.models import Organisation

CREATE, UPDATE = "instance.create", "instance.update"
"""Kinds of operation; their steps are in provisioning.py, those of the end in lifecycle.py."""
ON_THE_WAY_OUT = (InstanceState.ISOLATED, InstanceState.DELETING)
"""Nothing of these is changed."""
TRIES = 10


@transaction.atomic
def instance_create(
    *,
    organisation: Organisation,
    actor: str,
    name: str,
    bandwidth_mib_per_s: float,
    storage_gib: float,
    partitions: int,
    whitelist: Sequence[object],
    config: Mapping[str, Any] = MappingProxyType({}),
    deletion_protection: bool = False,
    maintenance_window: Mapping[str, Any] | None = None,
    placement: Mapping[str, Any] | None = None,
    cluster: PhysicalCluster | None = None,
    clock: Clock = SYSTEM_CLOCK,
    source: ids.RandomSource | None = None,
) -> tuple[Instance, Operation]:
    """A new instance on a cluster (None: the default one) and the operation that brings it up. Raises Invalid, ClusterFull.

    `placement` is what its tenant wishes of the cluster; it is kept, and whoever chose the cluster has looked at it. Callers that
    sell go through admission.purchases, which chooses one and looks at caps, room and price as well.
    """
    bought = {
        "name": name,
        "bandwidth_mib_per_s": bandwidth_mib_per_s,
        "storage_gib": storage_gib,
        "partitions": partitions,
        "deletion_protection": deletion_protection,
        "maintenance_window": maintenance_window,
    }
    home = cluster or clusters.cluster_ensure()
    others = whitelist_problems(whitelist, field="whitelist")
    others += validation.config_problems(config, brokers=broker_count(home))
    others += validation.placement_problems(placement or {})
    validation.check(bought, others=others)
    wishes = {member: sorted(set(wished)) for member, wished in (placement or {}).items() if wished}
    cidrs = whitelist_parse(whitelist, field="whitelist")
    _check_room(home)
    instance = Instance(
        id=_free_id(source or random.SystemRandom()),
        organisation=organisation,
        cluster=home,
        **{**bought, "name": name.strip()},
        whitelist=cidrs,
        config=dict(config),
        placement=wishes,
        created_at=clock.now(),
    )
    instance.save(force_insert=True)
    Route.objects.unscoped("the instance's own organisation is written").create(
        organisation=organisation,
        instance=instance,
        number=1,
        key=DEFAULT_ROUTE,
        state=RouteState.RUNNING,
        created_at=instance.created_at,
    )
    operation = operations.start(organisation=organisation, kind=CREATE, target=instance.id, actor=actor, clock=clock)
    detail = {**bought, "whitelist": cidrs}
    detail |= {member: said for member, said in (("config", dict(config)), ("placement", wishes)) if said}
    audit.record(organisation=organisation, actor=actor, action=CREATE, target=instance.id, detail=detail, clock=clock)
    return instance, operation


@transaction.atomic
def instance_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    changes: Mapping[str, Any],
    accept_full_storage: bool = False,
    at_generations: Collection[int] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[Instance, Operation]:
    """Change name, bandwidth_mib_per_s, storage_gib, partitions, deletion_protection, maintenance_window, or members of config.

    Asked for what an update is at already, it answers that operation. Less storage than is used refuses all producers, so it
    must be accepted. At another generation than those given (None: any) it raises PreconditionFailed. Raises Invalid, NotFound,
    Conflict, LimitReached.
    """
    if not changes or changes == {"config": {}}:
        raise Invalid(f"nothing to change: give one or more of {', '.join([*validation.RULES, 'config'])}")
    config = changes.get("config", {})
    present = instance_locked(organisation, instance_id)
    others = validation.config_problems(config, brokers=broker_count(present.cluster))
    validation.check({name: value for name, value in changes.items() if name != "config"}, others=others)
    check_generation(present, at_generations)
    begun = _update_begun(organisation, present, changes)
    if begun:
        return present, begun
    if "storage_gib" in changes and not accept_full_storage:
        _check_use(present, changes["storage_gib"])

    def change(instance: Instance) -> dict[str, Any]:
        check_generation(instance, at_generations)
        return _with_config(instance, changes)

    instance = instance_row_change(organisation, instance_id, change)
    if any(name in changes for name in SIZES):
        spec_change_record(instance=instance, kind=SpecChangeKind.RESIZED, at=clock.now())
    operation = operations.start(organisation=organisation, kind=UPDATE, target=instance.id, actor=actor, clock=clock)
    audit.record(
        organisation=organisation,
        actor=actor,
        action=UPDATE,
        target=instance.id,
        detail=_told(present, changes),
        clock=clock,
    )
    return instance, operation


@transaction.atomic
def instance_limits_set(
    *, caller: Caller, instance_id: str, limits: Mapping[str, int | None], clock: Clock = SYSTEM_CLOCK
) -> tuple[Instance, Operation]:
    """The limits that plans do not sell, by the names that tenants know; None is unlimited, an absent one has its default.

    For an operator of the service, whoever's the instance is. Raises NotFound, Forbidden, Conflict.
    """
    if caller.is_operator:
        organisation = instance_fresh(instance_id).organisation
    else:
        instance_get(organisation=caller.organisation, instance_id=instance_id)
        raise Forbidden("operators of the service set these limits; plans do not sell them")
    wanted = {name: limits[shown] for name in OPERATORS_LIMITS if (shown := SHOWN_AS.get(name, name)) in limits}
    before: dict[str, int | None] = {}

    def change(present: Instance) -> dict[str, Any]:
        before.clear()
        before.update(present.operators_limits)
        return {"operators_limits": wanted}

    instance = instance_row_change(organisation, instance_id, change)
    operation = operations.start(
        organisation=organisation, kind=UPDATE, target=instance.id, actor=audit.OPERATOR, counted=False, clock=clock
    )
    audit.record(
        organisation=organisation,
        actor=caller.actor,
        action="instance.limits",
        target=instance.id,
        detail=audit.changed(_limits_told(before), _limits_told(wanted)),
        clock=clock,
    )
    return instance, operation


def _limits_told(limits: Mapping[str, int | None]) -> dict[str, int | str | None]:
    """For the audit trail: each by the name that tenants know. None is no limit; what was not set is another thing."""
    return {SHOWN_AS.get(name, name): limits.get(name, "default") for name in OPERATORS_LIMITS}


def instance_whitelist_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    cidrs: Sequence[object],
    at_generations: Collection[int] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Instance:
    """Who may connect, from now on. Raises Invalid, NotFound, Conflict, PreconditionFailed, ClusterUnavailable."""
    blocks = whitelist_parse(cidrs, field="cidrs")
    return _whitelist_decided(organisation, actor, instance_id, lambda _before: blocks, at_generations, clock)


def instance_whitelist_change(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    add: Sequence[object] = (),
    remove: Sequence[object] = (),
    at_generations: Collection[int] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Instance:
    """Some more and some fewer who may connect, from now on; the others stay, those that somebody else adds meanwhile too.

    What is there already is not added again. Raises Invalid, also for what is to be removed and is not there; NotFound, Conflict,
    ClusterUnavailable.
    """
    if not add and not remove:
        raise Invalid.field("add", "nothing to change: give add, remove or both")
    more, fewer = whitelist_parse(add, field="add"), whitelist_parse(remove, field="remove")

    def decide(before: Sequence[str]) -> list[str]:
        missing = [(at, each) for at, each in enumerate(fewer) if each not in before]
        if missing:
            raise Invalid.fields([FieldProblem(f"remove.{at}", f"{each} is not on the list") for at, each in missing])
        after = [each for each in dict.fromkeys([*before, *more]) if each not in fewer]
        return whitelist_parse(after, field="add")  # together they may be too many

    return _whitelist_decided(organisation, actor, instance_id, decide, at_generations, clock)


def _whitelist_decided(
    organisation: Organisation,
    actor: str,
    instance_id: str,
    decide: Callable[[Sequence[str]], list[str]],
    at_generations: Collection[int] | None,
    clock: Clock,
) -> Instance:
    """`decide` is told the list as it is, which nobody else changes until it is another one."""
    with transaction.atomic():
        present = instance_locked(organisation, instance_id)
        check_generation(present, at_generations)
        before = present.whitelist
        blocks = decide(before)
        instance = instance_row_change(organisation, instance_id, lambda _instance: {"whitelist": blocks})
        audit.record(
            organisation=organisation,
            actor=actor,
            action="instance.whitelist",
            target=instance.id,
            detail=audit.changed({"cidrs": before}, {"cidrs": blocks}),
            clock=clock,
        )
    _put_in_force(instance)
    return instance


def instance_topic_whitelist_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    topic: str,
    cidrs: Sequence[object] | None,
    check: Callable[[Instance], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Instance:
    """Who may use one topic; None: everyone who may connect. Whether the topic exists is the caller's to know.

    `check` is told the instance once nobody else can change it, and raises where nothing is to be changed.
    """
    blocks = None if cidrs is None else whitelist_parse(cidrs, field="cidrs")

    def change(instance: Instance) -> dict[str, Any]:
        others = {name: value for name, value in instance.topic_whitelists.items() if name != topic}
        return {"topic_whitelists": others if blocks is None else {**others, topic: blocks}}

    with transaction.atomic():
        present = instance_locked(organisation, instance_id)
        if check is not None:
            check(present)
        before = present.topic_whitelists.get(topic)
        instance = instance_row_change(organisation, instance_id, change)
        audit.record(
            organisation=organisation,
            actor=actor,
            action="topic.whitelist",
            target=f"{instance.id}/{topic}",
            detail=audit.changed({"cidrs": before}, {"cidrs": blocks}),
            clock=clock,
        )
    _put_in_force(instance)
    return instance


def proposal_expired(instance_id: str, proposal_id: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """A proposal of who may do what was discarded, since its time was over: it goes on record."""
    instance = Instance.objects.unscoped("by the clock").select_related("organisation").filter(pk=instance_id).first()
    if instance is not None:
        audit.record_about(instance, audit.SYSTEM, "proposal.expire", {"id": proposal_id}, clock)


def _put_in_force(instance: Instance) -> None:
    try:
        publish(zookeeper.tree(instance.cluster.address), instance.id)
    except ClusterUnavailable as error:
        if dry_runs.scratch() is not None:
            raise  # nothing is stored
        raise ClusterUnavailable(
            f"the change is stored and comes into force as soon as it can: {error.detail}"
        ) from error


def instance_row_change(
    organisation: Organisation, instance_id: str, compute: Callable[[Instance], dict[str, Any]]
) -> Instance:
    """Compare-and-set by generation: `compute` sees the row it will replace, again if another writer was faster."""
    for _ in range(TRIES):
        instance = instance_get(organisation=organisation, instance_id=instance_id)
        if instance.state == InstanceState.DELETING:
            raise Conflict("the instance is being deleted", code="instance_deleting")
        refuse_isolated(instance)
        changes = compute(instance) | {"generation": instance.generation + 1}
        _check_whitelists(instance, changes)
        rows = Instance.objects.for_organisation(organisation).exclude(state__in=ON_THE_WAY_OUT)
        if rows.filter(pk=instance.pk, generation=instance.generation).update(**changes):
            for name, value in changes.items():
                setattr(instance, name, value)
            return instance
    raise ConcurrentChange("the instance is being changed by others; try again")


def check_generation(instance: Instance, wanted: Collection[int] | None) -> None:
    """Raises PreconditionFailed."""
    if wanted is not None and instance.generation not in wanted:
        raise _changed_since(instance)


def _changed_since(instance: Instance) -> PreconditionFailed:
    return PreconditionFailed(
        f"{instance.id} is not as it was when you read it: get it again, look at what has changed, and send its new ETag in "
        "If-Match if you still want this"
    )


def instance_locked(organisation: Organisation, instance_id: str) -> Instance:
    """The row as it is; until this transaction ends, nobody else changes it. Raises NotFound."""
    found = instance_get(organisation=organisation, instance_id=instance_id)
    rows = Instance.objects.for_organisation(organisation).select_related("cluster")
    # Not its key, which nobody changes, and no row is deleted: who writes a row that refers to it, such as the note of a topic,
    # need not wait. With a lock on the key two of them wait for each other, one for this row and one for the note's.
    return rows.select_for_update(of=("self",), no_key=True).get(pk=found.pk)


def _update_begun(organisation: Organisation, instance: Instance, changes: Mapping[str, Any]) -> Operation | None:
    """The newest update that is running, where the row has these changes already: it brings them to the brokers."""
    wanted = _with_config(instance, changes)
    if instance.state in ON_THE_WAY_OUT or any(getattr(instance, name) != wanted[name] for name in wanted):
        return None
    rows = Operation.objects.for_organisation(organisation)
    running = rows.filter(target=instance.id, kind=UPDATE, state=OperationState.RUNNING)
    return running.order_by("-created_at", "-pk").first()


def _told(before: Instance, changes: Mapping[str, Any]) -> dict[str, Any]:
    """For the audit trail: what each member was and is."""
    sizes = {name: value for name, value in changes.items() if name != "config"}
    told = audit.changed({name: getattr(before, name) for name in sizes}, sizes)
    config = audit.changed(config_of(before.config), changes.get("config", {}))
    return {**told, "config": config} if config else told


def _with_config(instance: Instance, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What is not named of `config` stays as it is."""
    merged = {"config": {**instance.config, **changes["config"]}} if "config" in changes else {}
    return {**changes, **merged}


def use_problem(instance: Instance, storage_gib: float) -> str | None:
    """What is said of a smaller storage that would be full at once. Where use is not known, its health will tell."""
    used = master.storage_used_bytes(instance.cluster.address, instance.id)
    if used is None or storage_gib >= instance.storage_gib or used < storage_gib * GIB:
        return None
    return (
        f"{size_text(used)} are used: with {size_text(round(storage_gib * GIB))} producing would be refused at once, until "
        "topics are deleted or records expire"
    )


def _check_use(instance: Instance, storage_gib: float) -> None:
    """Raises Conflict."""
    detail = use_problem(instance, storage_gib)
    if detail is None:
        return
    raise Conflict(
        f"{detail}. If that is meant, ask again with accept_full_storage",
        code="storage_below_use",
        errors=[FieldProblem("storage_gib", detail)],
    )


def _check_whitelists(instance: Instance, changes: Mapping[str, Any]) -> None:
    """Before the row is changed: one that cannot be written to ZooKeeper would never come into force. Raises Invalid."""
    members = ("whitelist", "topic_whitelists")
    if not any(name in changes for name in members):
        return
    problem = whitelists_problem(*(changes.get(name, getattr(instance, name)) for name in members))
    if problem:
        raise Invalid(problem, code="too_large")


def _check_room(home: PhysicalCluster) -> None:
    """Raises ClusterFull."""
    # The lock keeps two requests from sharing the last place on PostgreSQL; on SQLite the transaction itself does.
    cluster = PhysicalCluster.objects.select_for_update().get(pk=home.pk)
    if cluster.state != ClusterState.OPEN:  # since it was chosen
        raise ClusterFull("the cluster takes no new instances")
    used = Instance.objects.unscoped("capacity counts everyone's").filter(cluster=cluster)
    if used.exclude(state=InstanceState.DELETED).count() >= cluster.capacity:
        raise ClusterFull(f"the cluster has its {cluster.capacity} instances")


def _free_id(source: ids.RandomSource) -> str:
    """An id never used before: the key of a deleted instance must not come back with its offsets."""
    rows = Instance.objects.unscoped("ids are unique across organisations")
    for _ in range(TRIES):
        candidate = ids.instance_id(source)
        if not rows.filter(pk=candidate).exists():
            return candidate
    raise ConcurrentChange("no free instance id was found")
