"""Looking at every alarm: what is watched is read, and what the machine makes of it is written with its events and messages.

Instances are taken a hundred at a time. For each hundred the readings come first, which ask clusters and must not hold a
lock. Then one transaction locks the alarms, lets the machine go one step, and writes states, events and messages: a number
of queries that does not depend on how many alarms there are. Of two workers at once the second waits for the lock, and finds
alarms that were looked at after its own reading, which it leaves as they are: nothing happens twice, and nothing is told
twice. An alarm that was looked at later than it is now was looked at by a clock that was ahead: it is taken up where it is.

An alarm that flaps is told a few times an hour. What is more is held back as by a silence (`delivery/limits.py`): receivers are
told how it is when there is room again, and other alarms are told meanwhile. A receiver that gets too many messages is held back
alone: the others are told, the alarm remembers what that one was told last (`Alarm.owed`), and it is told how it is when it has
room again.

Of the largest of all groups, and of unread records, a group that is not seen for a while is not taken for one that is well, nor
is one whose unread bytes, or their age, are not known: while such an alarm fires, and would be over but for what that group had
last, there is no value (`_doubt`). A group that was deleted counts for nothing; where it was the last one, nothing is unread.

Alarms of an instance that was isolated or deleted end (`end_of_gone`), and receivers that know one as firing are told that it is
over, and why: otherwise an incident that a program opened for it would never be closed.

What is wrong with one alarm keeps no other from being looked at: where a hundred cannot be written, they are tried by halves.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import OperationalError, transaction
from django.db.models import Q

from controlplane.alarms.delivery import outbox, words
from controlplane.alarms.delivery.limits import with_room
from controlplane.alarms.machine import EventKind, Happened, Look, Phase, Telling, looked, reset, set_back
from controlplane.alarms.models import STATE, Alarm, AlarmEvent
from controlplane.alarms.readings import NOTHING, UNKNOWN, Watches, readings_get
from controlplane.alarms.rules import MISSING, OF_ANY_GROUP, Missing
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
ENDED_AT_ONCE = 500
AHEAD = timedelta(minutes=1)
"""So far clocks of workers may be apart."""
GONE = {
    InstanceState.ISOLATED.value: "isolated",
    InstanceState.DELETING.value: "deleted",
    InstanceState.DELETED.value: "deleted",
}
"""States in which alarms of an instance end, and what messages say has become of it: `delivery.words.ENDED`."""
IS_OVER = Q(phase=Phase.OK, firing_since=None, told=False, told_no_data=False, owed={})
"""Nothing fires, and nobody is to be told anything more."""
_REASON = "everyone's alarms are looked at"


@dataclass(frozen=True, slots=True)
class Looked:
    """An alarm, already as the step says. `detail`: what health says of the reason that it watches, or why there is no value.

    `receivers`: their ids, who are told of it; `knew`: what each of them was told last, one of `Telling`; `told`: whether it was
    told as firing before there were no values; `ended`: of an instance that is gone one of GONE's values.
    """

    alarm: Alarm
    step: Step
    receivers: Sequence[str]
    detail: str = ""
    has_new_value: bool = False
    ended: str = ""
    knew: Mapping[str, str] = field(default_factory=dict)
    told: bool = False


def evaluate(*, clock: Clock = SYSTEM_CLOCK) -> Counter[str]:
    """Look at every alarm of every instance that runs; how many there were, by phase. Those of instances that are gone end."""
    end_of_gone(clock=clock)
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
        fire = ours.exclude(firing_since=None).values_list("instance_id", "watch")
        watched = Watches.of(ours.values_list("instance_id", "watch", "group", "topic"), firing=fire)
        readings = readings_get(part, watched=watched, observed=observed, clock=clock)
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
    running = rows.filter(instance__state=InstanceState.RUNNING)  # of one that is gone meanwhile they have ended
    alarms = list(running.select_for_update(of=("self",)).order_by("pk"))
    latest = clock.now() + AHEAD
    for alarm in alarms:
        if alarm.looked_at is not None and alarm.looked_at > latest:
            alarm.take(set_back(alarm.condition, at))
    due = [alarm for alarm in alarms if alarm.looked_at is None or alarm.looked_at < at]
    done = _looks(due, readings, at)
    _keep(done, at)
    happened(done, instances, at)
    return Counter(alarm.phase for alarm in alarms)


def end_of_gone(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """End what fires, or was told, of instances that are isolated or deleted; how many alarms that were.

    What a silence holds back is told when it ends. One that cannot be ended is logged, and keeps no other from it.
    """
    rows = Alarm.objects.unscoped(_REASON).filter(deleted_at=None, instance__state__in=list(GONE)).exclude(IS_OVER)
    at = clock.now()
    loud = rows.exclude(silenced_until__gt=at, phase=Phase.OK, firing_since=None)  # the others have nothing to say yet
    count = 0
    for name in list(loud.order_by("pk").values_list("pk", flat=True)[:ENDED_AT_ONCE]):
        try:
            count += _end(name, at)
        except OperationalError:
            raise
        except Exception:
            LOG.exception("alarm %s cannot be ended", name)
    return count


@transaction.atomic
def _end(name: str, at: datetime) -> bool:
    """Whether it has ended now: another worker, or a person who restored the instance, may have been faster."""
    row = Alarm.objects.unscoped(_REASON).select_for_update(of=("self",)).filter(pk=name, deleted_at=None)
    alarm = row.select_related("instance__organisation").first()
    if alarm is None or alarm.instance.state not in GONE:
        return False
    done = ended(alarm, at, because=GONE[alarm.instance.state])
    alarm.save(force_update=True, update_fields=STATE)
    happened([done], {alarm.instance_id: alarm.instance}, at)
    return True


def ended(alarm: Alarm, at: datetime, *, because: str = "") -> Looked:
    """Over, whatever it watched: with whoever has to be told. It is the caller's to save, and to hand on to `happened`.

    It counts as a look: one whose values are older comes too late.
    """
    told, last = alarm.told, _last_told(alarm)
    quiet = is_silenced(alarm, at)
    step = reset(alarm.condition, at, is_silenced=quiet)
    receivers = [name for name in alarm.receivers if last[name] != Telling.RESOLVED.value]
    if not quiet:
        if receivers and not any(one.tells for one in step.happened):  # these alone have not heard yet that it is over
            step = replace(step, happened=(*step.happened, Happened(EventKind.TOLD, Telling.RESOLVED)))
        alarm.owed = {}
    alarm.take(replace(step.condition, looked_at=at))
    alarm.value, alarm.value_of, alarm.missing = None, "", ""
    return Looked(alarm, step, receivers, ended=because, knew=last, told=told)


def _last_told(alarm: Alarm) -> dict[str, str]:
    """By receiver: what it was told last."""
    knew = alarm.condition.last_told.value
    return {name: alarm.owed.get(name, knew) for name in alarm.receivers}


def _looks(alarms: Sequence[Alarm], readings: Mapping[str, Reading], at: datetime) -> list[Looked]:
    steps = [_step(alarm, readings, at, is_silenced=is_silenced(alarm, at)) for alarm in alarms]
    wanted = [(alarm.pk, _to_be_told(alarm, step, at)) for alarm, step in zip(alarms, steps, strict=True)]
    room = with_room(wanted, at=at)
    done = []
    for alarm, loud, (_, receivers) in zip(alarms, steps, wanted, strict=True):
        now = room.get(alarm.pk, [])
        if receivers and not now and _tells(loud) is not None:  # as a silence would
            step, told = _step(alarm, readings, at, is_silenced=True), []
        else:
            step, told = _paid(alarm, loud, now), now
        owed = _owed(alarm, step, receivers, told)
        reading = readings.get(alarm.instance_id, NOTHING)
        before, found = (alarm.value, alarm.value_of, alarm.missing, alarm.owed), _found(alarm, readings)
        was_told, last, doubt = alarm.told, _last_told(alarm), _doubt(alarm, reading)
        value_of = _value_of(alarm, reading, found, doubt)
        alarm.take(step.condition)
        alarm.value, alarm.missing = (None, found.value) if isinstance(found, Missing) else (found, "")
        alarm.value_of, alarm.owed = value_of, owed
        detail = reading.details.get(alarm.watch, "")
        if isinstance(found, Missing) and step.condition.last_told is Telling.NO_DATA:
            detail = MISSING[found] if doubt is None else words.doubt_text(*doubt)
        has_new_value = before != (alarm.value, alarm.value_of, alarm.missing, alarm.owed)
        done.append(Looked(alarm, step, told, detail, has_new_value, knew=last, told=was_told))
    return done


def _tells(step: Step) -> Telling | None:
    return next((one.tells for one in step.happened if one.tells is not None), None)


def _to_be_told(alarm: Alarm, step: Step, at: datetime) -> list[str]:
    """Who has to hear of it now: all, of a change; of what was held back, those alone who do not know yet how it is."""
    tells, knew = _tells(step), alarm.condition.last_told
    if tells is not None:
        # Who never heard that it fires has nothing to hear of its end.
        return [
            name for name in alarm.receivers if tells.value != alarm.owed.get(name) or tells is not Telling.RESOLVED
        ]
    if is_silenced(alarm, at):
        return []
    if step.condition.phase is Phase.PENDING and knew is Telling.NO_DATA:
        return []  # there is a value again: to say that there is none would be wrong, and it does not fire yet
    return [name for name in alarm.receivers if alarm.owed.get(name, knew.value) != knew.value]


def _paid(alarm: Alarm, step: Step, receivers: Sequence[str]) -> Step:
    """With a message to those who were held back, if they have room again and nothing else is told."""
    if not receivers or _tells(step) is not None:
        return step
    return replace(step, happened=(*step.happened, Happened(EventKind.TOLD, alarm.condition.last_told)))


def _owed(alarm: Alarm, step: Step, wanted: Sequence[str], told: Sequence[str]) -> dict[str, str]:
    """Who does not know how it is after a step, with what each was told last; those who are told in it do."""
    knew, knows = alarm.condition.last_told.value, step.condition.last_told.value
    last = {name: alarm.owed.get(name, knew) for name in {*wanted, *alarm.owed} if name in alarm.receivers}
    return {name: text for name, text in last.items() if name not in told and text != knows}


def _step(alarm: Alarm, readings: Mapping[str, Reading], at: datetime, *, is_silenced: bool) -> Step:
    rule, found = alarm.rule, _found(alarm, readings)
    look = Look(at, None if isinstance(found, Missing) else rule.holds(found), is_silenced=is_silenced)
    return looked(
        alarm.condition,
        look,
        duration_s=rule.duration_s,
        repeat_s=rule.repeat_s,
        tells_no_data=rule.tells_no_data,
    )


def _found(alarm: Alarm, readings: Mapping[str, Reading]) -> float | Missing:
    """The value. While it fires, what is not known of a group keeps the alarm from being over, and is no value."""
    reading = readings.get(alarm.instance_id, NOTHING)
    found, doubt = reading.of(alarm.rule), _doubt(alarm, reading)
    if doubt is not None:
        return doubt[0]
    if found is Missing.NO_GROUP and alarm.firing_since is not None and alarm.value_of in reading.deleted:
        return 0.0  # nobody is left who has not read
    return found


def _doubt(alarm: Alarm, reading: Reading) -> tuple[Missing, str] | None:
    """Of an alarm that fires, and would be over by what is known: why it may not be, and the group for which it may not.

    A group that is not seen now may have what it had last. So may one whose figure is not known: the one that the alarm fires for
    as long as nobody knows, any other for an hour.
    """
    found, rule = reading.of(alarm.rule), alarm.rule
    if alarm.firing_since is None or isinstance(found, Missing) or rule.holds(found):
        return None
    unseen = reading.unseen.get(rule.watch)
    if unseen is not None and rule.holds(unseen[0]):
        return Missing.NO_GROUP, unseen[1]
    unknown = reading.unknown.get(rule.watch, {})
    if alarm.value_of in unknown:
        return UNKNOWN[OF_ANY_GROUP[rule.watch]], alarm.value_of
    last = [(value, group) for group, value in unknown.items() if value is not None and rule.holds(value)]
    return (UNKNOWN[OF_ANY_GROUP[rule.watch]], max(last)[1]) if last else None


def _value_of(alarm: Alarm, reading: Reading, found: float | Missing, doubt: tuple[Missing, str] | None) -> str:
    """The group whose value it is, or for which there is none. While nothing is known, an alarm that fires keeps what it has."""
    if doubt is not None:
        return doubt[1]
    if isinstance(found, Missing):
        return alarm.value_of if alarm.firing_since is not None else ""
    return reading.whose.get(alarm.watch, "")


def _keep(done: Sequence[Looked], at: datetime) -> None:
    """Most looks change nothing but a value and the time: that is three updates, however many alarms there are."""
    rows = Alarm.objects.unscoped(_REASON)
    changed = [each.alarm for each in done if each.step.happened]
    same = [each for each in done if not each.step.happened]
    rows.bulk_update(changed, STATE, batch_size=WRITTEN_AT_ONCE)
    rows.filter(pk__in=[each.alarm.pk for each in same]).update(looked_at=at)
    rows.filter(pk__in=[each.alarm.pk for each in same if each.alarm.seen_at == at]).update(seen_at=at)
    rows.bulk_update(
        [each.alarm for each in same if each.has_new_value],
        ["value", "value_of", "missing", "owed"],
        batch_size=WRITTEN_AT_ONCE,
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
            if one.tells is None:
                continue
            for last in Telling:
                ours = [name for name in each.receivers if each.knew.get(name) == last.value]
                if ours:
                    told.append((event, ours, _document(each, instances[alarm.instance_id], one.tells, last, at)))
    if events:
        AlarmEvent.objects.unscoped(_REASON).bulk_create(events, batch_size=WRITTEN_AT_ONCE)
        outbox.write(told, at=at)


def _document(each: Looked, instance: Instance, telling: Telling, last: Telling, at: datetime) -> dict[str, object]:
    """For those who were told `last` the last time."""
    alarm = each.alarm
    return words.alarm_document(
        telling=telling,
        at=at,
        place=place_of(instance),
        alarm_id=alarm.pk,
        name=alarm.name,
        rule=alarm.rule,
        value=alarm.value,
        value_of=alarm.value_of,
        since=alarm.firing_since,
        is_repeated=telling is last,
        is_back=telling is Telling.RESOLVED and last is Telling.NO_DATA and not each.told and alarm.value is not None,
        detail=each.detail,
        ended=each.ended,
    )


def place_of(instance: Instance) -> dict[str, dict[str, str]]:
    """Whose instance it is, for a message."""
    organisation = instance.organisation
    return {
        "organisation": {"id": organisation.pk, "name": organisation.name},
        "instance": {"id": instance.pk, "name": instance.name},
    }
