"""Requests that wait for one debt stand in line: in order, one for each time that it is paid, at a cost that few notice."""

import heapq
from collections.abc import Callable

import pytest

from dataplane.throttle.lines import LOOK_AGAIN_S, Lines
from quota.core.bucket import TokenBucket

RATE = 1000
SIZE = 500


class TurnedLoop:
    """Timers on a clock that is turned; it counts what it is asked for."""

    def __init__(self) -> None:
        self.now, self.timers, self.set = 0.0, [], 0
        self.clock = self

    def monotonic(self) -> float:
        return self.now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self.set += 1
        heapq.heappush(self.timers, (self.now + delay_s, self.set, callback))

    def run_until(self, moment: float) -> None:
        while self.timers and self.timers[0][0] <= moment:
            self.now, _, callback = heapq.heappop(self.timers)
            callback()
        self.now = moment


@pytest.fixture
def loop():
    return TurnedLoop()


@pytest.fixture
def lines(loop):
    return Lines(loop)


@pytest.fixture
def bucket(loop):
    """It owes half a second."""
    bucket = TokenBucket(RATE, loop.now)
    bucket.charge(RATE // 10 + SIZE, loop.now)
    return bucket


def serving(loop, bucket, served, name):
    """A request that is charged when its turn comes."""

    def serve():
        served.append((name, round(loop.now, 3)))
        bucket.charge(SIZE, loop.now)

    return serve


def test_each_is_served_when_what_the_one_before_him_owes_is_paid(loop, lines, bucket):
    served = []
    for name in "abc":
        lines.join(bucket, 0.0, serving(loop, bucket, served, name))
    loop.run_until(10)
    assert served == [("a", 0.5), ("b", 1.0), ("c", 1.5)]


def test_what_waiting_costs_does_not_grow_with_how_many_wait(loop, lines, bucket):
    served = []
    for number in range(1_000):
        lines.join(bucket, 0.0, serving(loop, bucket, served, number))
    loop.run_until(10.1)
    assert len(served) == 20
    assert loop.set == len(served) + 1


def test_a_higher_rate_is_noticed_before_the_debt_was_to_be_paid(loop, lines, bucket):
    bucket.charge(20 * RATE, loop.now)
    served = []
    lines.join(bucket, 20.5, serving(loop, bucket, served, "a"))
    loop.run_until(0.5)
    bucket.set_rate(100 * RATE, loop.now)
    loop.run_until(LOOK_AGAIN_S)
    assert served == [("a", LOOK_AGAIN_S)]


def test_a_debt_that_grew_meanwhile_is_waited_for(loop, lines, bucket):
    served = []
    lines.join(bucket, 0.0, serving(loop, bucket, served, "a"))
    bucket.charge(SIZE, loop.now)
    loop.run_until(10)
    assert served == [("a", 1.0)]


def test_where_nothing_may_pass_each_waits_until_the_moment_he_was_told(loop, lines):
    blocked, served = TokenBucket(0, loop.now), []
    lines.join(blocked, 30.0, serving(loop, blocked, served, "a"))
    loop.run_until(29)
    assert not served
    loop.run_until(60)
    assert served == [("a", 30.0)]


def test_lines_of_different_buckets_do_not_wait_for_each_other(loop, lines, bucket):
    other, served = TokenBucket(RATE, loop.now), []
    other.charge(RATE // 10 + SIZE // 5, loop.now)
    lines.join(bucket, 0.0, serving(loop, bucket, served, "a"))
    lines.join(other, 0.0, serving(loop, other, served, "b"))
    loop.run_until(10)
    assert served == [("b", 0.1), ("a", 0.5)]


def test_one_whose_serving_fails_does_not_hold_up_the_next(loop, lines, bucket):
    def fail():
        raise ZeroDivisionError

    served = []
    lines.join(bucket, 0.0, fail)
    lines.join(bucket, 0.0, serving(loop, bucket, served, "b"))
    with pytest.raises(ZeroDivisionError):
        loop.run_until(10)
    loop.run_until(10)
    assert served == [("b", 0.5)]


def test_who_joins_again_while_he_is_served_goes_to_the_end(loop, lines, bucket):
    served = []

    def again():
        bucket.charge(SIZE, loop.now)
        lines.join(bucket, 0.0, serving(loop, bucket, served, "again"))

    lines.join(bucket, 0.0, again)
    lines.join(bucket, 0.0, serving(loop, bucket, served, "b"))
    loop.run_until(10)
    assert served == [("b", 1.0), ("again", 1.5)]
