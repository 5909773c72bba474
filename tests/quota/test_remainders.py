"""A whole number shared out in whole numbers: nothing is lost or made, and nobody is a whole one away from what is theirs."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.core.remainders import shared

WEIGHTS = st.dictionaries(st.text(max_size=3), st.integers(0, 2**70), min_size=1).filter(
    lambda some: any(some.values())
)


@given(st.integers(0, 2**70), WEIGHTS)
def test_shares_add_up_and_are_less_than_one_away_from_what_is_exact(whole, weights):
    found = shared(whole, weights)
    assert found.keys() == weights.keys()
    assert sum(found.values()) == whole
    total = sum(weights.values())
    assert all(abs(found[name] - Fraction(whole * weight, total)) < 1 for name, weight in weights.items())


def test_what_is_left_goes_to_the_largest_remainder_then_the_larger_then_by_name():
    assert shared(10, {"a": 1, "b": 1, "c": 1}) == {"a": 4, "b": 3, "c": 3}
    assert shared(1, {"b": 1, "a": 1, "c": 2}) == {"a": 0, "b": 0, "c": 1}
    assert shared(3, {"a": 1, "b": 3}) == {"a": 1, "b": 2}


@pytest.mark.parametrize(("whole", "weights"), [(1, {}), (1, {"a": 0}), (1, {"a": 2, "b": -1}), (-1, {"a": 1})])
def test_what_cannot_be_shared_is_refused(whole, weights):
    with pytest.raises(ValueError, match="weight"):
        shared(whole, weights)
