"""Addresses share places and turns: who has most makes room, and nobody waits behind all that another address has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataplane.network.fairness import Places, Turns


def placed(*names):
    """Named ``address/number``."""
    places = Places()
    for name in names:
        places.came(name.split("/")[0], name)
    return places


def test_the_address_that_has_most_is_told_with_its_oldest_first():
    places = placed("a/1", "b/1", "b/2", "a/2", "b/3")
    assert list(places.fullest("a")) == ["b/1", "b/2", "b/3"]
    assert list(places.fullest("c")) == ["b/1", "b/2", "b/3"]
    assert list(places.fullest("b")) == []


def test_an_address_that_has_as_many_as_any_finds_nobody_in_its_way():
    places = placed("a/1", "b/1")
    assert list(places.fullest("a")) == list(places.fullest("b")) == []
    assert list(Places().fullest("a")) == []


def test_who_goes_twice_goes_once_and_leaves_nothing():
    places = placed("a/1", "a/2")
    for name in ("a/1", "a/1", "a/2", "a/2", "b/1"):
        places.went(name.split("/")[0], name)
    assert len(places) == 0
    assert places._by_address == {}
    assert places._having == {}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 30)), max_size=80))
def test_places_are_as_by_counting(events):
    places, present = Places(), []
    for number, (address, goes, which) in enumerate(events):
        if goes and present:
            gone = present.pop(which % len(present))
            places.went(gone[0], gone)
        else:
            present.append((address, number))
            places.came(address, (address, number))
        counts = {each: sum(one[0] == each for one in present) for each in "abcde"}
        assert {each: places.of(each) for each in "abcde"} == counts
        assert len(places) == len(present)
        for each in "abcde":
            found = list(places.fullest(each))
            most = max(counts.values())
            assert bool(found) == (counts[each] < most)
            if found:
                assert found == [one for one in present if one[0] == found[0][0]]
                assert len(found) == most


def waiting(*names):
    turns = Turns()
    for name in names:
        turns.add(name.split("/")[0], name)
    return turns


def order(turns):
    found = []
    while turns:
        found.append(turns.next())
    return found


def test_addresses_take_turns_and_each_keeps_its_order():
    assert order(waiting("a/1", "a/2", "a/3", "b/1", "b/2", "c/1")) == ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]


def test_who_comes_last_of_all_is_one_turn_away():
    turns = waiting(*(f"flood/{number}" for number in range(100)))
    assert turns.next() == "flood/0"
    turns.add("rightful", "rightful/1")
    assert [turns.next(), turns.next()] == ["flood/1", "rightful/1"]


def test_who_waits_no_longer_has_no_turn():
    turns = waiting("a/1", "a/2", "b/1")
    for name in ("a/1", "b/1", "b/1", "c/1"):
        turns.discard(name.split("/")[0], name)
    assert order(turns) == ["a/2"]
    assert turns._by_address == {}
