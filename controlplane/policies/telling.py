"""Owners are written to about what a policy did, or could not do. In transactions that have locked the row of the policy.

``told_at`` is written with each mail: a step that is repeated finds it behind its operation's beginning, and writes none.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Q

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.models import Operation
from controlplane.instances import telling
from controlplane.policies import letters, rules
from controlplane.policies.models import DiskPolicy
from controlplane.policies.rules import Loss
from controlplane.policies.services import TAKES_EFFECT, set_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from controlplane.instances.letters import About
    from controlplane.mail.letter import Letter

MOST_NAMES = 100
"""Of topics that are kept with an operation and on record."""
RETELL = timedelta(hours=24)
RETELL_LOSSES = timedelta(hours=1)
STUCK_FOR = timedelta(minutes=30)
"""What could not be done is tried again after so long; what passes by itself, at the next look."""
AT_ITS_MOST, AT_ITS_MOST_FOR = "policy_at_its_most", timedelta(hours=6)
"""What will be the same until somebody changes the policy."""
PASSING = ("cluster_unavailable", "master_unavailable", "concurrent_change", "too_many_operations", "policy_too_late")


def policy_locked(instance_id: str) -> DiskPolicy | None:
    """The row until the transaction ends; None: there is none."""
    rows = DiskPolicy.objects.unscoped("an operation names its target")
    rows = rows.select_related("instance__organisation", "instance__cluster", "organisation")
    return rows.select_for_update(of=("self",)).filter(pk=instance_id).first()


@transaction.atomic
def shortened_tell(operation: Operation, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Once when it begins; from then on once a day, or once an hour while groups lose what they have not read.

    What was done is in the operation's result.
    """
    found = operation.result or {}
    records, lost, is_first = found["records"], found["lost"], found["is_first"]
    topics, names = found["shortened"], found.get("shortened_topics", ())
    losses = [Loss(**each) for each in found["losses"]]
    policy = policy_locked(operation.target)
    if policy is None or _was_told(policy, operation):
        return False
    now = clock.now()
    pause = RETELL_LOSSES if lost else RETELL
    if not is_first and policy.told_at is not None and now < policy.told_at + pause:
        return False
    level, at = policy.level_percent, operation.created_at

    def compose(about: About) -> Letter:
        return letters.shortened(
            about,
            level_percent=level,
            topics=topics,
            names=names,
            records=records,
            lost=lost,
            losses=losses,
            at=at,
        )

    _tell(policy, compose, now)
    return True


def shortened_record(operation: Operation, names: Sequence[str], *, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """Retention of these topics was shortened, maybe of fewer than was planned: on record; what is the operation's result.

    What comes next waits until this has had its effect.
    """
    found, then = operation.result or {}, clock.now() + TAKES_EFFECT
    rows = DiskPolicy.objects.unscoped("an operation names its target").filter(pk=operation.target)
    policy = rows.select_related("organisation").first()
    if policy is None or not names:
        return {"shortened": len(names), "topics": {}}
    rows.filter(Q(acts_next_at=None) | Q(acts_next_at__lt=then), revision=operation.arguments["revision"]).update(
        acts_next_at=then
    )
    detail = {name: found.get(name) for name in ("steps", "records", "lost")}
    named = sorted(names)[:MOST_NAMES]
    audit.record(
        organisation=policy.organisation,
        actor=audit.SYSTEM,
        action="instance.policy.shorten",
        target=operation.target,
        detail={"topics": len(names), "names": named, **detail},
    )
    # The plan is carried out, and long: whoever lists operations does not need it.
    return {"shortened": len(names), "shortened_topics": named, "topics": {}}


def expanded_tell(policy: DiskPolicy, *, before_gib: float, after_gib: float, price: str, at: datetime) -> None:
    """Each time: it costs money. The row is locked."""
    most = policy.max_storage_gib or after_gib

    def compose(about: About) -> Letter:
        return letters.expanded(about, before_gib=before_gib, after_gib=after_gib, most_gib=most, price=price, at=at)

    _tell(policy, compose, at)


def stuck(operation: Operation, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """An operation of a policy has failed: the policy says why, and is looked at again later. In that transaction."""
    if operation.kind == rules.SHORTENING and "shortened" not in (operation.result or {}):
        _half_way(operation, clock)
    policy = policy_locked(operation.target)
    if policy is None or policy.revision != operation.arguments.get("revision"):
        return  # there is another policy since
    now, is_passing = clock.now(), operation.error_code in PASSING
    is_new = policy.problem != operation.error
    if is_new:
        policy.problem, policy.problem_at = operation.error, now
    if not is_passing:
        later = now + (AT_ITS_MOST_FOR if operation.error_code == AT_ITS_MOST else STUCK_FOR)
        policy.acts_next_at = max(later, policy.acts_next_at or later)
    policy.save(update_fields=["problem", "problem_at", "acts_next_at"])
    if is_passing or not (is_new or policy.told_at is None or now >= policy.told_at + RETELL):
        return
    problem = operation.error

    def compose(about: About) -> Letter:
        return letters.stuck(about, problem=problem if about.name else "", at=now)

    _tell(policy, compose, now)


def _half_way(operation: Operation, clock: Clock) -> None:
    """What was shortened before it failed, those topics as well of which the cluster's answer is missing."""
    names = list(set_by(operation).values_list("topic", flat=True))
    if not names:
        return
    operation.result = {**(operation.result or {}), **shortened_record(operation, names, clock=clock)}
    rows = Operation.objects.unscoped("it fails in this transaction")
    rows.filter(pk=operation.pk).update(result=operation.result)
    shortened_tell(operation, clock=clock)


def unstuck(policy: DiskPolicy) -> None:
    """It has acted, or need not any more."""
    DiskPolicy.objects.unscoped("an operation names its target").filter(pk=policy.pk, revision=policy.revision).update(
        problem="", problem_at=None
    )


def _was_told(policy: DiskPolicy, operation: Operation) -> bool:
    return policy.told_at is not None and policy.told_at >= operation.created_at


def _tell(policy: DiskPolicy, compose: Callable[[About], Letter], now: datetime) -> None:
    telling.owners_tell(policy.instance, compose, now)
    policy.told_at = now
    policy.save(update_fields=["told_at"])
