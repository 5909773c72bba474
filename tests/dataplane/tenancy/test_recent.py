"""What came lately, of counters that only grow: over half a minute to two minutes, whoever looks how often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataplane.tenancy.recent import READING_S, Readings


def test_what_has_just_begun_is_told_since_it_began():
    assert Readings(100.0, (0, 0)).look(105.0, (50, 7)) == (5.0, (50, 7))


def test_looked_at_once_a_minute_it_is_the_last_minute():
    readings = Readings(0.0, (0,))
    readings.look(60.0, (600,))
    assert readings.look(120.0, (660,)) == (60.0, (60,))


def test_a_look_between_two_takes_nothing_away_from_the_next():
    readings = Readings(0.0, (0,))
    readings.look(60.0, (600,))
    readings.look(61.0, (601,))
    readings.look(65.0, (605,))
    assert readings.look(120.0, (660,)) == (60.0, (60,))


@given(st.lists(st.floats(0.5, 60.0), min_size=1, max_size=60))
def test_a_steady_flow_is_told_as_it_is_and_over_two_minutes_at_most(pauses):
    readings, now = Readings(0.0, (0,)), 0.0
    for pause in pauses:
        now += pause
        seconds, (count,) = readings.look(now, (int(now * 1000),))
        assert min(now, READING_S) <= seconds + 0.001
        assert seconds <= 60.0 + 2 * READING_S
        assert abs(count - seconds * 1000) <= 2
