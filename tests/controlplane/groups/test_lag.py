"""What is left to read, how fast a group reads, and when it will have caught up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.groups.lag import (
    LONGEST_MS,
    STEP_MS,
    Observation,
    Pace,
    drain_seconds,
    falls_behind,
    kept_with,
    lag_messages,
    oldest_of,
    pace,
)

A, B = ("orders", 0), ("orders", 1)


def seen(at_s, offsets, ends=None):
    return Observation(int(at_s * 1000), offsets, ends if ends is not None else dict.fromkeys(offsets, 1000))


@pytest.mark.parametrize(
    ("offset", "start", "end", "left"),
    [(3, 0, 10, 7), (10, 0, 10, 0), (3, 5, 10, 5), (12, 0, 10, 0), (0, 0, 0, 0)],
    ids=["behind", "at the end", "records before it expired", "beyond the end", "an empty partition"],
)
def test_lag_is_what_can_still_be_read(offset, start, end, left):
    assert lag_messages(offset, start, end) == left


def test_a_rate_is_of_all_partitions_that_both_observations_saw():
    before = seen(10, {A: 100, B: 0}, {A: 200, B: 10})
    now = seen(20, {A: 150, B: 30, ("new", 0): 9}, {A: 220, B: 40, ("new", 0): 9})
    assert pace(before, now) == Pace(8.0, 5.0, 10.0)


def test_an_offset_that_was_set_back_is_no_reading():
    assert pace(seen(10, {A: 100}), seen(20, {A: 50})) is None
    assert pace(seen(10, {A: 100, B: 0}), seen(20, {A: 50, B: 20})) == Pace(2.0, 0.0, 10.0)


def test_two_looks_within_a_moment_say_nothing():
    assert pace(seen(10, {A: 100}), seen(11, {A: 150})) is None


def test_time_to_drain_is_lag_by_what_reading_gains_on_writing():
    assert drain_seconds(300, Pace(60, 30, 10)) == 10
    assert drain_seconds(0, None) == 0
    assert drain_seconds(300, None) is None
    assert drain_seconds(None, Pace(60, 30, 10)) is None


def test_a_group_that_reads_no_faster_than_is_written_falls_behind():
    assert drain_seconds(300, Pace(30, 30, 10)) is None
    assert falls_behind(300, Pace(30, 30, 10))
    assert not falls_behind(0, Pace(30, 30, 10))
    assert not falls_behind(300, None)


@given(st.lists(st.integers(min_value=100, max_value=200_000), max_size=60))
def test_whoever_looks_on_compares_with_an_observation_of_the_last_minute_and_a_half(pauses_ms):
    kept, at_ms = [], 0
    for pause_ms in pauses_ms:
        at_ms += pause_ms
        now = Observation(at_ms, {}, {})
        before = oldest_of(kept, now)
        assert before is None or 2000 <= at_ms - before.at_ms <= LONGEST_MS
        kept = kept_with(kept, now)
        assert len(kept) <= LONGEST_MS / STEP_MS + 1
        assert at_ms - kept[-1].at_ms < STEP_MS
