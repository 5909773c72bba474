"""What is old goes, in portions; what is of an instance that is gone ends."""

from __future__ import annotations

from datetime import timedelta

from controlplane.alarms import evaluation, upkeep
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery, Receiver, ThrottledSpell
from controlplane.clusters.models import BrokerAbsence
from controlplane.health.models import HealthSpell
from controlplane.instances.models import Instance

from .rows import absence, alarm_row, event_row, receiver_row, throttled

ROWS = "a test"


def delivery(receiver, key, at, state="sent"):
    Delivery(
        id=key, organisation=receiver.organisation, instance=receiver.instance, receiver=receiver, address="a",
        kind="test", document={}, state=state, next_attempt_at=at, created_at=at,
    ).save(force_insert=True)  # fmt: skip


def test_what_is_older_than_90_days_goes_and_the_rest_stays(instance, clock):
    now = clock.now()
    alarm, receiver = alarm_row(instance), receiver_row(instance)
    for days in (1, 89, 91, 200):
        at = now - timedelta(days=days)
        event_row(alarm, at=at)
        delivery(receiver, f"dlv-{days:012}", at)
        HealthSpell.objects.create(instance=instance.pk, code="storage_full", title="t", began_at=at, ended_at=at)
        throttled(instance, at - timedelta(hours=1), at)
        absence(instance, at - timedelta(hours=1), at, broker=days)
    absence(instance, now - timedelta(days=300))
    HealthSpell.objects.create(instance=instance.pk, code="route_down", title="t", began_at=now - timedelta(days=300))
    alarm_row(instance, "alm-000000000002", deleted_at=now - timedelta(days=91))
    assert upkeep.keep_up(clock=clock) == 11
    assert ThrottledSpell.objects.count() == 2
    assert BrokerAbsence.objects.count() == 3, "who has not come back is still away"
    assert AlarmEvent.objects.unscoped(ROWS).count() == Delivery.objects.unscoped(ROWS).count() == 2
    assert HealthSpell.objects.count() == 3, "one that has not ended stays"
    assert Alarm.objects.unscoped(ROWS).count() == 1
    assert upkeep.keep_up(clock=clock) == 0


def test_it_goes_in_portions(instance, clock, monkeypatch):
    monkeypatch.setattr(upkeep, "PORTION", 3)
    monkeypatch.setattr(upkeep, "PORTIONS", 2)
    alarm = alarm_row(instance)
    for number in range(8):
        event_row(alarm, at=clock.now() - timedelta(days=100, minutes=number))
    assert [upkeep.keep_up(clock=clock) for _ in range(3)] == [6, 2, 0]


def test_a_message_that_waits_is_not_forgotten(instance, clock):
    delivery(receiver_row(instance), "dlv-000000000001", clock.now() - timedelta(days=100), state="waiting")
    assert upkeep.keep_up(clock=clock) == 0


def test_what_is_of_an_instance_that_is_gone_ends(instance, clock):
    receiver = receiver_row(instance)
    alarm_row(instance, receivers=[receiver.pk], phase="firing", firing_since=clock.now(), told=True)
    delivery(receiver, "dlv-000000000001", clock.now(), state="waiting")
    Instance.objects.unscoped(ROWS).update(state="deleted")
    upkeep.keep_up(clock=clock)
    assert Alarm.objects.unscoped(ROWS).get().deleted_at == clock.now()
    messages = Delivery.objects.unscoped(ROWS)
    assert messages.get(kind="test").error == "the instance was deleted"
    over = messages.get(kind="alarm")
    assert (over.state, over.document["type"]) == ("waiting", "alarm.resolved")
    assert Receiver.objects.unscoped(ROWS).exists(), "it is told first that the alarm is over"
    messages.filter(pk=over.pk).update(state="sent")
    upkeep.keep_up(clock=clock)
    assert not Receiver.objects.unscoped(ROWS).exists()


def test_a_receiver_that_nobody_waits_for_goes_with_its_instance(instance, clock):
    receiver = receiver_row(instance)
    alarm_row(instance, receivers=[receiver.pk])
    Instance.objects.unscoped(ROWS).update(state="deleted")
    upkeep.keep_up(clock=clock)
    assert Alarm.objects.unscoped(ROWS).get().deleted_at == clock.now()
    assert not Receiver.objects.unscoped(ROWS).exists()
    assert not Delivery.objects.unscoped(ROWS).exists()


def test_what_a_silence_holds_back_is_told_when_it_ends_though_the_instance_is_deleted(instance, clock):
    """Whoever was paged a week ago is told that it is over: the alarm and its receiver stay for as long as that takes."""
    receiver, until = receiver_row(instance), clock.now() + timedelta(days=7)
    alarm_row(
        instance, receivers=[receiver.pk], phase="firing", firing_since=clock.now(), told=True, silenced_until=until
    )
    receiver_row(instance, "rcv-000000000002", name="other")
    Instance.objects.unscoped(ROWS).update(state="deleted")
    for _ in range(3):
        upkeep.keep_up(clock=clock)
        clock.advance(86_400)
    messages = Delivery.objects.unscoped(ROWS)
    assert (messages.count(), Alarm.objects.unscoped(ROWS).get().deleted_at) == (0, None)
    assert Receiver.objects.unscoped(ROWS).count() == 2
    clock.advance(5 * 86_400)
    upkeep.keep_up(clock=clock)
    over = messages.get()
    assert (over.receiver_id, over.document["type"]) == (receiver.pk, "alarm.resolved")
    assert Alarm.objects.unscoped(ROWS).get().deleted_at == clock.now()
    assert list(Receiver.objects.unscoped(ROWS).values_list("pk", flat=True)) == [receiver.pk]
    messages.update(state="sent")
    upkeep.keep_up(clock=clock)
    assert not Receiver.objects.unscoped(ROWS).exists()


def test_an_alarm_of_a_deleted_instance_that_could_not_be_ended_is_tried_again(instance, clock, monkeypatch):
    receiver = receiver_row(instance)
    alarm_row(instance, receivers=[receiver.pk], phase="firing", firing_since=clock.now(), told=True)
    Instance.objects.unscoped(ROWS).update(state="deleted")
    with monkeypatch.context() as broken:
        broken.setattr(evaluation, "ENDED_AT_ONCE", 0)
        upkeep.keep_up(clock=clock)
    assert Alarm.objects.unscoped(ROWS).get().deleted_at is None
    upkeep.keep_up(clock=clock)
    assert Delivery.objects.unscoped(ROWS).get().document["type"] == "alarm.resolved"
