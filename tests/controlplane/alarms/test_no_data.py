"""That there are no values is told where the rule wants it, and then how it is when there are some again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.alarms.delivery.words import email_of
from controlplane.alarms.evaluation import evaluate
from controlplane.alarms.machine import Condition, Look, Phase, Telling, looked, reset
from controlplane.alarms.models import Alarm, Delivery

from .rows import alarm_row, receiver_row

ROWS = "a test"
START = datetime(2026, 11, 24, tzinfo=UTC)
EVERY = timedelta(seconds=30)


def driven(
    *held: bool | None, wanted: bool = True, repeat_s: int | None = None, duration_s: int = 0, **silenced: set[int]
):
    """What was told at which look, from 1 on, and the condition in the end."""
    condition, told = Condition(since=START, seen_at=START), []
    for number, holds in enumerate(held, 1):
        look = Look(START + number * EVERY, holds, number in silenced.get("silent", ()))
        step = looked(condition, look, duration_s=duration_s, repeat_s=repeat_s, tells_no_data=wanted)
        condition = step.condition
        told += [(number, each.tells) for each in step.happened if each.tells is not None]
    return told, condition


def test_after_90_seconds_without_a_value_it_is_told_once_and_then_how_it_is():
    told, condition = driven(False, *[None] * 10, False, False)
    assert told == [(4, Telling.NO_DATA), (12, Telling.RESOLVED)]
    assert (condition.told_no_data, condition.told) == (False, False)


def test_one_that_fires_is_told_as_firing_again_when_it_still_does():
    told, _ = driven(True, *[None] * 5, True)
    assert told == [(1, Telling.FIRING), (4, Telling.NO_DATA), (7, Telling.FIRING)]


def test_one_that_fired_is_told_as_over_when_it_is():
    told, condition = driven(True, *[None] * 5, False)
    assert told == [(1, Telling.FIRING), (4, Telling.NO_DATA), (7, Telling.RESOLVED)]
    assert condition.phase is Phase.OK


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([True] * 5, (9, Telling.FIRING)),
        ([True, True, False], (7, Telling.RESOLVED)),
        ([True, True, None, None, None, False], (10, Telling.RESOLVED)),
    ],
)
def test_while_it_holds_but_not_for_long_enough_yet_nobody_is_told_that_it_is_over(held, expected):
    told, _ = driven(*[None] * 4, *held, duration_s=120)
    assert told == [(3, Telling.NO_DATA), expected]


def test_who_does_not_want_it_is_not_told():
    assert driven(False, *[None] * 10, False, wanted=False)[0] == []


def test_it_is_repeated_as_a_message_that_it_fires_is():
    told, _ = driven(*[None] * 25, repeat_s=300)
    assert told == [(3, Telling.NO_DATA), (13, Telling.NO_DATA), (23, Telling.NO_DATA)]


def test_a_silence_holds_it_back_and_what_is_over_in_it_is_never_told():
    assert driven(*[None] * 5, False, silent={1, 2, 3, 4, 5})[0] == []
    assert driven(*[None] * 6, silent={1, 2, 3, 4, 5})[0] == [(6, Telling.NO_DATA)]


def test_a_rule_that_is_another_one_now_is_told_as_over():
    _, condition = driven(*[None] * 5)
    step = reset(condition, START + 6 * EVERY, is_silenced=False)
    assert [each.tells for each in step.happened if each.tells] == [Telling.RESOLVED]
    assert not step.condition.told_no_data


def test_a_rule_that_wants_it_no_more_is_not_told_as_over_before_there_is_a_value():
    _, condition = driven(*[None] * 5)
    for number, (holds, expected) in enumerate([(None, None), (False, Telling.RESOLVED)], 6):
        step = looked(condition, Look(START + number * EVERY, holds), duration_s=0, repeat_s=300)
        assert next((each.tells for each in step.happened if each.tells), None) is expected
        condition = step.condition


@given(
    st.lists(st.tuples(st.sampled_from([True, False, None]), st.booleans()), max_size=80),
    st.sampled_from([0, 60, 300]),
    st.booleans(),
)
def test_what_receivers_know_is_how_it_is_after_each_look_without_a_silence(looks, duration_s, wanted):
    condition, knows = Condition(since=START, seen_at=START), Telling.RESOLVED
    for number, (holds, silent) in enumerate(looks, 1):
        look = Look(START + number * EVERY, holds, silent)
        step = looked(condition, look, duration_s=duration_s, repeat_s=None, tells_no_data=wanted)
        condition = step.condition
        told = [each.tells for each in step.happened if each.tells is not None]
        assert len(told) <= (0 if silent else 1)
        waits = condition.phase is Phase.PENDING and knows is Telling.NO_DATA  # it holds, not for long enough yet
        assert not (waits and told)
        knows = told[0] if told else knows
        assert condition.last_told is knows
        if not silent:
            fires = Telling.FIRING if condition.firing_since is not None else Telling.RESOLVED
            has_none = (wanted and condition.phase is Phase.NO_DATA) or waits
            assert knows is (Telling.NO_DATA if has_none else fires)


@pytest.fixture
def look(clock, sampled, storage):
    def look(*percents: float | None) -> None:
        for percent in percents:
            storage.percent = percent
            clock.advance(30)
            sampled(clock)
            evaluate(clock=clock)

    return look


@pytest.mark.parametrize(("wanted", "expected"), [(True, ["alarm.no_data", "alarm.resolved"]), (False, [])])
def test_receivers_are_told_if_the_alarm_says_so(instance, clock, look, wanted, expected):
    receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    alarm_row(instance, receivers=["rcv-000000000001"], tell_no_data=wanted, **moments)
    look(10, None, None, None, None, 10, 10)
    messages = [row.document for row in Delivery.objects.unscoped(ROWS).order_by("created_at")]
    assert [each["type"] for each in messages] == expected
    if wanted:
        text = messages[0]["data"]["text"]
        assert text == (
            "Storage used is not known. Nothing was sampled in the last 30 seconds. "
            "The alarm fires at: storage used at least 90 %."
        )
        assert email_of(messages[0]).subject == "[No data] storage: events"
        assert messages[1]["data"]["text"] == (
            "There are values again: storage used is 10 %. The alarm does not fire; it fires at: storage used at least 90 %."
        )


def test_of_a_reason_that_is_full_again_nobody_is_told_the_contrary(instance, clock, look):
    """The master is back and the storage is full: that is told in ten minutes, and not that it is over before that."""
    receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    reason = {"watch": "storage_full", "comparison": None, "threshold": None, "duration_s": 600}
    alarm_row(instance, receivers=["rcv-000000000001"], tell_no_data=True, **moments, **reason)
    look(10, *[None] * 4, *[100] * 5, 10)
    texts = [row.document["data"]["text"] for row in Delivery.objects.unscoped(ROWS).order_by("created_at")]
    assert texts == [
        "Whether it holds is not known. No flow master knows the instance now. The alarm fires when: storage is full for 10 min.",
        "Its state is known again, and the alarm does not fire. It fires when: storage is full for 10 min.",
    ]


def test_one_that_fired_before_there_were_no_values_is_told_as_over(instance, clock, look):
    receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    alarm_row(instance, receivers=["rcv-000000000001"], tell_no_data=True, **moments)
    look(95, *[None] * 4, 10)
    last = Delivery.objects.unscoped(ROWS).order_by("created_at").last().document["data"]
    assert last["text"] == "Storage used is 10 %. The alarm is over; it fires at: storage used at least 90 %."


def test_one_that_fired_in_a_silence_alone_is_not_told_as_over(instance, clock, look):
    """Nobody heard that it fires; what they heard is that there are no values."""
    receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    until = clock.now() + timedelta(seconds=160)
    alarm_row(instance, receivers=["rcv-000000000001"], tell_no_data=True, silenced_until=until, **moments)
    look(95, *[None] * 8, 10)
    texts = [row.document["data"]["text"] for row in Delivery.objects.unscoped(ROWS).order_by("created_at")]
    assert len(texts) == 2
    assert texts[1] == (
        "There are values again: storage used is 10 %. The alarm does not fire; it fires at: storage used at least 90 %."
    )


def test_of_one_that_fired_it_is_said_that_it_is_not_over(instance, clock, look):
    receiver_row(instance)
    moments = dict.fromkeys(("created_at", "since", "seen_at"), clock.now())
    alarm_row(instance, receivers=["rcv-000000000001"], tell_no_data=True, **moments)
    look(95, None, None, None, None)
    last = Delivery.objects.unscoped(ROWS).order_by("created_at").last().document
    assert last["type"] == "alarm.no_data"
    assert "It was firing, and is not over." in last["data"]["text"]
    assert Alarm.objects.unscoped(ROWS).get().firing_since is not None
