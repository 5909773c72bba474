"""The index of aborted transactions: Kafka's bytes, and what readers need of it however large it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.storage.checkpoints.transactions import AbortedTransaction
from dataplane.storage.segments.aborted import AbortedIndex, AbortedIndexError, unpack


def index_of(entries) -> AbortedIndex:
    index = AbortedIndex()
    for entry in entries:
        index.add(entry)
    return index


@st.composite
def histories(draw):
    """What producers aborted, in the order of the markers. Some write for a thousand markers of others."""
    opened, found, offset = {}, [], draw(st.integers(0, 50))
    for producer in draw(st.lists(st.sampled_from([0, 1, 1, 1, 2, 2, 3]), max_size=40)):
        for _ in range(draw(st.sampled_from([1, 1, 2, 300]))):
            if producer in opened:
                first = opened.pop(producer)
                found.append(AbortedTransaction(producer, first, offset, min(opened.values(), default=offset + 1)))
            opened[producer] = offset + 1
            offset += 2
    return found


@settings(max_examples=150, deadline=None)
@given(histories(), st.data())
def test_a_reader_gets_what_overlaps_its_range(entries, data):
    last = entries[-1].last_offset + 3 if entries else 3
    index = index_of(entries)
    for _ in range(3):  # the second search knows which blocks the first has searched in vain
        start = data.draw(st.integers(0, last))
        bound = data.draw(st.integers(start, last) | st.just(start + 1))
        found: list[AbortedTransaction] = []
        is_over = index.find(start, bound, found)
        behind = [one for one in entries if one.last_offset >= start]
        assert found == [one for one in behind if one.first_offset < bound]
        assert is_over == any(one.last_stable_offset >= bound for one in behind)


@settings(max_examples=60, deadline=None)
@given(histories(), st.data())
def test_a_cut_index_is_that_of_what_is_left(entries, data):
    end = data.draw(st.integers(0, entries[-1].last_offset + 2 if entries else 2))
    index = index_of(entries)
    index.cut(end)
    left = [one for one in entries if one.last_offset < end]
    assert index.entries() == left
    assert index.pack() == index_of(left).pack()
    found: list[AbortedTransaction] = []
    index.find(0, end, found)
    assert found == [one for one in left if one.first_offset < end]
    again = unpack(index.pack())
    assert (again.entries(), again.is_saved) == (left, True)


def test_the_file_is_kafkas():
    packed = index_of([AbortedTransaction(7, 10, 20, 11)]).pack()
    assert packed == bytes.fromhex("0000 0000000000000007 000000000000000a 0000000000000014 000000000000000b")


@pytest.mark.parametrize("damage", ["cut", "version", "order"])
def test_damage_is_noticed(damage):
    packed = index_of([AbortedTransaction(7, 10, 20, 11), AbortedTransaction(7, 21, 30, 31)]).pack()
    wrong = {"cut": packed[:-1], "version": b"\0\1" + packed[2:], "order": packed[34:] + packed[:34]}[damage]
    with pytest.raises(AbortedIndexError):
        unpack(wrong)
