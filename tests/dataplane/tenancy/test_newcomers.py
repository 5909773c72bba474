"""Connections on which nobody has logged in: half of the places, and fair among addresses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tenancy.newcomers import MOST, Newcomers


class Connection:
    def __init__(self, peer):
        self.session = SimpleNamespace(peer=peer)


def came(newcomers, *peers):
    made = [Connection(peer) for peer in peers]
    for connection in made:
        newcomers.came(connection)
    return made


@pytest.mark.parametrize(("limit", "places"), [(10, 5), (1, 1), (2, 1), (None, MOST), (10 * MOST, MOST)])
def test_half_of_the_places_but_one_at_least_and_not_too_many(limit, places):
    newcomers = Newcomers()
    came(newcomers, *["a"] * (places - 1))
    assert not newcomers.is_full(limit)
    came(newcomers, "a")
    assert newcomers.is_full(limit)


def test_the_oldest_of_the_address_that_has_most_makes_room_for_one_that_has_fewer():
    newcomers = Newcomers()
    first, *_ = came(newcomers, "a", "a", "a", "b", "b")
    assert newcomers.in_the_way_of("c") is first
    assert newcomers.in_the_way_of("b") is first
    assert newcomers.in_the_way_of("a") is None


def test_nobody_makes_room_where_there_is_nobody():
    assert Newcomers().in_the_way_of("a") is None


def test_who_has_gone_has_gone_once():
    newcomers = Newcomers()
    one, two = came(newcomers, "a", "a")
    for connection in (one, one, two, two):
        newcomers.went(connection)
    assert not newcomers.is_full(2)
    assert len(newcomers._places) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_it_counts_whom_it_holds(events):
    newcomers, present = Newcomers(), []
    for peer, goes in events:
        if goes and present:
            newcomers.went(present.pop(0))
        else:
            present += came(newcomers, peer)
        assert len(newcomers._places) == len(present)
        found = newcomers.in_the_way_of("d")
        assert (found is None) == (not present)
