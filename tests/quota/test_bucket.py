"""The token bucket: what it lets through, what delay it asks for, and how it counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quota.core.bucket import MAX_DELAY_S, SLICE_S, TokenBucket

MIB = 2**20


def test_a_slice_goes_through_at_once_and_the_debt_after_it_costs_time():
    bucket = TokenBucket(1000, now=5.0)
    assert bucket.charge(100, 5.0) == 0.0
    assert bucket.charge(50, 5.0) == pytest.approx(0.05)
    assert bucket.charge(50, 5.0) == pytest.approx(0.1)
    assert bucket.debt_bytes(5.0) == pytest.approx(100)
    assert bucket.charge(0, 5.1) == pytest.approx(0.0)


def test_an_idle_bucket_saves_up_one_slice_and_no_more():
    bucket = TokenBucket(1000, now=0.0)
    assert bucket.charge(101, 1000.0) == pytest.approx(0.001)


def test_unlimited_never_delays_and_still_counts():
    bucket = TokenBucket(None, now=0.0)
    assert [bucket.charge(10 * MIB, 0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert bucket.charged_bytes == bucket.paid_bytes(0.0) == 30 * MIB
    assert bucket.fetch_bytes() is None


def test_the_delay_is_capped_at_thirty_seconds():
    bucket = TokenBucket(10, now=0.0)
    assert bucket.charge(MIB, 0.0) == MAX_DELAY_S
    assert bucket.delay(0.0) == MAX_DELAY_S


def test_a_new_rate_applies_to_the_debt_that_stands():
    bucket = TokenBucket(1000, now=0.0)
    bucket.charge(1100, 0.0)
    bucket.set_rate(500, 0.5)
    assert bucket.debt_bytes(0.5) == pytest.approx(500)
    assert bucket.delay(0.5) == pytest.approx(1.0)
    bucket.set_rate(5000, 0.5)
    assert bucket.delay(0.5) == pytest.approx(0.1)


def test_a_lower_rate_keeps_no_savings_of_a_higher_one():
    bucket = TokenBucket(MIB, now=0.0)
    bucket.set_rate(100, 0.0)
    assert bucket.charge(20, 0.0) == pytest.approx(0.1)


def test_a_raised_rate_does_not_make_savings_of_itself():
    bucket = TokenBucket(100, now=0.0)
    bucket.set_rate(1000, 0.0)
    assert bucket.charge(20, 0.0) == pytest.approx(0.01)


def test_a_limit_can_come_and_go():
    bucket = TokenBucket(None, now=0.0)
    bucket.charge(MIB, 0.0)
    bucket.set_rate(1000, 0.0)
    assert bucket.charge(200, 0.0) == pytest.approx(0.1)
    bucket.set_rate(None, 0.0)
    assert bucket.charge(200, 0.0) == 0.0
    assert bucket.throttled_s(1.0) == pytest.approx(0.0)


def test_throttled_time_is_counted_once_however_many_wait():
    bucket = TokenBucket(1000, now=0.0)
    bucket.charge(600, 0.0)  # to 0.5
    bucket.charge(500, 0.1)  # to 1.0
    assert bucket.throttled_s(0.25) == pytest.approx(0.25)
    assert bucket.throttled_s(9.0) == pytest.approx(1.0)
    bucket.charge(600, 9.0)
    assert bucket.throttled_s(9.2) == pytest.approx(1.2)


def test_a_change_of_rate_shortens_the_throttled_time_that_was_foreseen():
    bucket = TokenBucket(1000, now=0.0)
    bucket.charge(1100, 0.0)
    bucket.set_rate(10_000, 0.5)
    assert bucket.throttled_s(9.0) == pytest.approx(0.55)


def test_throttling_is_announced_when_it_starts_and_not_while_it_goes_on():
    calls = []
    bucket = TokenBucket(1000, 0.0, lambda: calls.append("started"))
    bucket.charge(100, 0.0)
    assert calls == []
    for now in (0.0, 0.05, 0.1, 0.3):
        bucket.charge(300, now)
    assert calls == ["started"]
    bucket.charge(300, 60.0)
    assert calls == ["started", "started"]


def test_a_bucket_that_is_blocked_saves_up_nothing_and_owes_every_byte():
    for bucket in (TokenBucket(0, 0.0), TokenBucket(1000, 0.0), TokenBucket(None, 0.0)):
        bucket.set_rate(0, 1.0)
        assert bucket.credit_bytes(9.0) == 0.0
        assert bucket.charge(1, 9.0) == MAX_DELAY_S
        assert bucket.debt_bytes(9.0) == bucket.debt_bytes(99.0) == 1.0


def test_a_pause_of_just_a_slice_does_not_end_throttling_and_a_longer_one_does():
    for pause, expected in ((SLICE_S, 1), (SLICE_S + 0.001, 2)):
        calls = []
        bucket = TokenBucket(1000, 0.0, lambda calls=calls: calls.append("started"))
        assert bucket.charge(200, 0.0) == SLICE_S  # until then somebody has to wait
        bucket.charge(300, SLICE_S + pause)
        assert len(calls) == expected


def test_a_pause_shorter_than_a_slice_does_not_end_throttling():
    calls = []
    bucket = TokenBucket(1000, 0.0, lambda: calls.append("started"))
    bucket.charge(200, 0.0)  # to 0.1
    bucket.charge(200, 0.15)
    assert calls == ["started"]


sizes = st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 0.5)), min_size=1, max_size=60)


@settings(max_examples=150)
@given(st.integers(1, 100_000), sizes)
def test_over_any_window_no_more_is_admitted_than_rate_times_window_and_a_slice(rate, requests):
    """One sender that waits as it is told. The last request of a window may leave a debt: it is paid after it."""
    bucket = TokenBucket(rate, now=0.0)
    now, admitted = 0.0, []
    for size, pause in requests:
        now += pause
        admitted.append((now, size))
        delay = bucket.charge(size, now)
        if delay == MAX_DELAY_S:
            return  # the debt is capped in time: what follows is no longer bounded by the rate
        now += delay
    for first in range(len(admitted)):
        for last in range(first, len(admitted)):
            window = admitted[last][0] - admitted[first][0]
            total = sum(size for _, size in admitted[first:last])
            assert total <= rate * window + rate * SLICE_S + 1e-3


@settings(max_examples=150)
@given(st.integers(1, 100_000), sizes)
def test_what_is_paid_never_outruns_rate_times_time_and_loses_nothing(rate, requests):
    """Many senders at once: whoever sends, payment goes on at the rate, and ends at what was charged."""
    bucket = TokenBucket(rate, now=0.0)
    now, before = 0.0, 0
    for size, pause in requests:
        now += pause
        bucket.charge(size, now)
        paid = bucket.paid_bytes(now)
        assert before - 1 <= paid <= rate * (now + SLICE_S) + 1, "to the byte: a debt is a sum of fractions"
        before = paid
    total = sum(size for size, _ in requests)
    assert bucket.charged_bytes == total
    assert bucket.paid_bytes(now + total / rate + 1) == total


@settings(max_examples=100)
@given(sizes, st.lists(st.one_of(st.none(), st.integers(0, 10_000)), min_size=1, max_size=20))
def test_under_changing_rates_delays_and_counters_stay_sane(requests, rates):
    bucket = TokenBucket(rates[0], now=0.0)
    now, throttled = 0.0, 0.0
    for index, (size, pause) in enumerate(requests):
        now += pause
        bucket.set_rate(rates[index % len(rates)], now)
        assert 0.0 <= bucket.charge(size, now) <= MAX_DELAY_S
        assert bucket.paid_bytes(now) <= bucket.charged_bytes
        assert bucket.throttled_s(now) >= throttled - 1e-6
        assert bucket.throttled_s(now) <= now + 1e-6
        throttled = bucket.throttled_s(now)
        if bucket.rate is not None:
            assert bucket.debt_bytes(now) >= 0.0
