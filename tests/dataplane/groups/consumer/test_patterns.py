"""A pattern is a tenant's, and the loop is everybody's: what takes long to match is matched a name at a time."""

import pytest

from dataplane.groups.consumer import patterns
from dataplane.records.steps import run_through

NAMES = [f"a{'ab' * 100}{number:03d}" for number in range(50)]
HARD = "[ab]*a[ab]{400}c"  # its states are as many as there are texts of 400 letters


def pauses(pattern, names=NAMES):
    return len(list(patterns.matching(patterns.compiled(pattern), names, lambda _: True, 0)))


def test_a_pattern_that_is_hard_to_match_pauses_at_every_name():
    assert pauses(HARD) == len(NAMES)


def test_an_easy_one_does_not():
    assert pauses("a.*", [f"orders-{number}" for number in range(50)]) < 10


@pytest.mark.parametrize(
    ("pattern", "name", "low", "high"), [(HARD, "a" * 1_000, 4_000, 6_000), ("orders-.*", "orders-1", 3, 10)]
)
def test_what_a_match_takes_is_said_in_microseconds(pattern, name, low, high):
    assert low <= patterns.cost_us(patterns.compiled(pattern), name) <= high


def test_what_matches_is_the_same_however_long_it_takes():
    assert run_through(
        patterns.matching(patterns.compiled("a(ab)*00[12]"), NAMES, lambda _: True, 7)
    ) == patterns.Matched((NAMES[1], NAMES[2]), 7)
