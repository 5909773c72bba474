"""Alarms are made, changed, silenced and deleted.

Whoever changes a rule holds the lock on its row, as evaluation does. When what is watched, the threshold or the duration is
another one, or the alarm is switched off or deleted, it begins anew: what fired by the rule before is over, and receivers that
were told of it are told that.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.alarms.evaluation import ended, happened
from controlplane.alarms.models import Alarm, Receiver
from controlplane.alarms.rules import FIGURES, LONGEST_SILENCE_S, MOST_RULES, OF_GROUPS, OF_TOPICS, rule_problems
from controlplane.core import audit, ids
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, LimitReached, NotFound
from controlplane.instances.models import Instance, InstanceState
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from controlplane.alarms.rules import Figure
    from controlplane.tenants.models import Organisation

DEFAULTS: Mapping[str, Any] = {
    "comparison": None,
    "threshold": None,
    "group": None,
    "topic": None,
    "duration_s": 0,
    "repeat_s": None,
    "tell_no_data": False,
    "receivers": (),
    "enabled": True,
}
RULE = ("name", "watch", *DEFAULTS)
BEGINS_ANEW = ("watch", "comparison", "threshold", "group", "topic", "duration_s", "enabled")
"""Members of a rule by which another one it becomes another alarm."""


@transaction.atomic
def alarm_create(
    *, organisation: Organisation, actor: str, instance_id: str, clock: Clock = SYSTEM_CLOCK, **members: Any
) -> Alarm:
    """A new alarm, looked at within 30 s. Raises NotFound, Invalid, Conflict, LimitReached."""
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    rows = Alarm.objects.for_organisation(organisation).filter(instance=instance, deleted_at=None)
    if rows.count() >= MOST_RULES:
        raise LimitReached(f"an instance has at most {MOST_RULES} alarms", code="too_many_alarms")
    now = clock.now()
    alarm = Alarm(
        id=ids.alarm_id(random.SystemRandom()),
        organisation=organisation,
        instance=instance,
        created_at=now,
        since=now,
        seen_at=now,
        **_checked(instance, {**DEFAULTS, **members}),
    )
    alarm.save(force_insert=True)
    _audit(alarm, actor, "create", clock, _said(alarm))
    return alarm


@transaction.atomic
def alarm_update(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    alarm_id: str,
    changes: Mapping[str, Any],
    check: Callable[[Alarm], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Alarm:
    """Another rule. `check` is told the alarm that is to be another. Raises NotFound, Invalid, Conflict."""
    if not changes:
        raise Invalid("nothing to change: give a member of the rule")
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    alarm = _locked(organisation, instance, alarm_id)
    if check is not None:
        check(alarm)
    before = _said(alarm)
    wanted = {**before, **changes}
    if "watch" in changes and wanted["watch"] not in FIGURES:
        # What was compared with the figure before means nothing for a reason.
        wanted |= {name: changes.get(name) for name in ("comparison", "threshold")}
    elif _is_measured_otherwise(before["watch"], wanted["watch"]):
        # 90 of % is no 90 of bytes: it would fire at once, or never.
        wanted["threshold"] = changes.get("threshold")
    if "watch" in changes and wanted["watch"] not in OF_GROUPS:
        wanted["group"] = changes.get("group")
    if "watch" in changes and wanted["watch"] not in OF_TOPICS:
        wanted["topic"] = changes.get("topic")
    after = _checked(instance, wanted)
    if after == before:
        return alarm
    if any(after[name] != before[name] for name in BEGINS_ANEW):
        _begin_anew(alarm, instance, actor, clock.now())
    for name in RULE:
        setattr(alarm, name, after[name])
    alarm.save(force_update=True)
    _audit(alarm, actor, "update", clock, audit.changed(before, after))
    return alarm


@transaction.atomic
def alarm_silence(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    alarm_id: str,
    until: datetime | None,
    clock: Clock = SYSTEM_CLOCK,
) -> Alarm:
    """No messages until then; None: messages again. Its state goes on meanwhile. Raises NotFound, Invalid, Conflict."""
    _check_silence(until, clock.now())
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    alarm = _locked(organisation, instance, alarm_id)
    _silence(alarm, actor, until, clock)
    return alarm


@transaction.atomic
def alarms_silence(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    until: datetime | None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Alarm]:
    """The same of all alarms that the instance has now, in the order in which they were made.

    Who has silenced one for longer meant it: that stays. None ends every silence. Raises NotFound, Invalid, Conflict.
    """
    _check_silence(until, clock.now())
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    rows = Alarm.objects.for_organisation(organisation).filter(instance=instance, deleted_at=None)
    alarms = list(rows.select_for_update().order_by("pk"))
    for alarm in alarms:
        if until is None or alarm.silenced_until is None or alarm.silenced_until < until:
            _silence(alarm, actor, until, clock)
    return sorted(alarms, key=lambda alarm: (alarm.created_at, alarm.pk))


@transaction.atomic
def alarm_delete(
    *,
    organisation: Organisation,
    actor: str,
    instance_id: str,
    alarm_id: str,
    check: Callable[[Alarm], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """It is looked at no more. What it said stays in the instance's events. `check` is told the alarm.

    Raises NotFound, Conflict.
    """
    instance = instance_locked(organisation=organisation, instance_id=instance_id)
    alarm = _locked(organisation, instance, alarm_id)
    if check is not None:
        check(alarm)
    _begin_anew(alarm, instance, actor, clock.now())
    alarm.deleted_at = clock.now()
    alarm.save(force_update=True)
    _audit(alarm, actor, "delete", clock, _said(alarm))


def instance_locked(*, organisation: Organisation, instance_id: str) -> Instance:
    """The instance, until the end of the transaction: its alarms and receivers are counted and changed by one at a time.

    Raises NotFound, and Conflict for one that is on its way out.
    """
    instance_get(organisation=organisation, instance_id=instance_id)
    rows = Instance.objects.for_organisation(organisation).select_related("organisation")
    # Whoever evaluates alarms has locked them first, and writes events that refer to the instance: with a lock on its key each
    # would wait for the other.
    instance = rows.select_for_update(of=("self",), no_key=True).get(pk=instance_id)
    if instance.state in (InstanceState.DELETING, InstanceState.DELETED):
        raise Conflict("the instance is being deleted", code="instance_deleting")
    return instance


def _locked(organisation: Organisation, instance: Instance, alarm_id: str) -> Alarm:
    rows = Alarm.objects.for_organisation(organisation).filter(instance=instance, deleted_at=None)
    alarm = rows.select_for_update().filter(pk=alarm_id).first()
    if alarm is None:
        raise NotFound(f"no alarm {alarm_id}")
    return alarm


def _check_silence(until: datetime | None, now: datetime) -> None:
    """Raises Invalid."""
    if until is not None and not now < until <= now + timedelta(seconds=LONGEST_SILENCE_S):
        raise Invalid.field("until", f"must be in the future, and at most {LONGEST_SILENCE_S // 86_400} days away")


def _silence(alarm: Alarm, actor: str, until: datetime | None, clock: Clock) -> None:
    """Of a row that is locked; where it is so already nothing happens."""
    before, alarm.silenced_until = alarm.silenced_until, until
    if before == until:
        return
    alarm.save(force_update=True, update_fields=["silenced_until"])
    was, now_until = (None if each is None else each.isoformat() for each in (before, until))
    _audit(alarm, actor, "silence", clock, {"until": {"from": was, "to": now_until}})


def _is_measured_otherwise(before: str, after: str) -> bool:
    """Whether a threshold of the one figure means nothing, or something else, for the other."""
    one, other = FIGURES.get(before), FIGURES.get(after)
    return one is not None and other is not None and _kind(one) != _kind(other)


def _kind(figure: Figure) -> tuple[str, bool, bool, bool, bool]:
    return figure.unit, figure.of_group, figure.of_topic, bool(figure.any_of), bool(figure.any_broker)


def _begin_anew(alarm: Alarm, instance: Instance, actor: str, at: datetime) -> None:
    """With the rule that it had so far: messages speak of that one. It is the caller's to save."""
    happened([ended(alarm, at)], {instance.pk: instance}, at, actor=actor)


def _checked(instance: Instance, members: Mapping[str, Any]) -> dict[str, Any]:
    """As a row has them. Raises Invalid with everything that is wrong."""
    found = {name: members[name] for name in RULE}
    found["receivers"] = list(found["receivers"])
    known = Receiver.objects.unscoped("the caller has found the instance").filter(instance=instance)
    problems = rule_problems(found, receivers=known.values_list("pk", flat=True))
    if problems:
        raise Invalid.fields(problems)
    return {**found, "name": found["name"].strip()}


def _said(alarm: Alarm) -> dict[str, Any]:
    return {name: getattr(alarm, name) for name in RULE}


def _audit(alarm: Alarm, actor: str, action: str, clock: Clock, detail: dict[str, Any]) -> None:
    audit.record(
        organisation=alarm.organisation,
        actor=actor,
        action=f"alarm.{action}",
        target=f"{alarm.instance_id}/{alarm.pk}",
        detail=detail,
        clock=clock,
    )
