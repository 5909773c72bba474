"""Who fails often waits longer, and then is not heard; nobody else is."""

from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.attempts import MOST, MOST_DELAY_S, MOST_NAMES, MOST_PAIRS, WITHIN_S, Attempts


def fail(attempts, times, source="10.0.0.1", user="alice", now=0.0):
    return [attempts.begin(source, user, now) for _ in range(times)]


def test_after_so_many_failures_a_pair_is_not_heard_until_the_oldest_is_a_minute_old():
    attempts = Attempts()
    assert all(fail(attempts, MOST - 1))
    assert fail(attempts, 1, now=10.0) == [True]
    assert fail(attempts, 1, now=59.9) == [False]
    assert fail(attempts, 1, now=60.0) == [True]


def test_another_source_and_another_user_are_heard():
    attempts = Attempts()
    fail(attempts, MOST + 5)
    assert fail(attempts, 1, source="10.0.0.2") == [True]
    assert fail(attempts, 1, user="bob") == [True]


def test_what_succeeds_has_not_counted():
    attempts = Attempts()
    for _ in range(10 * MOST):
        assert attempts.begin("10.0.0.1", "alice", 0.0)
        attempts.succeeded("10.0.0.1", "alice")
    assert attempts.remembered == 0


def test_attempts_at_once_count_before_they_have_failed():
    assert fail(Attempts(), MOST + 3).count(False) == 3


def test_the_answer_comes_later_each_time_and_not_too_late():
    attempts = Attempts()
    delays = []
    for _ in range(8):
        attempts.begin("10.0.0.1", "alice", 0.0)
        delays.append(attempts.delay_s("10.0.0.1", "alice"))
    assert delays[:3] == [0.1, 0.2, 0.4]
    assert delays[-1] == MOST_DELAY_S
    assert attempts.delay_s("10.0.0.2", "nobody") == 0.1


def test_invented_names_do_not_clear_what_was_guessed():
    attempts = Attempts()
    fail(attempts, MOST)
    for number in range(2 * MOST_PAIRS):
        attempts.begin("10.0.0.1", f"invented-{number}", 1.0)
    assert fail(attempts, 1, now=2.0) == [False]


def test_names_beyond_so_many_of_an_address_are_heard_as_one():
    """So whom he guesses last has no more guesses than whom he guesses first."""
    attempts = Attempts()
    for number in range(MOST_NAMES):
        fail(attempts, 1, user=f"invented-{number}")
    assert fail(attempts, MOST + 5).count(True) == MOST
    assert fail(attempts, 1, user="bob") == [False]
    assert fail(attempts, 1, user="invented-7") == [True]
    assert fail(attempts, 1, source="10.0.0.2", user="bob") == [True]
    assert attempts.delay_s("10.0.0.1", "bob") == MOST_DELAY_S


def test_names_whose_failures_are_a_minute_old_make_room_for_others():
    attempts = Attempts()
    for number in range(MOST_NAMES):
        fail(attempts, 1, user=f"invented-{number}")
    assert fail(attempts, MOST + 1, now=WITHIN_S).count(True) == MOST
    assert attempts.remembered == 1


def test_who_succeeds_among_many_names_has_not_counted_either():
    attempts = Attempts()
    for number in range(MOST_NAMES):
        fail(attempts, 1, user=f"invented-{number}")
    for _ in range(10 * MOST):
        assert fail(attempts, 1) == [True]
        attempts.succeeded("10.0.0.1", "alice")
    assert attempts.remembered == MOST_NAMES


def test_of_many_addresses_those_that_guessed_least_are_forgotten_first():
    attempts = Attempts()
    fail(attempts, MOST, source="guesser")
    for number in range(3 * MOST_PAIRS):
        fail(attempts, 1, source=f"other-{number}", now=1.0)
    assert fail(attempts, 1, source="guesser", now=2.0) == [False]
    assert fail(attempts, 1, source="other-0", now=2.0) == [True]


def test_addresses_whose_failures_are_old_are_forgotten_before_all_others():
    attempts = Attempts()
    fail(attempts, MOST, source="long ago")
    for number in range(MOST_PAIRS - 1):
        fail(attempts, 1, source=f"other-{number}", now=WITHIN_S)
    fail(attempts, 1, source="one more", now=WITHIN_S)
    assert "long ago" not in attempts._sources


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.booleans(), st.floats(0, 20)),
        max_size=200,
    )
)
def test_it_counts_what_it_remembers_and_no_more_than_so_many(events):
    attempts, now = Attempts(), 0.0
    with mock.patch.multiple("dataplane.security.attempts", MOST_NAMES=3, MOST_PAIRS=12, _FORGOTTEN_TOGETHER=2):
        for source, user, succeeds, later in events:
            now += later
            is_heard = attempts.begin(str(source), str(user), now)
            if succeeds and is_heard:
                attempts.succeeded(str(source), str(user))
            assert attempts.remembered == sum(map(len, attempts._sources.values())) <= 12
            assert all(len(found.names) <= 3 and len(found) for found in attempts._sources.values())


def test_many_addresses_are_not_all_remembered():
    attempts = Attempts()
    for number in range(3 * MOST_PAIRS):
        attempts.begin(str(number), "alice", 0.0)
        assert attempts.remembered <= MOST_PAIRS


@given(st.lists(st.floats(0, 20), max_size=200))
def test_no_more_than_so_many_are_looked_at_in_any_minute(gaps):
    attempts, now, looked = Attempts(), 0.0, []
    for gap in gaps:
        now += gap
        if attempts.begin("10.0.0.1", "alice", now):
            looked.append(now)
    for at in looked:
        assert sum(at - WITHIN_S < other <= at for other in looked) <= MOST
