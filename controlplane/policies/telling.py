"""Owners are written to about what a policy did, or could not do. In transactions that have locked the row of the policy.

``told_at`` is written with each mail: a step that is repeated finds it behind its operation's beginning, and writes none.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances import telling
from controlplane.policies import letters
from controlplane.policies.models import DiskPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from controlplane.core.models import Operation
    from controlplane.instances.letters import About
    from controlplane.mail.letter import Letter
    from controlplane.policies.rules import Loss

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
def shortened_tell(
    operation: Operation,
    *,
    topics: int,
    records: int,
    lost: int,
    losses: Sequence[Loss],
    is_first: bool,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """Once when it begins; from then on once a day, or once an hour while groups lose what they have not read."""
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
            about, level_percent=level, topics=topics, records=records, lost=lost, losses=losses, at=at
        )

    _tell(policy, compose, now)
    return True


def expanded_tell(policy: DiskPolicy, *, before_gib: float, after_gib: float, price: str, at: datetime) -> None:
    """Each time: it costs money. The row is locked."""
    most = policy.max_storage_gib or after_gib

    def compose(about: About) -> Letter:
        return letters.expanded(about, before_gib=before_gib, after_gib=after_gib, most_gib=most, price=price, at=at)

    _tell(policy, compose, at)


def stuck(operation: Operation, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """An operation of a policy has failed: the policy says why, and is looked at again later. In that transaction."""
    policy = policy_locked(operation.target)
    if policy is None or policy.revision != operation.arguments.get("revision"):
        return  # there is another policy since
    now, is_passing = clock.now(), operation.error_code in PASSING
    is_new = policy.problem != operation.error
    if is_new:
        policy.problem, policy.problem_at = operation.error, now
    if not is_passing:
        policy.acts_next_at = now + (AT_ITS_MOST_FOR if operation.error_code == AT_ITS_MOST else STUCK_FOR)
    policy.save(update_fields=["problem", "problem_at", "acts_next_at"])
    if is_passing or not (is_new or policy.told_at is None or now >= policy.told_at + RETELL):
        return
    problem = operation.error

    def compose(about: About) -> Letter:
        return letters.stuck(about, problem=problem if about.name else "", at=now)

    _tell(policy, compose, now)


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
