"""Who fails often waits longer, and then is not heard; nobody else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.attempts import MOST, MOST_DELAY_S, MOST_PAIRS, WITHIN_S, Attempts


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


@given(st.lists(st.tuples(st.integers(0, 3000), st.booleans(), st.floats(0, 5)), max_size=300))
def test_it_remembers_only_so_many(events):
    attempts, now = Attempts(), 0.0
    for user, succeeds, later in events:
        now += later
        attempts.begin("10.0.0.1", str(user), now)
        if succeeds:
            attempts.succeeded("10.0.0.1", str(user))
        assert attempts.remembered <= MOST_PAIRS


def test_a_thousand_names_push_out_the_oldest():
    attempts = Attempts()
    for number in range(3 * MOST_PAIRS):
        attempts.begin("10.0.0.1", str(number), 0.0)
    assert attempts.remembered == MOST_PAIRS


@given(st.lists(st.floats(0, 20), max_size=200))
def test_no_more_than_so_many_are_looked_at_in_any_minute(gaps):
    attempts, now, looked = Attempts(), 0.0, []
    for gap in gaps:
        now += gap
        if attempts.begin("10.0.0.1", "alice", now):
            looked.append(now)
    for at in looked:
        assert sum(at - WITHIN_S < other <= at for other in looked) <= MOST
