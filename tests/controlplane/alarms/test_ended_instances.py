"""Alarms of an instance that was isolated or deleted are over, and whoever knew that they fire is told so, and why."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.alarms import evaluation
from controlplane.alarms.evaluation import evaluate
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery
from controlplane.alarms.readings import Reading
from controlplane.instances.models import Instance

from .rows import alarm_row, receiver_row

ROWS = "a test"
RECEIVER = "rcv-000000000001"


@pytest.fixture
def firing(instance, clock):
    """An alarm that fires, and has been told."""
    receiver_row(instance)
    return alarm_row(
        instance,
        receivers=[RECEIVER],
        phase="firing",
        firing_since=clock.now(),
        told=True,
        told_at=clock.now(),
        value=95.0,
    )


def becomes(state: str) -> None:
    Instance.objects.unscoped(ROWS).update(state=state)


def now() -> Alarm:
    return Alarm.objects.unscoped(ROWS).get()


def told() -> list[dict]:
    return [row.document for row in Delivery.objects.unscoped(ROWS).order_by("created_at", "pk")]


@pytest.mark.parametrize(
    ("state", "ended", "said"),
    [
        ("isolated", "isolated", "The instance was deleted, or is not paid for any more"),
        ("deleting", "deleted", "The instance was deleted."),
        ("deleted", "deleted", "The instance was deleted."),
    ],
)
def test_receivers_are_told_that_it_is_over_and_what_became_of_the_instance(firing, clock, state, ended, said):
    becomes(state)
    clock.advance(30)
    evaluate(clock=clock)
    (document,) = told()
    assert (document["type"], document["data"]["instance_ended"]) == ("alarm.resolved", ended)
    assert document["data"]["text"].startswith(said)
    assert document["data"]["text"].endswith("So the alarm is over; it fires at: storage used at least 90 %.")
    assert (now().phase, now().firing_since, now().told, now().value) == ("ok", None, False, None)
    assert [row.kind for row in AlarmEvent.objects.unscoped(ROWS)] == ["resolved"]
    clock.advance(30)
    evaluate(clock=clock)
    assert len(told()) == 1, "once"


def test_one_that_has_no_data_though_it_fired_is_over_as_well(firing, clock):
    Alarm.objects.unscoped(ROWS).update(phase="no_data")
    becomes("isolated")
    clock.advance(30)
    evaluate(clock=clock)
    assert [each["type"] for each in told()] == ["alarm.resolved"]


@pytest.mark.parametrize("members", [{"phase": "pending"}, {}])
def test_who_was_told_nothing_is_told_nothing(instance, clock, members):
    receiver_row(instance)
    alarm_row(instance, receivers=[RECEIVER], **members)
    becomes("deleting")
    evaluate(clock=clock)
    assert (told(), now().phase) == ([], "ok")


@pytest.mark.parametrize("state", ["running", "creating", "failed", "restoring"])
def test_in_other_states_it_goes_on_firing(firing, clock, state):
    becomes(state)
    evaluation.end_of_gone(clock=clock)
    assert (told(), now().told) == ([], True)


def test_a_silence_holds_it_back_until_it_ends(firing, clock):
    Alarm.objects.unscoped(ROWS).update(silenced_until=clock.now() + timedelta(seconds=100))
    becomes("isolated")
    clock.advance(30)
    evaluate(clock=clock)
    assert (told(), now().phase, now().firing_since) == ([], "ok", None)
    clock.advance(100)
    evaluate(clock=clock)
    assert [each["type"] for each in told()] == ["alarm.resolved"]


def test_one_that_cannot_be_ended_keeps_no_other_from_it(firing, instance, clock, monkeypatch):
    alarm_row(instance, "alm-000000000002", receivers=[RECEIVER], phase="firing", firing_since=clock.now(), told=True)
    real = evaluation.ended

    def broken(alarm, *given, **named):
        if alarm.pk == firing.pk:
            raise ValueError("its row is broken")
        return real(alarm, *given, **named)

    monkeypatch.setattr(evaluation, "ended", broken)
    becomes("deleting")
    assert evaluation.end_of_gone(clock=clock) == 1
    assert [each["data"]["alarm"]["id"] for each in told()] == ["alm-000000000002"]


def test_an_instance_that_was_restored_meanwhile_is_left_alone(firing, clock, monkeypatch):
    """The worker has chosen the alarm, and somebody restores the instance before it has the lock."""
    becomes("isolated")
    real = evaluation._end

    def late(*given):
        becomes("running")
        return real(*given)

    monkeypatch.setattr(evaluation, "_end", late)
    assert evaluation.end_of_gone(clock=clock) == 0
    assert (told(), now().told) == ([], True)


def test_after_it_was_restored_the_alarm_begins_anew(firing, clock, storage, sampled):
    becomes("isolated")
    evaluate(clock=clock)
    becomes("running")
    storage.percent = 95
    clock.advance(30)
    sampled(clock)
    evaluate(clock=clock)
    assert [each["type"] for each in told()] == ["alarm.resolved", "alarm.firing"]


def test_of_a_reason_the_message_says_when_it_fires(firing, clock):
    Alarm.objects.unscoped(ROWS).update(watch="route_down", comparison=None, threshold=None)
    becomes("deleting")
    clock.advance(30)
    evaluate(clock=clock)
    (document,) = told()
    assert document["data"]["text"].endswith("So the alarm is over; it fires when: a route is not served.")


def test_a_look_that_read_before_the_end_does_not_make_it_fire_again(firing, instance, clock):
    """A slow worker has read that the storage is full; meanwhile the instance is isolated, and another worker ends its alarms."""
    read_at = clock.now() + timedelta(seconds=1)
    readings = {instance.pk: Reading({("storage_used_percent", None): 95.0})}
    becomes("isolated")
    clock.advance(30)
    evaluate(clock=clock)
    assert [each["type"] for each in told()] == ["alarm.resolved"]
    for state in ("isolated", "running"):  # also where somebody has restored it since
        becomes(state)
        evaluation._written([firing.pk], {instance.pk: instance}, readings, read_at, clock)
        assert (now().phase, len(told())) == ("ok", 1)


def test_a_look_at_an_instance_that_does_not_run_any_more_changes_nothing(firing, instance, clock):
    becomes("isolated")
    clock.advance(30)
    readings = {instance.pk: Reading({("storage_used_percent", None): 5.0})}
    evaluation._written([firing.pk], {instance.pk: instance}, readings, clock.now(), clock)
    assert (now().phase, told()) == ("firing", []), "its end is told with what became of the instance"
