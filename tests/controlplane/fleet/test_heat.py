"""From numbers to outlines: every place is drawn once, at its level, and the numbers beside it are true."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.fleet.heat import GAP, LEVELS, heat_of
from controlplane.fleet.measures import NOW, OF_BROKERS, OF_INSTANCES, above_average

STROKE = re.compile(r"M(\d+) (\d+)h(\d+)v1h-(\d+)z")


def places(heat):
    """Level by place, of what is drawn; no place twice."""
    found = {}
    for level, path in heat.paths:
        strokes = STROKE.findall(path)
        assert "".join(f"M{x} {y}h{width}v1h-{back}z" for x, y, width, back in strokes) == path
        for x, y, width, back in strokes:
            assert width == back
            for at in range(int(x), int(x) + int(width)):
                assert (at, int(y)) not in found
                found[at, int(y)] = level
    return found


def test_neighbours_of_a_level_are_one_stroke():
    heat = heat_of([[4.0, 4.0, 0.0, None], [1.0, 4.0, 4.0, 4.0]])
    assert dict(heat.paths) == {GAP: "M3 0h1v1h-1z", 4: "M0 1h1v1h-1z", LEVELS: "M0 0h2v1h-2zM1 1h3v1h-3z"}
    assert (heat.width, heat.height) == (4, 2)


def test_a_quarter_of_the_largest_is_half_way_up():
    heat = heat_of([[100.0, 25.0, 1.0]])
    assert places(heat) == {(0, 0): 7, (1, 0): 4, (2, 0): 1}
    assert heat.bounds[-1] == 100
    assert heat.bounds[3] > 25 >= heat.bounds[2]


def test_a_scale_that_is_given_holds_whatever_is_seen():
    assert places(heat_of([[50.0]], most=100)) == {(0, 0): 5}
    assert places(heat_of([[500.0]], most=100)) == {(0, 0): LEVELS}


@pytest.mark.parametrize(
    ("rows", "empty"), [([], True), ([[None, None]], True), ([[0.0, None]], False), ([[1.0]], False)]
)
def test_nothing_is_not_the_same_as_not_known(rows, empty):
    assert heat_of(rows).is_empty is empty


numbers = st.one_of(st.none(), st.floats(0, 1e12, allow_nan=False), st.just(0.0))


@st.composite
def tables(draw):
    width = draw(st.integers(1, 8))
    return draw(st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=1, max_size=8))


@given(tables())
def test_each_place_has_its_level_and_no_number_is_above_its_bound(rows):
    heat = heat_of(rows)
    found = places(heat)
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            level = found.get((x, y), 0)
            if value is None:
                assert level == GAP
            elif value == 0:
                assert level == 0
            elif heat.bounds:
                assert 1 <= level <= LEVELS
                assert value <= heat.bounds[level - 1] or level == LEVELS
                assert level == 1 or value > heat.bounds[level - 2]


@given(tables())
def test_what_is_above_the_average_is_and_averages_stay(rows):
    found = above_average(rows)
    for at in range(len(rows[0])):
        known = [row[at] for row in rows if row[at] is not None]
        for row, above in zip(rows, found, strict=True):
            if row[at] is None:
                assert above[at] is None
            else:
                average = math.fsum(known) / len(known)
                assert above[at] >= 0
                if row[at] < average * (1 - 1e-9):
                    assert above[at] == 0


def test_500_by_50_places_are_eight_outlines():
    rows = [[float((x * y) % 97) for x in range(50)] for y in range(500)]
    heat = heat_of(rows)
    assert len(heat.paths) <= LEVELS
    assert len(places(heat)) == sum(value > 0 for row in rows for value in row)
    assert sum(len(path) for _, path in heat.paths) < 600_000


@pytest.mark.parametrize("measures", [OF_BROKERS, OF_INSTANCES, NOW])
def test_what_is_not_known_of_any_column_is_not_known(measures):
    for measure in measures.values():
        assert measure.fold([None] * len(measure.columns)) is None


def test_of_two_limits_the_one_that_is_used_more_counts():
    share = OF_BROKERS["allocation"].fold
    assert share([50, 100, 90, 100]) == 90
    assert share([50, 100, 90, 0]) == 50, "nothing may be carried there: that is no share"
    assert share([500, 100, 0, 100]) == 100
    assert OF_BROKERS["flow"].fold([3, None]) == 3
