"""Looking at every alarm: what is watched is read, and what the machine makes of it is written with its events and messages.

Instances are taken a hundred at a time. For each hundred the readings come first, which ask clusters and must not hold a
lock. Then one transaction locks the alarms, lets the machine go one step, and writes states, events and messages: a number
of queries that does not depend on how many alarms there are. Of two workers at once the second waits for the lock, and finds
alarms that were looked at after its own reading, which it leaves as they are: nothing happens twice, and nothing is told
twice. An alarm that was looked at later than it is now was looked at by a clock that was ahead: it is taken up where it is.

An alarm that flaps is told a few times an hour. What is more is held back as by a silence (`delivery/limits.py`): receivers are
told how it is when there is room again, and other alarms are told meanwhile.

What is wrong with one alarm keeps no other from being looked at: where a hundred cannot be written, they are tried by halves.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import OperationalError, transaction

from controlplane.alarms.delivery import outbox, words
from controlplane.alarms.delivery.limits import held_back
from controlplane.alarms.machine import EventKind, Look, Telling, looked, set_back
from controlplane.alarms.models import STATE, Alarm, AlarmEvent
from controlplane.alarms.readings import NOTHING, readings_get
from controlplane.alarms.rules import Missing
from controlplane.clusters.services import cluster_observe
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.instances.models import Instance, InstanceState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from controlplane.alarms.machine import Step
    from controlplane.alarms.readings import Reading
    from controlplane.clusters.coordination import ObservedCluster

LOG = logging.getLogger(__name__)
AT_ONCE = 100
WRITTEN_AT_ONCE = 500
AHEAD = timedelta(minutes=1)
"""So far clocks of workers may be apart."""
_REASON = "everyone's alarms are looked at"


@dataclass(frozen=True, slots=True)
class Looked:
    """An alarm, already as the step says. `detail`: what health says of the reason that it watches."""

    alarm: Alarm
    step: Step
    detail: str = ""
    has_new_value: bool = False


def evaluate(*, clock: Clock = SYSTEM_CLOCK) -> Counter[str]:
    """Look at every alarm of every instance that runs; how many there were, by phase."""
    alarms = Alarm.objects.unscoped(_REASON).filter(enabled=True, deleted_at=None)
    running = Instance.objects.unscoped(_REASON).filter(state=InstanceState.RUNNING)
    names = sorted(set(alarms.filter(instance__in=running.values("pk")).values_list("instance_id", flat=True)))
    observed: dict[int, ObservedCluster | None] = {}
    found: Counter[str] = Counter()
    for some in portions(names, AT_ONCE):
        part = list(running.filter(pk__in=some).select_related("cluster", "organisation"))
        for instance in part:
            if instance.cluster_id not in observed:
                observed[instance.cluster_id] = cluster_observe(instance.cluster)
        at = clock.now()
        ours = alarms.filter(instance__in=[each.pk for each in part])
        of_groups = ours.exclude(group=None).values_list("instance_id", "group")
        groups = {(instance, group) for instance, group in of_groups if group is not None}
        readings = readings_get(part, groups=sorted(groups), observed=observed, clock=clock)
        wanted = list(ours.values_list("pk", flat=True))
        found += _looked_at(wanted, {each.pk: each for each in part}, readings, at, clock)
    return found


def _looked_at(
    wanted: Sequence[str],
    instances: Mapping[str, Instance],
    readings: Mapping[str, Reading],
    at: datetime,
    clock: Clock,
) -> Counter[str]:
    if not wanted:
        return Counter()
    try:
        return _written(wanted, instances, readings, at, clock)
    except OperationalError:
        raise  # the database is away: that is nobody's alarm's fault
    except Exception:
        if len(wanted) == 1:
            LOG.exception("alarm %s cannot be looked at", wanted[0])
            return Counter()
    half = len(wanted) // 2
    first, second = wanted[:half], wanted[half:]
    return _looked_at(first, instances, readings, at, clock) + _looked_at(second, instances, readings, at, clock)


@transaction.atomic
def _written(
    wanted: Sequence[str],
    instances: Mapping[str, Instance],
    readings: Mapping[str, Reading],
    at: datetime,
    clock: Clock,
) -> Counter[str]:
    rows = Alarm.objects.unscoped(_REASON).filter(pk__in=wanted, enabled=True, deleted_at=None)
    alarms = list(rows.select_for_update().order_by("pk"))
    latest = clock.now() + AHEAD
    for alarm in alarms:
        if alarm.looked_at is not None and alarm.looked_at > latest:
            alarm.take(set_back(alarm.condition, at))
    due = [alarm for alarm in alarms if alarm.looked_at is None or alarm.looked_at < at]
    done = _looks(due, readings, at)
    _keep(done, at)
    happened(done, instances, at)
    return Counter(alarm.phase for alarm in alarms)


def _looks(alarms: Sequence[Alarm], readings: Mapping[str, Reading], at: datetime) -> list[Looked]:
    steps = [_step(alarm, readings, at, is_silenced=is_silenced(alarm, at)) for alarm in alarms]
    telling = [
        alarm for alarm, step in zip(alarms, steps, strict=True) if any(one.tells is not None for one in step.happened)
    ]
    held = held_back([(alarm.pk, alarm.receivers) for alarm in telling], at=at)
    done = []
    for alarm, loud in zip(alarms, steps, strict=True):
        step = _step(alarm, readings, at, is_silenced=True) if alarm.pk in held else loud
        reading = readings.get(alarm.instance_id, NOTHING)
        alarm.take(step.condition)
        before, found = (alarm.value, alarm.missing), reading.of(alarm.rule)
        alarm.value, alarm.missing = (None, found.value) if isinstance(found, Missing) else (found, "")
        has_new_value = before != (alarm.value, alarm.missing)
        done.append(Looked(alarm, step, reading.details.get(alarm.watch, ""), has_new_value))
    return done


def _step(alarm: Alarm, readings: Mapping[str, Reading], at: datetime, *, is_silenced: bool) -> Step:
    rule = alarm.rule
    found = readings.get(alarm.instance_id, NOTHING).of(rule)
    look = Look(at, None if isinstance(found, Missing) else rule.holds(found), is_silenced=is_silenced)
    return looked(alarm.condition, look, duration_s=rule.duration_s, repeat_s=rule.repeat_s)


def _keep(done: Sequence[Looked], at: datetime) -> None:
    """Most looks change nothing but a value and the time: that is three updates, however many alarms there are."""
    rows = Alarm.objects.unscoped(_REASON)
    changed = [each.alarm for each in done if each.step.happened]
    same = [each for each in done if not each.step.happened]
    rows.bulk_update(changed, STATE, batch_size=WRITTEN_AT_ONCE)
    rows.filter(pk__in=[each.alarm.pk for each in same]).update(looked_at=at)
    rows.filter(pk__in=[each.alarm.pk for each in same if each.alarm.seen_at == at]).update(seen_at=at)
    rows.bulk_update(
        [each.alarm for each in same if each.has_new_value], ["value", "missing"], batch_size=WRITTEN_AT_ONCE
    )


def is_silenced(alarm: Alarm, at: datetime) -> bool:
    """Whether messages are held back at that moment."""
    return alarm.silenced_until is not None and at < alarm.silenced_until


def happened(done: Sequence[Looked], instances: Mapping[str, Instance], at: datetime, *, actor: str = "") -> None:
    """Write what happened to these alarms, and the messages. In the transaction that writes their states."""
    events: list[AlarmEvent] = []
    told = []
    for each in done:
        alarm = each.alarm
        for one in each.step.happened:
            event = AlarmEvent(
                organisation_id=alarm.organisation_id,
                instance_id=alarm.instance_id,
                alarm=alarm,
                name=alarm.name,
                kind=one.kind.value,
                at=at,
                value=alarm.value,
                actor=actor,
            )
            events.append(event)
            if one.tells is not None and alarm.receivers:
                document = _document(each, instances[alarm.instance_id], one.tells, one.kind, at)
                told.append((event, alarm.receivers, document))
    if events:
        AlarmEvent.objects.unscoped(_REASON).bulk_create(events, batch_size=WRITTEN_AT_ONCE)
        outbox.write(told, at=at)


def stepped(alarm: Alarm, step: Step) -> Looked:
    """For `happened`: an alarm whose rule was changed by a person."""
    alarm.take(step.condition)
    return Looked(alarm, step)


def _document(each: Looked, instance: Instance, telling: Telling, kind: EventKind, at: datetime) -> dict[str, object]:
    alarm = each.alarm
    return words.alarm_document(
        telling=telling,
        at=at,
        place=place_of(instance),
        alarm_id=alarm.pk,
        name=alarm.name,
        rule=alarm.rule,
        value=alarm.value,
        since=alarm.firing_since,
        is_repeated=kind is EventKind.TOLD,
        detail=each.detail,
    )


def place_of(instance: Instance) -> dict[str, dict[str, str]]:
    """Whose instance it is, for a message."""
    organisation = instance.organisation
    return {
        "organisation": {"id": organisation.pk, "name": organisation.name},
        "instance": {"id": instance.pk, "name": instance.name},
    }
