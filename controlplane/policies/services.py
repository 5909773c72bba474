"""A policy is set, and what it has come to begins: an operation, one at a time for each instance.

The row of the policy is locked first, by whoever changes it, begins something because of it, or buys by it. So of two workers
that look at once the second finds that the next look is not due yet, and of a worker and a tenant who switches the policy off one
comes after the other: an operation carries the `revision` that it was begun under, and stops where there is another one.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import prepaid
from controlplane.admission import rules as sizes
from controlplane.admission.purchases import may_pay
from controlplane.admission.selectors import counted, plan_counted
from controlplane.admission.services import price_check
from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid
from controlplane.core.models import Operation, OperationState
from controlplane.instances.selectors import instance_running_get
from controlplane.instances.validation import MOST_STORAGE_GIB
from controlplane.policies import rules
from controlplane.policies.models import DiskPolicy, ShortenedTopic
from controlplane.policies.rules import EXPANSION, RETENTION, Act, Rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.admission.rules import Amounts
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

SETTLES = timedelta(minutes=5)
"""Brokers delete what has expired every five minutes: before that nobody can tell what an act has done."""
TAKES_EFFECT = SETTLES + timedelta(minutes=2)
"""After the last setting has arrived: each broker looks every five minutes, at a moment of its own, and reports a while later."""
POLICY_SET = "instance.policy.disk"


def policy_set(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    wanted: Rule,
    confirm_price: bool = False,
    check_rule: Callable[[Rule], None] | None = None,
    admit_paying: Callable[[], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> DiskPolicy:
    """What an instance does when its disk fills up. Said again, nothing happens. `check_rule` is told the rule of before.

    Where retention is shortened and the new policy does not shorten, or not so far, it is put back as it was. `admit_paying` as
    of purchases.instance_change: who pays nothing in advance has no policy buy what is paid so, now or later. Raises NotFound,
    Conflict, Invalid, PriceUnconfirmed, Forbidden.
    """
    pays = may_pay(admit_paying)

    def is_said(policy: DiskPolicy) -> bool:
        is_same = policy.rule == wanted and policy.confirm_price == confirm_price
        return is_same and (policy.pays_in_advance or not pays or wanted.policy != EXPANSION)

    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    rows = DiskPolicy.objects.unscoped("the instance was found within its organisation")
    present = rows.filter(pk=instance.pk).first()
    if present is not None and is_said(present):
        return present  # it may have bought up to its most since, and would not be asked for so again
    check(instance, wanted)
    if wanted.policy == EXPANSION and admit_paying is not None and prepaid.charged(instance, clock) is not None:
        admit_paying()
    if wanted.policy == EXPANSION and not confirm_price:
        now, then = amounts_at(instance, instance.storage_gib, clock), amounts_at(instance, most_of(wanted), clock)
        price_check(plan_counted(organisation, clock=clock), now, then)
    with transaction.atomic():
        rows.get_or_create(instance=instance, defaults={"organisation": organisation})
        policy = rows.select_for_update(of=("self",)).get(pk=instance.pk)
        before = policy.rule
        if check_rule is not None:
            check_rule(before)
        if is_said(policy):
            return policy
        paid = policy.pays_in_advance
        for name, value in asdict(wanted).items():
            setattr(policy, name, value)
        policy.confirm_price, policy.pays_in_advance = confirm_price, pays
        policy.revision += 1
        policy.acts_next_at, policy.problem, policy.problem_at = None, "", None
        policy.save()
        audit.record(
            organisation=organisation,
            actor=actor,
            action=POLICY_SET,
            target=instance.id,
            detail=audit.changed(
                {**asdict(before), "pays_in_advance": paid}, {**asdict(wanted), "pays_in_advance": pays}
            ),
            clock=clock,
        )
        if puts_back(before, wanted) and shortened_of(instance.id).exists():
            policy.to_put_back = True
            policy.save(update_fields=["to_put_back"])
            _put_back(policy, actor, clock)
    return policy


def check(instance: Instance, wanted: Rule) -> None:
    """Raises Invalid with everything that is wrong."""
    problems = rules.rule_problems(wanted, storage_gib=instance.storage_gib, most_gib=MOST_STORAGE_GIB)
    if problems:
        raise Invalid.fields(problems)


def most_of(rule: Rule) -> float:
    """Up to which size it buys."""
    assert rule.max_storage_gib is not None, "the rules ask for it"
    return rule.max_storage_gib


def amounts_at(instance: Instance, storage_gib: float, clock: Clock) -> Amounts:
    """What the instance would count as with another storage, its price a month included."""
    members = {name: getattr(instance, name) for name in sizes.SIZES}
    return counted({**members, sizes.STORAGE: storage_gib}, plan_counted(instance.organisation, clock=clock))


def puts_back(before: Rule, wanted: Rule) -> bool:
    """Whether what was shortened by a policy may be too short for the next, and is put back."""
    if wanted.policy != RETENTION or wanted.floor_minutes > before.floor_minutes:
        return True
    return wanted.spare_unread and not before.spare_unread


def shortened_of(instance_id: str) -> Any:
    """Topics of an instance whose retention is shortened."""
    return ShortenedTopic.objects.unscoped("the caller has found the instance").filter(instance=instance_id)


def set_by(operation: Operation) -> Any:
    """Topics that were shortened last by this operation; of some the cluster's answer may be missing (`next_ms`)."""
    return shortened_of(operation.target).filter(set_by=operation.id)


def shortened_forget(instance: Instance, topic: str, before: datetime) -> None:
    """Of a topic that was deleted: what was there before."""
    shortened_of(instance.pk).filter(topic=topic, since__lte=before).delete()


def put_back_is_done(instance_id: str) -> None:
    """All that was shortened is as it was."""
    DiskPolicy.objects.unscoped("an operation names its target").filter(pk=instance_id).update(to_put_back=False)


def running_of(instance_id: str) -> Any:
    """Operations of a policy that are under way."""
    rows = Operation.objects.unscoped("the caller has found the instance")
    return rows.filter(target=instance_id, kind__in=rules.KINDS, state=OperationState.RUNNING)


def _put_back(policy: DiskPolicy, actor: str, clock: Clock) -> None:
    """For a tenant: also while retention is being shortened, which stops.

    One that is under way does it all, but for one that was begun because there was room: that stops for the new policy. One that
    fails is followed by another from the next look (`to_put_back`).
    """
    under_way = running_of(policy.pk).filter(kind=rules.PUTTING_BACK)
    if all(operation.arguments.get("for_room") for operation in under_way):
        _start(policy, Act.PUT_BACK, actor, {}, clock)


@transaction.atomic
def act_begin(*, instance_id: str, act: Act, revision: int, clock: Clock = SYSTEM_CLOCK) -> Operation | None:
    """What a look has come to; None: another worker was faster, the policy is another one, or something is under way."""
    rows = DiskPolicy.objects.unscoped("by the clock").select_for_update(of=("self",))
    policy = rows.filter(pk=instance_id, revision=revision).first()
    now = clock.now()
    if policy is None or (policy.acts_next_at is not None and policy.acts_next_at > now):
        return None
    if running_of(instance_id).exists():
        return None
    policy.acts_next_at = now + SETTLES
    policy.save(update_fields=["acts_next_at"])
    is_for_room = act is Act.PUT_BACK and policy.policy == RETENTION and not policy.to_put_back
    arguments = {"for_room": True} if is_for_room else {}
    return _start(policy, act, audit.SYSTEM, arguments, clock)


def _start(policy: DiskPolicy, act: Act, actor: str, arguments: dict[str, Any], clock: Clock) -> Operation:
    return operations.start(
        organisation=policy.organisation,
        kind=act.value,
        target=policy.pk,
        actor=actor,
        arguments={"revision": policy.revision, **arguments},
        counted=False,
        clock=clock,
    )
