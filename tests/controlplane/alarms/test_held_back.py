"""A receiver that has got too many messages is held back alone, and is told how it is when it has room again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.alarms import services
from controlplane.alarms.delivery.limits import MOST_PER_HOUR
from controlplane.alarms.delivery.words import email_of
from controlplane.alarms.evaluation import evaluate
from controlplane.alarms.models import Alarm, Delivery

from .rows import alarm_row, receiver_row

ROWS = "a test"
BUSY, CALM = "rcv-000000000001", "rcv-000000000002"


@pytest.fixture
def alarm(instance, clock):
    for number in (1, 2):
        receiver_row(instance, f"rcv-{number:012}")
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    return alarm_row(instance, receivers=[BUSY, CALM], **moments)


@pytest.fixture
def look(clock, sampled, storage):
    """`look(95)`: 30 s later, at so many percent of the storage; None: no master says it."""

    def look(*percents: float | None) -> None:
        for percent in percents:
            storage.percent = percent
            clock.advance(30)
            sampled(clock)
            evaluate(clock=clock)

    return look


@pytest.fixture
def busy(instance, clock):
    """Of budgets it has got all that an hour has, half an hour ago."""

    def busy(receiver: str = BUSY) -> None:
        at = clock.now() - timedelta(minutes=30)
        Delivery.objects.unscoped(ROWS).bulk_create(
            Delivery(
                id=f"dlv-{receiver[-4:]}{number:08}", organisation=instance.organisation, instance=instance,
                receiver_id=receiver, address="a", kind="budget", document={}, state="sent", next_attempt_at=at, created_at=at,
            )
            for number in range(MOST_PER_HOUR)
        )  # fmt: skip

    return busy


def told(receiver: str) -> list[str]:
    rows = Delivery.objects.unscoped(ROWS).filter(receiver=receiver, kind="alarm").order_by("created_at", "pk")
    return [row.document["type"].removeprefix("alarm.") for row in rows]


def now() -> Alarm:
    return Alarm.objects.unscoped(ROWS).get()


def test_the_others_are_told_at_once_and_the_busy_one_when_it_has_room(alarm, look, busy):
    busy()
    look(95)
    assert (told(BUSY), told(CALM)) == ([], ["firing"])
    assert (now().told, now().owed) == (True, {BUSY: "resolved"})
    look(*[95] * 58)
    assert told(BUSY) == []
    look(95, 95, 95)
    assert (told(BUSY), told(CALM)) == (["firing"], ["firing"])
    assert now().owed == {}


def test_what_began_and_ended_while_it_was_busy_it_never_hears_of(alarm, look, busy):
    busy()
    look(95, 50)
    assert (told(BUSY), told(CALM)) == ([], ["firing", "resolved"])
    look(*[50] * 70)
    assert (told(BUSY), now().owed) == ([], {})


def test_who_knows_it_as_firing_hears_in_the_end_that_it_is_over(alarm, look, busy):
    look(95)
    busy()
    look(50)
    assert (told(BUSY), told(CALM), now().owed) == (["firing"], ["firing", "resolved"], {BUSY: "firing"})
    look(*[50] * 70)
    assert (told(BUSY), told(CALM)) == (["firing", "resolved"], ["firing", "resolved"])


def test_where_all_are_busy_the_alarm_waits_as_in_a_silence(alarm, look, busy):
    busy()
    busy(CALM)
    look(95)
    assert (told(BUSY), told(CALM), now().told, now().owed) == ([], [], False, {})
    look(*[95] * 62)
    assert (told(BUSY), told(CALM)) == (["firing"], ["firing"])


def test_a_silence_holds_back_what_is_owed_as_well(alarm, look, busy, clock):
    busy()
    look(95)
    Alarm.objects.unscoped(ROWS).update(silenced_until=clock.now() + timedelta(hours=2))
    look(*[95] * 100)
    assert told(BUSY) == []
    look(*[95] * 150)
    assert told(BUSY) == ["firing"]


def test_when_it_is_deleted_only_those_are_told_who_know_it_as_firing(alarm, look, busy, alice, instance, clock):
    busy()
    look(95)
    clock.advance(1)
    services.alarm_delete(
        organisation=alice.organisation, actor="alice", instance_id=instance.pk, alarm_id=alarm.pk, clock=clock
    )
    assert (told(BUSY), told(CALM)) == ([], ["firing", "resolved"])


def test_when_it_is_deleted_who_missed_its_end_hears_of_it(alarm, look, busy, alice, instance, clock):
    look(95)
    busy()
    look(50)
    Delivery.objects.unscoped(ROWS).filter(kind="budget").delete()
    clock.advance(1)
    services.alarm_delete(
        organisation=alice.organisation, actor="alice", instance_id=instance.pk, alarm_id=alarm.pk, clock=clock
    )
    assert (told(BUSY), told(CALM)) == (["firing", "resolved"], ["firing", "resolved"])


def test_a_receiver_that_is_no_longer_named_is_owed_nothing(alarm, look, busy):
    busy()
    look(95)
    Alarm.objects.unscoped(ROWS).update(receivers=[CALM])
    look(*[95] * 70)
    assert (told(BUSY), now().owed) == ([], {})


def test_what_a_receiver_hears_for_the_first_time_is_not_told_as_repeated(alarm, look, busy):
    Alarm.objects.unscoped(ROWS).update(repeat_s=3600)
    busy()
    look(*[95] * 62)
    rows = Delivery.objects.unscoped(ROWS).filter(kind="alarm").order_by("created_at", "pk")
    first = next(row.document for row in rows if row.receiver_id == BUSY)
    assert first["data"]["is_repeated"] is False
    assert email_of(first).subject == "[Firing] storage: events"


def test_of_a_repetition_each_is_told_whether_it_is_one_to_him(alarm, look, busy):
    """The one was held back until the very look at which the other is told again."""
    Alarm.objects.unscoped(ROWS).update(repeat_s=1770)
    busy()
    look(*[95] * 60)
    rows = Delivery.objects.unscoped(ROWS).filter(kind="alarm").order_by("created_at", "pk")
    said = {
        name: [row.document["data"]["is_repeated"] for row in rows if row.receiver_id == name] for name in (BUSY, CALM)
    }
    assert said == {BUSY: [False], CALM: [False, True]}


def test_what_is_told_after_a_silence_is_no_repetition(alarm, look, clock):
    Alarm.objects.unscoped(ROWS).update(silenced_until=clock.now() + timedelta(seconds=100))
    look(*[95] * 5)
    first = Delivery.objects.unscoped(ROWS).filter(kind="alarm").first()
    assert first.document["data"]["is_repeated"] is False


def test_who_was_not_told_that_there_are_no_values_is_not_told_so_once_there_are(alarm, look, busy):
    """The busy one gets room while the condition holds, but not for long enough yet."""
    Alarm.objects.unscoped(ROWS).update(tell_no_data=True, duration_s=3000)
    busy()
    look(10, *[None] * 4)
    assert (told(BUSY), told(CALM), now().owed) == ([], ["no_data"], {BUSY: "resolved"})
    look(*[95] * 70)
    assert (now().phase, told(BUSY)) == ("pending", [])
    look(*[95] * 40)
    assert (told(BUSY), told(CALM)) == (["firing"], ["no_data", "firing"])
