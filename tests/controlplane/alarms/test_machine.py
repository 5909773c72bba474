"""The state machine of an alarm: each way by an example, and what holds on every way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.alarms.machine import (
    NO_DATA_AFTER,
    Condition,
    EventKind,
    Happened,
    Look,
    Phase,
    Telling,
    looked,
    reset,
)

START = datetime(2026, 11, 24, tzinfo=UTC)
EVERY_S = 30


class Driven:
    """An alarm that is looked at every 30 s; `happened` has everything, with the number of the look."""

    def __init__(self, duration_s: int = 0, repeat_s: int | None = None) -> None:
        self.rule = {"duration_s": duration_s, "repeat_s": repeat_s}
        self.condition = Condition(since=START, seen_at=START)
        self.looks = 0
        self.happened: list[tuple[int, Happened]] = []

    @property
    def at(self) -> datetime:
        return START + timedelta(seconds=EVERY_S * self.looks)

    def look(self, *held: bool | None, is_silenced: bool = False) -> tuple[Happened, ...]:
        """Some looks; what happened at the last one."""
        for holds in held:
            self.looks += 1
            step = looked(self.condition, Look(self.at, holds, is_silenced), **self.rule)
            self.condition = step.condition
            self.happened += [(self.looks, each) for each in step.happened]
        return step.happened

    def reset(self, *, is_silenced: bool = False) -> tuple[Happened, ...]:
        self.looks += 1
        step = reset(self.condition, self.at, is_silenced=is_silenced)
        self.condition = step.condition
        return step.happened


FIRED, RESOLVED = Happened(EventKind.FIRED, Telling.FIRING), Happened(EventKind.RESOLVED, Telling.RESOLVED)


def test_without_a_duration_it_fires_at_the_first_look_that_finds_it():
    alarm = Driven()
    assert alarm.look(False) == ()
    assert alarm.look(True) == (FIRED,)
    assert alarm.condition.phase is Phase.FIRING
    assert alarm.look(True, True) == ()
    assert alarm.look(False) == (RESOLVED,)
    assert alarm.condition.phase is Phase.OK


def test_with_a_duration_it_is_pending_until_it_has_held_for_so_long():
    alarm = Driven(duration_s=90)
    assert alarm.look(True) == (Happened(EventKind.PENDING),)
    assert alarm.look(True, True) == ()
    assert alarm.look(True) == (FIRED,)
    assert alarm.condition.firing_since == START + timedelta(seconds=4 * EVERY_S)


def test_a_look_that_does_not_find_it_begins_the_time_anew_and_tells_nobody():
    alarm = Driven(duration_s=60)
    alarm.look(True, True)
    assert alarm.look(False) == (Happened(EventKind.CLEARED),)
    alarm.look(True, True)
    assert alarm.condition.phase is Phase.PENDING
    assert alarm.look(True) == (FIRED,)


def test_values_that_go_missing_do_not_resolve_what_fires():
    alarm = Driven()
    alarm.look(True)
    since = alarm.condition.firing_since
    assert alarm.look(None, None) == ()
    assert alarm.look(None) == (Happened(EventKind.NO_DATA),)
    assert alarm.condition.phase is Phase.NO_DATA
    assert alarm.condition.firing_since == since
    assert alarm.look(*[None] * 100) == ()
    assert alarm.look(True) == (Happened(EventKind.DATA),)
    assert (alarm.condition.phase, alarm.condition.since) == (Phase.FIRING, since)
    alarm.look(None, None, None)
    assert alarm.look(False) == (RESOLVED,)


def test_a_look_or_two_without_a_value_change_nothing_not_even_a_pending_time():
    alarm = Driven(duration_s=120)
    alarm.look(True)
    assert alarm.look(None, None, True) == ()
    assert alarm.condition.phase is Phase.PENDING
    assert alarm.look(True) == (FIRED,)


def test_values_that_go_missing_for_longer_take_a_pending_time_back():
    alarm = Driven(duration_s=600)
    alarm.look(True, None, None, None)
    assert alarm.condition.phase is Phase.NO_DATA
    assert alarm.look(True) == (Happened(EventKind.PENDING),)
    assert alarm.condition.since == alarm.at


def test_a_time_in_which_nobody_looked_is_not_one_in_which_it_held():
    """Workers were away: what was pending then begins anew."""
    alarm = Driven(duration_s=300)
    alarm.look(True)
    alarm.looks += 20
    assert alarm.look(True) == (Happened(EventKind.PENDING),)
    assert alarm.condition.since == alarm.at
    assert alarm.look(*[True] * 9) == ()
    assert alarm.look(True) == (FIRED,)


def test_a_look_that_comes_late_takes_no_time_back():
    alarm = Driven(duration_s=300)
    alarm.look(True)
    alarm.looks += 2
    assert alarm.look(*[True] * 7) == ()
    assert alarm.look(True) == (FIRED,)


def test_values_that_come_back_and_are_fine_are_an_event_and_no_message():
    alarm = Driven()
    alarm.look(None, None, None)
    assert alarm.look(False) == (Happened(EventKind.DATA),)
    assert alarm.condition.phase is Phase.OK


def test_it_is_told_again_after_the_interval_also_while_there_is_no_data():
    alarm = Driven(repeat_s=300)
    alarm.look(*[True] * 21)
    again = Happened(EventKind.TOLD, Telling.FIRING)
    assert alarm.happened == [(1, FIRED), (11, again), (21, again)]
    alarm.look(*[None] * 10)
    assert (31, again) in alarm.happened


def test_a_silence_holds_messages_back_and_no_state():
    alarm = Driven()
    assert alarm.look(True, is_silenced=True) == (Happened(EventKind.FIRED),)
    assert alarm.condition.phase is Phase.FIRING
    assert alarm.look(True, is_silenced=True) == ()
    assert alarm.look(True) == (Happened(EventKind.TOLD, Telling.FIRING),)


def test_what_fired_and_was_resolved_in_a_silence_is_never_told():
    alarm = Driven()
    alarm.look(True, is_silenced=True)
    assert alarm.look(False, is_silenced=True) == (Happened(EventKind.RESOLVED),)
    assert alarm.look(False) == ()


def test_what_was_told_before_a_silence_is_told_to_be_over_after_it():
    alarm = Driven()
    alarm.look(True)
    assert alarm.look(False, is_silenced=True) == (Happened(EventKind.RESOLVED),)
    assert alarm.look(False) == (Happened(EventKind.TOLD, Telling.RESOLVED),)


@pytest.mark.parametrize(("ahead_s", "changes"), [(0, False), (-30, False), (1, True)])
def test_a_look_that_is_not_later_than_the_one_before_is_for_nothing(ahead_s, changes):
    alarm = Driven()
    alarm.look(True)
    look = Look(alarm.at + timedelta(seconds=ahead_s), holds=False)
    step = looked(alarm.condition, look, duration_s=0, repeat_s=None)
    assert bool(step.happened) is changes
    assert (step.condition == alarm.condition) is not changes


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([False], ()),
        ([True], (RESOLVED,)),
        ([True, None, None, None], (RESOLVED,)),
        ([None, None, None], (Happened(EventKind.DATA),)),
    ],
)
def test_another_rule_ends_what_fired_by_the_one_before(held, expected):
    alarm = Driven()
    alarm.look(*held)
    assert alarm.reset() == expected
    assert alarm.condition.phase is Phase.OK
    assert alarm.look(False) == ()


def test_another_rule_ends_a_pending_time():
    alarm = Driven(duration_s=600)
    alarm.look(True)
    assert alarm.reset() == (Happened(EventKind.CLEARED),)
    alarm.look(True)
    assert alarm.condition.since == alarm.at


# --- what holds on every way --------------------------------------------------------------------------------------------

LOOKS = st.lists(st.tuples(st.sampled_from([True, False, None]), st.booleans()), min_size=1, max_size=60)
RULES = st.fixed_dictionaries(
    {
        "duration_s": st.sampled_from([0, 30, 60, 90, 300]),
        "repeat_s": st.sampled_from([None, 300, 600]),
    }
)


@given(LOOKS, RULES)
def test_receivers_always_know_what_was_so_at_the_last_look_that_was_not_silenced(looks, rule):
    alarm, told = Driven(**rule), False
    for holds, is_silenced in looks:
        for each in alarm.look(holds, is_silenced=is_silenced):
            if each.tells is not None:
                told = each.tells is Telling.FIRING
        assert told == alarm.condition.told
        if not is_silenced:
            assert told == (alarm.condition.firing_since is not None)


@given(LOOKS, RULES)
def test_nothing_is_told_in_a_silence_and_nothing_twice(looks, rule):
    alarm, told = Driven(**rule), []
    for holds, is_silenced in looks:
        found = [each.tells for each in alarm.look(holds, is_silenced=is_silenced) if each.tells is not None]
        assert len(found) <= (0 if is_silenced else 1)
        told += [(alarm.looks, each) for each in found]
    for (before, one), (number, other) in pairwise(told):
        if one is other:
            assert one is Telling.FIRING
            assert rule["repeat_s"] is not None
            assert (number - before) * EVERY_S >= rule["repeat_s"]


@given(LOOKS, RULES)
def test_only_a_value_resolves_and_only_a_value_that_held_for_its_time_fires(looks, rule):
    alarm = Driven(**rule)
    held_since = None
    for holds, is_silenced in looks:
        before = alarm.condition
        kinds = [each.kind for each in alarm.look(holds, is_silenced=is_silenced)]
        if holds is False or alarm.condition.phase is Phase.NO_DATA:
            held_since = None
        elif holds and held_since is None:
            held_since = alarm.at
        if EventKind.RESOLVED in kinds:
            assert holds is False
        if EventKind.FIRED in kinds:
            assert before.firing_since is None
            assert holds is True
            assert alarm.at - held_since >= timedelta(seconds=rule["duration_s"])
        if holds is None and before.firing_since is not None:
            assert alarm.condition.firing_since == before.firing_since


@given(LOOKS, RULES)
def test_a_silence_changes_no_state(looks, rule):
    loud, silent = Driven(**rule), Driven(**rule)
    for holds, is_silenced in looks:
        loud.look(holds)
        silent.look(holds, is_silenced=is_silenced)
        assert (loud.condition.phase, loud.condition.since, loud.condition.firing_since) == (
            silent.condition.phase, silent.condition.since, silent.condition.firing_since,
        )  # fmt: skip


@given(LOOKS, RULES)
def test_events_tell_every_phase(looks, rule):
    """Whoever reads the history knows the phase without looking at the alarm."""
    phases = {
        EventKind.PENDING: Phase.PENDING, EventKind.CLEARED: Phase.OK, EventKind.FIRED: Phase.FIRING,
        EventKind.RESOLVED: Phase.OK, EventKind.NO_DATA: Phase.NO_DATA,
    }  # fmt: skip
    alarm, phase, fires = Driven(**rule), Phase.OK, False
    for holds, is_silenced in looks:
        for each in alarm.look(holds, is_silenced=is_silenced):
            fires = each.kind is EventKind.FIRED or (fires and each.kind is not EventKind.RESOLVED)
            if each.kind is EventKind.DATA:
                phase = Phase.FIRING if fires else Phase.OK
            phase = phases.get(each.kind, phase)
        assert phase is alarm.condition.phase


def test_a_value_is_missed_for_as_long_as_it_says():
    alarm = Driven()
    looks = int(NO_DATA_AFTER.total_seconds()) // EVERY_S
    alarm.look(*[None] * (looks - 1))
    assert alarm.condition.phase is Phase.OK
    alarm.look(None)
    assert alarm.condition.phase is Phase.NO_DATA
