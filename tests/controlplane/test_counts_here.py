"""Counts of one process: they end with their window, take so much room and no more, and a high one is not pushed out."""

from __future__ import annotations

import pytest

from controlplane.core.counts_here import CountsHere

MOST = 100


@pytest.fixture
def counts():
    return CountsHere(most_keys=MOST)


def one_more(counts, key, now_s=0):
    return counts.one_more(key, now_s=now_s, window_s=900)


def test_each_key_has_a_count_of_its_own(counts):
    assert [one_more(counts, key) for key in ("a", "b", "a", "a", "b")] == [1, 1, 2, 3, 2]


def test_what_is_taken_back_was_not_counted(counts):
    one_more(counts, "a")
    one_more(counts, "a")
    counts.take_back("a")
    assert one_more(counts, "a") == 2
    for _ in range(3):
        counts.take_back("a")
    assert one_more(counts, "a") == 1


def test_what_begins_anew_begins_at_one(counts):
    for key in ("a", "a", "b"):
        one_more(counts, key)
    counts.forget(["a", "no such key"])
    assert (one_more(counts, "a"), one_more(counts, "b")) == (1, 2)


def test_it_takes_so_much_room_and_no_more(counts):
    for number in range(50 * MOST):
        one_more(counts, f"key {number}")
        assert len(counts) <= MOST


def test_windows_that_have_ended_go_first(counts):
    for number in range(MOST // 2):
        one_more(counts, f"of before {number}", now_s=0)
    for number in range(MOST // 2 + 1):
        one_more(counts, f"of now {number}", now_s=900)
    assert [one_more(counts, f"of now {number}", now_s=901) for number in range(MOST // 2 + 1)] == [2] * (MOST // 2 + 1)


def test_whoever_fills_it_brings_no_count_back_that_has_come_near_its_limit(counts):
    for _ in range(20):
        one_more(counts, "account")
    for number in range(10 * MOST):
        one_more(counts, f"stranger {number}")
    assert one_more(counts, "account") == 21
