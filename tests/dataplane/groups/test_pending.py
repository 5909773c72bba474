"""Offsets of transactions as pure values: what a marker makes visible, what is overtaken, what a tombstone takes."""

import pytest

from dataplane.groups.offsets import SETTLED_PER_PAUSE, GroupOffsets
from dataplane.groups.pending import Held, size_of
from dataplane.protocol.messages.group_records import OffsetCommitValue
from dataplane.records.steps import run_through

KEY, OTHER = ("t", 0), ("t", 1)
ANA, BOB = 7, 8


def value(offset):
    return OffsetCommitValue(offset=offset)


def begun(*commits):
    """Commits (producer, position, key) of transactions, each of an offset that is its position."""
    offsets = GroupOffsets()
    for producer_id, position, key in commits:
        offsets.apply_in_transaction(producer_id, position, key, value(position))
    return offsets


def end(offsets, producer_id, *, committed=True):
    closed = offsets.transactions.close(producer_id)
    if closed is not None:
        run_through(offsets.settle(closed, committed=committed))


def visible(offsets):
    return {key: found.offset for key, found in offsets.committed.items()}


def test_nothing_is_visible_before_the_transaction_ends():
    offsets = begun((ANA, 1, KEY))
    assert visible(offsets) == {}
    assert offsets.is_unstable(KEY)
    assert not offsets.is_unstable(OTHER)
    assert not offsets.is_empty()
    assert (offsets.count(), offsets.has(KEY), offsets.all_keys()) == (1, True, [KEY])


@pytest.mark.parametrize(("committed", "left"), [(True, {KEY: 1, OTHER: 2}), (False, {})])
def test_at_its_end_all_are_visible_or_none(committed, left):
    offsets = begun((ANA, 1, KEY), (ANA, 2, OTHER))
    end(offsets, ANA, committed=committed)
    assert visible(offsets) == left
    assert offsets.is_settled()


def test_of_several_commits_in_a_transaction_the_last_counts():
    offsets = begun((ANA, 1, KEY), (ANA, 5, KEY))
    end(offsets, ANA)
    assert visible(offsets) == {KEY: 5}
    assert offsets.is_settled()


def test_the_end_of_a_transaction_is_none_of_the_others():
    offsets = begun((ANA, 1, KEY), (BOB, 2, OTHER))
    end(offsets, ANA)
    assert visible(offsets) == {KEY: 1}
    assert offsets.is_unstable(OTHER)


def test_the_end_of_a_transaction_that_has_committed_nothing_is_nothing():
    offsets = begun((ANA, 1, KEY))
    end(offsets, BOB)
    end(offsets, ANA)
    end(offsets, ANA, committed=False)
    assert visible(offsets) == {KEY: 1}


@pytest.mark.parametrize(
    ("ordinary_at", "seen"),
    [
        (4, 5),  # the transaction's is later in the log
        (6, 6),  # the ordinary one is, whenever the transaction ends
    ],
)
def test_what_is_later_in_the_log_counts_and_not_what_is_visible_later(ordinary_at, seen):
    offsets = begun((ANA, 5, KEY))
    offsets.apply(KEY, value(ordinary_at), ordinary_at)
    assert visible(offsets) == {KEY: ordinary_at}
    assert offsets.is_unstable(KEY)
    end(offsets, ANA)
    assert visible(offsets) == {KEY: seen}
    assert not offsets.is_unstable(KEY)


@pytest.mark.parametrize("order", [(ANA, BOB), (BOB, ANA)])
def test_so_it_is_between_two_transactions(order):
    offsets = begun((ANA, 1, KEY), (BOB, 2, KEY))
    for producer_id in order:
        end(offsets, producer_id)
    assert visible(offsets) == {KEY: 2}


def test_what_was_overtaken_is_committed_again_by_the_same_transaction():
    offsets = begun((ANA, 1, KEY))
    offsets.apply(KEY, value(2), 2)
    offsets.apply_in_transaction(ANA, 3, KEY, value(3))
    end(offsets, ANA)
    assert visible(offsets) == {KEY: 3}


@pytest.mark.parametrize(("removed_at", "seen"), [(4, {KEY: 5}), (6, {})])
def test_a_tombstone_takes_what_is_before_it(removed_at, seen):
    offsets = begun((ANA, 5, KEY))
    offsets.apply(KEY, None, removed_at)
    assert offsets.is_unstable(KEY) is bool(seen)
    end(offsets, ANA)
    assert visible(offsets) == seen
    assert offsets.is_settled()


def test_what_a_log_is_read_for_is_behind_all_that_was_read_before():
    offsets = begun((ANA, 5, KEY), (ANA, 5, OTHER))
    offsets.apply(KEY, value(1))
    offsets.apply(OTHER, None)
    end(offsets, ANA)
    assert visible(offsets) == {KEY: 1}


def test_the_next_transaction_of_a_producer_begins_while_the_one_before_is_being_settled():
    offsets = begun(*((ANA, 1, ("t", n)) for n in range(3 * SETTLED_PER_PAUSE)))
    first, last = ("t", 0), ("t", 3 * SETTLED_PER_PAUSE - 1)
    settling = offsets.settle(offsets.transactions.close(ANA), committed=True)
    next(settling)
    assert len(offsets.committed) == SETTLED_PER_PAUSE
    assert [offsets.is_unstable(key) for key in (first, last)] == [False, True]
    for key in (first, last):
        offsets.apply_in_transaction(ANA, 9, key, value(9))
    offsets.apply(("t", 100), value(2), 2)
    offsets.apply(("t", 101), None, 2)
    run_through(settling)
    assert len(offsets.committed) == 3 * SETTLED_PER_PAUSE - 1
    assert (offsets.committed[last].offset, offsets.committed[("t", 100)].offset) == (1, 2)
    end(offsets, ANA, committed=False)
    assert (offsets.committed[first].offset, offsets.committed[last].offset) == (1, 1)
    assert offsets.is_settled()


# --- what it takes ----------------------------------------------------------------------------------------------------


def test_what_is_pending_is_counted_once_for_each_transaction_until_it_is_settled_or_gone():
    held = Held()
    offsets = GroupOffsets(held)
    offsets.apply_in_transaction(ANA, 1, KEY, OffsetCommitValue(offset=1, metadata="a note"))
    offsets.apply_in_transaction(BOB, 2, KEY, OffsetCommitValue(offset=2, metadata="another"))
    assert held.bytes == size_of("a note") + size_of("another")
    offsets.apply_in_transaction(BOB, 3, KEY, OffsetCommitValue(offset=3, metadata="x" * 1000))
    assert held.bytes == size_of("a note") + size_of("x" * 1000)
    offsets.apply(KEY, value(9), 9)
    assert held.bytes == 2 * size_of(""), "they are overtaken, and what they said is forgotten"
    offsets.apply(KEY, None, 10)
    assert held.bytes == 0
    offsets.apply_in_transaction(ANA, 11, OTHER, value(11))
    end(offsets, ANA)
    assert held.bytes == 0
