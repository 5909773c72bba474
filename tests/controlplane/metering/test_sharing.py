"""A whole shared out in parts: nothing is lost, nothing is made, and shares are in proportion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.sharing import shared_out

OWNERS = st.dictionaries(st.text(max_size=3), st.integers(0, 2**70), max_size=6)


@given(OWNERS, st.data())
def test_parts_add_up_to_owners_and_owners_to_parts(owners, data):
    whole = sum(owners.values())
    cuts = sorted(data.draw(st.lists(st.integers(0, whole), max_size=5)))
    parts = [end - start for start, end in zip([0, *cuts], [*cuts, whole], strict=True)]
    shares = shared_out(owners, parts)
    assert [sum(share.values()) for share in shares] == parts
    assert {owner: sum(share[owner] for share in shares) for owner in owners} == owners
    assert all(value >= 0 for share in shares for value in share.values())


def test_shares_are_in_proportion_to_the_whole_number():
    assert shared_out({"orders": 300, "clicks": 100}, [40, 360]) == [
        {"clicks": 10, "orders": 30}, {"clicks": 90, "orders": 270},
    ]  # fmt: skip
    assert shared_out({"a": 1, "b": 1, "c": 1}, [1, 2]) == [{"a": 1, "b": 0, "c": 0}, {"a": 0, "b": 1, "c": 1}]


def test_of_nothing_there_is_nothing_and_parts_beyond_the_whole_are_left_out():
    assert shared_out({}, [0, 0]) == [{}, {}]
    assert shared_out({"a": 5}, [3, 9]) == [{"a": 3}, {"a": 2}]
