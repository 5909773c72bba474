"""Where offsets go, and what that means for a group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.groups.moving import Move, Strategy, target, totals, value_problem, within


@pytest.mark.parametrize(
    ("strategy", "value", "asked"),
    [
        ("earliest", None, 5),
        ("latest", None, 20),
        ("timestamp", 99, 12),
        ("shift", -3, 7),
        ("shift", 40, 50),
        ("offset", 3, 3),
    ],
)
def test_each_strategy_has_its_offset(strategy, value, asked):
    assert target(strategy, value, 10, 5, 20, 12) == asked


def test_a_time_after_the_last_record_is_the_end():
    assert target("timestamp", 99, 10, 5, 20, None) == 20


def test_from_nowhere_nothing_is_shifted():
    assert target("shift", 3, None, 5, 20, None) is None


@pytest.mark.parametrize(
    ("before", "after", "again", "skipped"),
    [
        (10, 6, 4, 0),
        (10, 15, 0, 5),
        (10, 10, 0, 0),
        (None, 5, 0, 0),
        (2, 5, 0, 0),
        (2, 8, 0, 3),
        (30, 20, 0, 0),
        (30, 15, 5, 0),
    ],
    ids=[
        "back",
        "forward",
        "stays",
        "never committed",
        "to where it would begin anyway",
        "some had expired",
        "was beyond",
        "b",
    ],
)
def test_what_is_read_again_and_what_is_skipped(before, after, again, skipped):
    move = Move("orders", 0, before, after, start=5, end=20)
    assert (move.again, move.skipped) == (again, skipped)
    assert totals([move, move]) == (2 * again, 2 * skipped)


@pytest.mark.parametrize(
    ("strategy", "value", "said"),
    [
        ("earliest", 3, "earliest takes no value"),
        ("shift", None, "shift needs a value"),
        ("offset", -1, "must not be negative"),
        ("timestamp", -1, "must not be negative"),
        ("shift", -1, None),
        ("latest", None, None),
    ],
)
def test_a_value_fits_its_strategy(strategy, value, said):
    assert value_problem(strategy, value) == said


@given(
    st.sampled_from(list(Strategy)), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(-99, 99)
)
def test_the_result_is_within_the_partition_and_nothing_is_both_read_again_and_skipped(
    strategy, start, length, before, value
):
    end = start + length
    asked = target(strategy, value, before, start, end, None)
    move = Move("orders", 0, before, within(asked, start, end), start, end)
    assert start <= move.after <= end
    assert 0 in (move.again, move.skipped)
    assert move.again + move.skipped <= length
