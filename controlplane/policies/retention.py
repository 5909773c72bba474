"""Shortening retention and putting it back: two kinds of operation, in steps that bear to be repeated.

======================  ==========================================================================================
policies.shorten        find out what goes; shorten retention; tell owners
policies.put_back       put retention back
======================  ==========================================================================================

Between deciding and acting a worker may die, the tenant may change a topic or switch the policy off, and the disk may empty. So
before each topic the policy is read again (another revision: stop), and the topic's own setting: where that is not as it was when
the plan was made, the topic is left alone; a plan that is older than HOLDS is thrown away; and the figure of storage is asked for
again.

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
from controlplane.policies.rules import RETENTION
from controlplane.policies.services import put_back_is_done, running_of, set_by, shortened_of
from quota.contracts.instance import GIB

if TYPE_CHECKING:
    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance

HOLDS = timedelta(minutes=10)
"""So long a plan is true enough: groups read on meanwhile, and records become older."""
PUTTING_BACK_PATIENCE_S = 1800.0
"""Shortening that is under way has its end first; then there may be thousands of topics."""
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
                Step("shorten retention", shorten, HOLDS.total_seconds()),
                Step("tell owners", tell),
            ),
            failed=telling.stuck,
        )
    )
    operations.register(
        OperationKind(rules.PUTTING_BACK, (Step("put retention back", put_back, PUTTING_BACK_PATIENCE_S),))
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
            "which all groups that have committed offsets have read"
        )
    return (
        f"retention is shortened (steps: {steps} of {percent} %, topics: {topics_changed}): up to {records} records go, "
        f"of which groups have not read {lost}: {groups}"
    )


def shorten(operation: Operation) -> Finished | NotYet:
    """Topic by topic, as it was found out; a part at a time, so that the lease holds. A topic's row says what is done."""
    found = operation.result or {}
    planned = found.get("topics")
    if not planned:
        return Finished(str(found.get("said", "")))
    if SYSTEM_CLOCK.now() - datetime.fromisoformat(found["found_at"]) > HOLDS:
        raise OperationFailed(TOO_LATE, code="policy_too_late")
    why = _why_not(operation)
    if not why:
        instance, until = instance_fresh(operation.target), looking.Deadline(looking.part_of_lease())
        ids = topics.ids(instance.cluster.address, instance.id, list(planned))
        for name, members in planned.items():
            if _policy(operation) is None:
                why = ANOTHER
                break
            if until.is_over:
                done = set_by(operation).count()
                return NotYet(f"{done} of {len(planned)} topics")
            _shorten_topic(operation, instance, name, ids.get(name, ""), planning.Step(**members))
    names = list(set_by(operation).filter(next_ms=None).values_list("topic", flat=True))
    done = len(names)
    if why and not done:
        return _nothing(why)
    policy = _policy(operation)
    if policy is not None:
        telling.unstuck(policy)
    result = telling.shortened_record(operation, names)
    if not why:
        return Finished(f"{done} of {len(planned)} topics", result)
    said = f"stopped after {done} of {len(planned)} topics: {why}"
    return Finished(said, {**result, "said": said})


def _why_not(operation: Operation) -> str:
    """Why retention is not to be shortened any more; empty: it is."""
    instance, policy = instance_fresh(operation.target), _policy(operation)
    if policy is None:
        return ANOTHER
    if instance.state != InstanceState.RUNNING:
        return GONE
    return "" if _is_reached(instance, policy) else NOT_NEEDED


def _shorten_topic(operation: Operation, instance: Instance, name: str, topic_id: str, step: planning.Step) -> None:
    """Unless it is done, or its owner was faster.

    Another worker may be here, too, when a lease has run out. The row is read before the topic: whoever then finds the topic as
    it was planned knows a row that no worker of this operation had finished.
    """
    row = _row(instance, name)
    if row is not None and not row.is_of(topic_id):
        row.delete()
        row = None
    if row is not None and row.set_by == operation.id and row.now_ms == step.to_ms and row.next_ms is None:
        return
    try:
        own_ms = _own_ms(instance, name)
    except NotFound:
        return
    if own_ms != step.own_ms:
        row = _row(instance, name)
        if row is not None and own_ms == step.to_ms and row.is_ours(own_ms):  # by an attempt whose answer was lost
            _is_set(row, operation, step)
        return
    if row is None or not (row.is_ours(own_ms) or (row.now_ms is None and row.own_ms == own_ms)):
        if row is not None:  # its owner has set something else since
            row.delete()
        row = ShortenedTopic(
            organisation_id=instance.organisation_id,
            instance=instance,
            topic=name,
            own_ms=own_ms,
            before_ms=step.before_ms,
            since=SYSTEM_CLOCK.now(),
        )
    elif row.is_ours(own_ms):
        row.now_ms = own_ms
    row.topic_id, row.set_by, row.next_ms = topic_id or row.topic_id, operation.id, step.to_ms
    row.save()
    try:
        topics.config_set(instance.cluster.address, instance.id, name, {RETENTION_MS: str(step.to_ms)})
    except NotFound:  # the topic was deleted meanwhile
        row.delete()
        return
    _is_set(row, operation, step)


def _is_set(row: ShortenedTopic, operation: Operation, step: planning.Step) -> None:
    row.now_ms, row.next_ms, row.set_by = step.to_ms, None, operation.id
    shortened_of(row.instance_id).filter(pk=row.pk).update(now_ms=row.now_ms, next_ms=None, set_by=row.set_by)


def _row(instance: Instance, name: str) -> ShortenedTopic | None:
    found: ShortenedTopic | None = shortened_of(instance.id).filter(topic=name).first()
    return found


def _own_ms(instance: Instance, name: str) -> int | None:
    """What is set for a topic at this moment; None: nothing. Raises NotFound, ClusterUnavailable."""
    found = topics.config(instance.cluster.address, instance.id, name).get(RETENTION_MS)
    return None if found is None else int(found)


def tell(operation: Operation) -> Finished:
    """Owners, by e-mail."""
    found = operation.result or {}
    if not found.get("shortened"):
        return Finished("nothing was shortened")
    was_told = telling.shortened_tell(operation)
    return Finished("" if was_told else "owners were written to lately")


def put_back(operation: Operation) -> Finished | NotYet:
    """Every topic that still has what the policy set gets what it had; what its owner has set meanwhile stays."""
    if running_of(operation.target).filter(kind=rules.SHORTENING).exists():
        return NotYet("retention is being shortened, which stops before its next topic")
    instance = instance_fresh(operation.target)
    done: int = (operation.result or {}).get("put_back", 0)
    why = _why_not_back(operation, instance)
    if not why:
        until, cluster = looking.Deadline(looking.part_of_lease()), instance.cluster.address
        rows = list(shortened_of(instance.id).order_by("topic"))
        listed = set(topics.names_listed(cluster, [instance.id])[instance.id])
        ids = topics.ids(cluster, instance.id, [row.topic for row in rows if row.topic in listed])
        for row in rows:
            if until.is_over:
                return NotYet(f"topics put back: {done}", result={"put_back": done})
            done += _put_back_topic(instance, row, ids.get(row.topic, ""), is_listed=row.topic in listed)
        put_back_is_done(instance.id)
    elif not done:
        return _nothing(why)
    audit.record_about(instance, operation.actor or audit.SYSTEM, "instance.policy.put_back", {"topics": done})
    said = f"stopped after {done} topics: {why}" if why else f"retention is as it was before (topics: {done})"
    return Finished("", {"said": said})


def _why_not_back(operation: Operation, instance: Instance) -> str:
    """Why retention is not to be put back any more; empty: it is."""
    if instance.state in (InstanceState.DELETING, InstanceState.DELETED):
        return GONE
    if not operation.arguments.get("for_room"):
        return ""
    policy = _policy(operation)
    if policy is None:
        return ANOTHER
    used, bought = measuring.used_bytes(instance), round(instance.storage_gib * GIB)
    return "" if rules.has_room(policy.level_percent, used, bought) else FULL_AGAIN


def _put_back_topic(instance: Instance, row: ShortenedTopic, topic_id: str, *, is_listed: bool) -> bool:
    """Whether it was put back; its row is gone afterwards. Raises ClusterUnavailable."""
    if not shortened_of(instance.id).filter(pk=row.pk).exists():
        return False  # another worker has done it
    is_back = False
    try:
        if is_listed and row.is_of(topic_id) and row.is_ours(_own_ms(instance, row.topic)):
            own = None if row.own_ms is None else str(row.own_ms)
            topics.config_set(instance.cluster.address, instance.id, row.topic, {RETENTION_MS: own})
            is_back = True
    except NotFound as error:  # deleted meanwhile, or a broker that has just begun does not know it yet
        if row.topic in topics.names_listed(instance.cluster.address, [instance.id])[instance.id]:
            raise ClusterUnavailable("the brokers do not say yet how long every topic keeps records") from error
    row.delete()
    return is_back


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
