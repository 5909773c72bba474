"""Shortening retention and putting it back: two kinds of operation, in steps that bear to be repeated.

======================  ==========================================================================================
policies.shorten        find out what goes; shorten retention; tell owners
policies.put_back       put retention back
======================  ==========================================================================================

Between deciding and acting a worker may die, the tenant may change a topic or switch the policy off, and the disk may empty. So
before each topic the policy is read again (another revision: stop); a topic whose setting is not as it was when the plan was made
is left alone; a plan that is older than HOLDS is thrown away; and the figure of storage is asked for again.

What a topic had is written (models.ShortenedTopic) before the cluster is asked to change it, with what is about to be set: an
attempt whose answer was lost is recognised, and what the tenant has set himself meanwhile is never overwritten.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable, NotFound, OperationFailed
from controlplane.core.operations import Finished, NotYet, OperationKind, Step
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_fresh
from controlplane.kafka import topics
from controlplane.policies import looking, measuring, planning, rules, telling
from controlplane.policies.models import DiskPolicy, ShortenedTopic
from controlplane.policies.rules import RETENTION, Loss
from controlplane.policies.services import running_of, shortened_of
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance
    from controlplane.policies.rules import Kept

HOLDS = timedelta(minutes=10)
"""So long a plan is true enough: groups read on meanwhile, and records become older."""
SHORTENING_PATIENCE_S = 300.0
MOST_LOSSES = 100
"""That are kept with the operation, the largest ones."""
RETENTION_MS = "retention.ms"
ANOTHER = "there is another policy since: nothing was done"
GONE = "the instance does not run any more: nothing was done"
NOT_NEEDED = "storage is below the level again: nothing was done"
FULL_AGAIN = "there is no room any more: nothing was done"
TOO_LATE = "what would go was found out too long ago: the next look begins anew"


def register() -> None:
    """Make the kinds of operation known."""
    operations.register(
        OperationKind(
            rules.SHORTENING,
            (
                Step("find out what goes", find_out),
                Step("shorten retention", shorten),
                Step("tell owners", tell),
            ),
            failed=telling.stuck,
        )
    )
    operations.register(
        OperationKind(rules.PUTTING_BACK, (Step("put retention back", put_back, SHORTENING_PATIENCE_S),))
    )


def find_out(operation: Operation) -> Finished:
    """Whether it is still so, by how much retention has to be shorter, and which groups lose what."""
    instance, policy = instance_fresh(operation.target), _policy(operation)
    if policy is None or instance.state != InstanceState.RUNNING:
        return _nothing(ANOTHER if policy is None else GONE)
    if not _is_reached(instance, policy):
        return _nothing(NOT_NEEDED)
    plan = looking.planned(instance, policy.rule)
    if plan.problem:
        raise OperationFailed(plan.problem)
    said = _said(plan, policy.step_percent)
    result = {
        "topics": {name: asdict(step) for name, step in plan.topics.items()},
        "steps": plan.steps,
        "records": plan.records,
        "lost": plan.lost,
        "losses": [asdict(loss) for loss in plan.losses[:MOST_LOSSES]],
        "spared": list(plan.spared),
        "is_first": not shortened_of(instance.id).exists(),
        "found_at": SYSTEM_CLOCK.now().isoformat(),
        "said": said,
    }
    spared = f"spared, since groups have still to read: {planning.some(plan.spared)}" if plan.spared else ""
    return Finished(spared, result)


def _said(plan: planning.Plan, percent: int) -> str:
    steps, topics_changed, records = plan.steps, len(plan.topics), plan.records
    lost, groups = plan.lost, planning.losers(plan.losses)
    if not lost:
        return (
            f"retention is shortened (steps: {steps} of {percent} %, topics: {topics_changed}): up to {records} records go, "
            "which all groups have read"
        )
    return (
        f"retention is shortened (steps: {steps} of {percent} %, topics: {topics_changed}): up to {records} records go, "
        f"of which groups have not read {lost}: {groups}"
    )


def shorten(operation: Operation) -> Finished:
    """Topic by topic, as it was found out."""
    found = operation.result or {}
    planned = found.get("topics")
    if not planned:
        return Finished(str(found.get("said", "")))
    if SYSTEM_CLOCK.now() - datetime.fromisoformat(found["found_at"]) > HOLDS:
        raise OperationFailed(TOO_LATE, code="policy_too_late")
    instance, policy = instance_fresh(operation.target), _policy(operation)
    if policy is None or instance.state != InstanceState.RUNNING:
        return _nothing(ANOTHER if policy is None else GONE)
    if not _is_reached(instance, policy):
        return _nothing(NOT_NEEDED)
    there, done = looking.kept_all(instance), 0
    for name, members in planned.items():
        if _policy(operation) is None:
            return _nothing(f"there is another policy since: stopped after {done} of {len(planned)} topics")
        if name in there:
            done += _shorten_topic(instance, name, there[name], planning.Step(**members))
    telling.unstuck(policy)
    audit.record(
        organisation=policy.organisation,
        actor=audit.SYSTEM,
        action="instance.policy.shorten",
        target=instance.id,
        detail={"topics": done, "steps": found["steps"], "records": found["records"], "lost": found["lost"]},
    )
    # The plan is carried out, and long: whoever lists operations does not need it.
    return Finished(f"{done} of {len(planned)} topics", {"shortened": done, "topics": {}})


def _shorten_topic(instance: Instance, name: str, kept: Kept, step: planning.Step) -> bool:
    """Whether it has the shorter retention now."""
    rows = ShortenedTopic.objects.unscoped("the caller has found the instance")
    row = rows.filter(instance=instance, topic=name).first()
    if row is not None and kept.own_ms == step.to_ms == row.next_ms:  # by an attempt whose answer was lost
        row.now_ms, row.next_ms = step.to_ms, None
        row.save(update_fields=["now_ms", "next_ms"])
        return True
    if kept.own_ms != step.own_ms:
        return row is not None and kept.own_ms == step.to_ms == row.now_ms  # otherwise its owner was faster
    if row is None or not (row.is_ours(kept) or (row.now_ms is None and row.own_ms == kept.own_ms)):
        if row is not None:  # its owner has set something else since
            row.delete()
        row = ShortenedTopic(
            organisation_id=instance.organisation_id,
            instance=instance,
            topic=name,
            own_ms=kept.own_ms,
            before_ms=kept.retention_ms,
            since=SYSTEM_CLOCK.now(),
        )
    elif row.is_ours(kept):
        row.now_ms = kept.own_ms
    row.next_ms = step.to_ms
    row.save()
    try:
        topics.config_set(instance.cluster.address, instance.id, name, {RETENTION_MS: str(step.to_ms)})
    except NotFound:  # the topic was deleted meanwhile
        row.delete()
        return False
    row.now_ms, row.next_ms = step.to_ms, None
    row.save(update_fields=["now_ms", "next_ms"])
    return True


def tell(operation: Operation) -> Finished:
    """Owners, by e-mail."""
    found = operation.result or {}
    if not found.get("shortened"):
        return Finished("nothing was shortened")
    was_told = telling.shortened_tell(
        operation,
        topics=found["shortened"],
        records=found["records"],
        lost=found["lost"],
        losses=[Loss(**each) for each in found["losses"]],
        is_first=found["is_first"],
    )
    return Finished("" if was_told else "owners were written to lately")


def put_back(operation: Operation) -> Finished | NotYet:
    """Every topic that still has what the policy set gets what it had; what its owner has set meanwhile stays."""
    if running_of(operation.target).filter(kind=rules.SHORTENING).exists():
        return NotYet("retention is being shortened, which stops before its next topic")
    instance = instance_fresh(operation.target)
    if instance.state in (InstanceState.DELETING, InstanceState.DELETED):
        return _nothing(GONE)
    if operation.arguments.get("for_room"):
        policy = _policy(operation)
        if policy is None:
            return _nothing(ANOTHER)
        used, bought = measuring.used_bytes(instance), round(instance.storage_gib * GIB)
        if not rules.has_room(policy.level_percent, used, bought):
            return _nothing(FULL_AGAIN)
    there, done = looking.kept_all(instance), 0
    listed = topics.names_listed(instance.cluster.address, [instance.id])[instance.id]
    for row in shortened_of(instance.id).order_by("topic"):
        if row.topic not in there and row.topic in listed:  # a broker that has just begun may not know it yet
            raise ClusterUnavailable("the brokers do not say yet how long every topic keeps records")
        if row.topic in there and row.is_ours(there[row.topic]):
            own = None if row.own_ms is None else str(row.own_ms)
            try:
                topics.config_set(instance.cluster.address, instance.id, row.topic, {RETENTION_MS: own})
                done += 1
            except NotFound:
                pass  # the topic was deleted meanwhile
        row.delete()
    audit.record(
        organisation=instance.organisation,
        actor=operation.actor or audit.SYSTEM,
        action="instance.policy.put_back",
        target=instance.id,
        detail={"topics": done},
    )
    return Finished("", {"said": f"retention is as it was before (topics: {done})"})


def _policy(operation: Operation) -> DiskPolicy | None:
    """The policy for which the operation was begun; None: there is another one since."""
    rows = DiskPolicy.objects.unscoped("an operation names its target")
    wanted = rows.filter(pk=operation.target, revision=operation.arguments["revision"])
    return wanted.filter(policy=RETENTION).first()


def _is_reached(instance: Instance, policy: DiskPolicy) -> bool:
    used = measuring.used_bytes(instance)
    return rules.is_reached(policy.level_percent, used, round(instance.storage_gib * GIB))


def _nothing(why: str) -> Finished:
    return Finished(why, {"said": why, "topics": {}})
