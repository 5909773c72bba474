"""Intervals in which clients waited become spells, in whichever order and however often they come."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.alarms import throttling
from controlplane.alarms.models import ThrottledMark, ThrottledSpell
from controlplane.alarms.throttling import GAP_S, joined, spells_join
from controlplane.quotas.models import RecordedInterval
from tests.controlplane.history.conftest import NOON, keep_waits, move

ONE, TWO = "ins-00000001", "ins-00000002"


def spells(instance=ONE, direction="produce"):
    """Each as its beginning and end, in seconds since noon."""
    rows = ThrottledSpell.objects.filter(instance=instance, direction=direction).order_by("began_at")
    return [(int(row.began_at.timestamp()) - NOON, int(row.until_at.timestamp()) - NOON) for row in rows]


def waited(*intervals, instance=ONE, direction="produce"):
    keep_waits((instance, direction, 1000 * (NOON + start), 1000 * (NOON + end), 500) for start, end in intervals)


@pytest.fixture
def join(clock, db):
    """Looks at a moment, in seconds since noon; up to an hour before noon all has been looked at."""
    ThrottledMark.objects.create(pk=1, at=NOON - 3600)

    def join(at):
        move(clock, NOON + at)
        spells_join(clock=clock)

    return join


def seconds_of(spans):
    """Every second that is in one of them, gaps that are joined included."""
    found = set()
    for began, until in spans:
        found |= set(range(began, until + 1))
    return found


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)).map(lambda each: (each[0], each[0] + each[1]))),
    st.integers(0, 20),
)
def test_joined_spans_cover_all_and_stand_further_apart_than_the_gap(spans, gap):
    found = joined(spans, gap)
    assert found == sorted(found)
    assert all(after[0] - before[1] > gap for before, after in pairwise(found))
    assert seconds_of(spans) <= seconds_of(found)
    assert {began for began, _ in found} <= {began for began, _ in spans}
    assert {until for _, until in found} <= {until for _, until in spans}
    assert joined(found, gap) == found


def test_an_interval_a_minute_is_one_spell(join):
    waited((0, 50), (60, 120), (125, 180))
    waited((10, 20), direction="consume")
    waited((30, 40), instance=TWO)
    join(240)
    assert spells() == [(0, 180)]
    assert (spells(direction="consume"), spells(TWO)) == ([(10, 20)], [(30, 40)])


def test_a_pause_parts_two(join):
    waited((0, 50), (50 + GAP_S + 1, 200))
    join(300)
    assert spells() == [(0, 50), (50 + GAP_S + 1, 200)]


def test_one_that_comes_late_joins_what_were_two(join):
    waited((0, 50), (150, 200))
    join(210)
    assert len(spells()) == 2
    kept = ThrottledSpell.objects.order_by("began_at").first().pk
    waited((80, 120))
    join(240)
    assert spells() == [(0, 200)]
    assert ThrottledSpell.objects.get().pk == kept


def test_a_spell_goes_on_for_hours_and_stays_one(join):
    for minute in range(0, 180, 2):
        waited((60 * minute, 60 * minute + 55), (60 * minute + 60, 60 * minute + 110))
        join(60 * minute + 150)
    assert spells() == [(0, 60 * 178 + 110)]


def test_repeating_changes_nothing(join):
    waited((0, 50), (400, 450))
    join(500)
    before = list(ThrottledSpell.objects.values())
    for _ in range(3):
        join(500)
    assert list(ThrottledSpell.objects.values()) == before


def test_what_could_not_be_joined_for_days_is_made_up_for_and_a_clock_that_was_ahead_costs_nothing(join, monkeypatch):
    monkeypatch.setattr(throttling, "PORTIONS_AT_ONCE", 200)
    waited((0, 50))
    join(100)
    waited((86_400, 86_450), (2 * 86_400 - 3_650, 2 * 86_400 - 3_600))
    join(2 * 86_400)
    assert spells() == [(0, 50), (86_400, 86_450), (2 * 86_400 - 3_650, 2 * 86_400 - 3_600)]
    join(2 * 86_400 + 30 * 86_400)
    waited((2 * 86_400 + 10, 2 * 86_400 + 20))
    join(2 * 86_400 + 60)
    assert spells()[-1] == (2 * 86_400 + 10, 2 * 86_400 + 20)
    assert ThrottledMark.objects.get().at == NOON + 2 * 86_400 + 60


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_order_in_which_they_come_spells_are_those_of_all(join, seed):
    source = random.Random(seed)
    intervals = [(start, start + source.randrange(1, 55)) for start in range(0, 300, 60) if source.random() < 0.8]
    expected = joined([(start * 1000, end * 1000) for start, end in intervals])
    source.shuffle(intervals)
    for number, each in enumerate(intervals):
        waited(each)
        join(300 + 10 * number)
    assert [(start * 1000, end * 1000) for start, end in spells()] == expected


def test_an_interval_that_nobody_understands_keeps_no_other_from_being_joined(join):
    waited((0, 50))
    RecordedInterval.objects.update(document={"started_at_ms": "x"})
    waited((100, 120))
    join(200)
    assert spells() == [(100, 120)]


def test_moments_are_exact(join):
    keep_waits([(ONE, "produce", 1000 * NOON + 123, 1000 * NOON + 45_678, 500)])
    join(100)
    row = ThrottledSpell.objects.get()
    assert row.began_at == datetime.fromtimestamp(NOON, UTC).replace(microsecond=123_000)
