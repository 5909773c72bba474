"""Requests that wait for one debt: who asks for little passes, the others stand in line, at a cost that few notice."""

import heapq
from collections.abc import Callable

import pytest

from dataplane.throttle.debt_queue import LOOK_AGAIN_S, DebtQueues
from quota.core.bucket import TokenBucket
from quota.core.shares import EVERYBODY

RATE = 1000
SIZE = 500


class TurnedLoop:
    """Timers on a clock that is turned; it counts what it is asked for."""

    def __init__(self) -> None:
        self.now, self.timers, self.set = 0.0, [], 0
        self.clock = self

    def monotonic(self) -> float:
        return self.now

    def call_later(self, delay_s: float, callback: Callable[[], None]):
        self.set += 1
        timer = Timer(callback)
        heapq.heappush(self.timers, (self.now + delay_s, self.set, timer))
        return timer

    def when_due(self, account: str, callback: Callable[[], None]) -> None:
        del account
        callback()

    def run_until(self, moment: float) -> None:
        while self.timers and self.timers[0][0] <= moment:
            self.now, _, timer = heapq.heappop(self.timers)
            if timer.callback is not None:
                timer.callback()
        self.now = moment


class Timer:
    def __init__(self, callback):
        self.callback = callback

    def cancel(self):
        self.callback = None


@pytest.fixture
def loop():
    return TurnedLoop()


@pytest.fixture
def lines(loop):
    return DebtQueues(loop)


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


# --- in line ----------------------------------------------------------------------------------------------------------


def test_each_is_served_when_what_the_one_before_him_owes_is_paid(loop, lines, bucket):
    served = []
    for name in "abc":
        lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, name))
    loop.run_until(10)
    assert served == [("a", 0.5), ("b", 1.0), ("c", 1.5)]


def test_what_waiting_costs_does_not_grow_with_how_many_wait(loop, lines, bucket):
    served = []
    for number in range(1_000):
        lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, number))
    loop.run_until(10.1)
    assert len(served) == 20
    assert loop.set <= len(served) + 3


def test_a_higher_rate_is_noticed_before_the_debt_was_to_be_paid(loop, lines, bucket):
    bucket.charge(20 * RATE, loop.now)
    served = []
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "a"))
    loop.run_until(0.5)
    bucket.set_rate(100 * RATE, loop.now)
    loop.run_until(LOOK_AGAIN_S)
    assert served == [("a", LOOK_AGAIN_S)]


def test_a_debt_that_grew_meanwhile_is_waited_for(loop, lines, bucket):
    served = []
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "a"))
    bucket.charge(SIZE, loop.now)
    loop.run_until(10)
    assert served == [("a", 1.0)]


def test_lines_of_different_buckets_do_not_wait_for_each_other(loop, lines, bucket):
    other, served = TokenBucket(RATE, loop.now), []
    other.charge(RATE // 10 + SIZE // 5, loop.now)
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "a"))
    lines.join(other, EVERYBODY, SIZE, serving(loop, other, served, "b"))
    loop.run_until(10)
    assert served == [("b", 0.1), ("a", 0.5)]


def test_one_whose_serving_fails_does_not_hold_up_the_next(loop, lines, bucket):
    def fail():
        raise ZeroDivisionError

    served = []
    lines.join(bucket, EVERYBODY, SIZE, fail)
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "b"))
    with pytest.raises(ZeroDivisionError):
        loop.run_until(10)
    loop.run_until(10)
    assert served == [("b", 0.5)]


def test_who_joins_again_while_he_is_served_goes_to_the_end(loop, lines, bucket):
    served = []

    def again():
        bucket.charge(SIZE, loop.now)
        lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "again"))

    lines.join(bucket, EVERYBODY, SIZE, again)
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "b"))
    loop.run_until(10)
    assert served == [("b", 1.0), ("again", 1.5)]


def test_who_gives_up_is_not_served_and_costs_the_next_nothing(loop, lines, bucket):
    served = []
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "gone")).give_up()
    lines.join(bucket, EVERYBODY, SIZE, serving(loop, bucket, served, "b"))
    loop.run_until(10)
    assert served == [("b", 0.5)]


def test_who_has_given_up_is_not_waited_for_by_those_behind_him(loop, lines, bucket):
    bucket.charge(20 * RATE, loop.now)
    lines.charge(bucket, ("large", "here"), SIZE, loop.now)
    served = []
    large = lines.join(bucket, ("a", "here"), 5 * RATE, serving(loop, bucket, served, "gone"))
    lines.join(bucket, ("a", "here"), 10, serving(loop, bucket, served, "small"))
    large.give_up()
    loop.run_until(1)
    assert [name for name, _ in served] == ["small"]


@pytest.mark.parametrize("end", ["give_up", "serve"])
def test_nothing_is_kept_of_who_has_left_a_line_that_does_not_move(loop, lines, end):
    """Clients that come again and again, or whose patience ends, would fill the memory while nothing may pass."""
    blocked = TokenBucket(0, loop.now)
    for _ in range(100):
        getattr(lines.join(blocked, ("a", "here"), SIZE, lambda: None), end)()
    loop.run_until(1)
    blocked.set_rate(RATE, loop.now)
    assert lines.passes(blocked, ("a", "here"), 1, loop.now)
    assert blocked.line.ahead_s() == 0


# --- where nothing may pass -------------------------------------------------------------------------------------------


def test_at_a_rate_of_nothing_nobody_passes_not_even_the_first(loop, lines):
    blocked = TokenBucket(0, loop.now)
    assert not lines.passes(blocked, ("a", "here"), 1, loop.now)
    served = []
    lines.join(blocked, ("a", "here"), 1, serving(loop, blocked, served, "a"))
    loop.run_until(300)
    assert served == []


def test_that_somebody_waits_where_nothing_passes_is_seen(loop, lines):
    """Or the master, which grants by demand, would never grant anything."""
    blocked = TokenBucket(0, loop.now)
    lines.join(blocked, ("a", "here"), 1, serving(loop, blocked, [], "a"))
    loop.run_until(10)
    assert blocked.throttled_s(loop.now) == pytest.approx(10, abs=1)


def test_when_the_rate_comes_those_who_wait_are_served(loop, lines):
    blocked, served = TokenBucket(0, loop.now), []
    for name in "ab":
        lines.join(blocked, (name, "here"), SIZE, serving(loop, blocked, served, name))
    loop.run_until(1.5)
    blocked.set_rate(RATE, loop.now)
    loop.run_until(10)
    assert [name for name, _ in served] == ["a", "b"]


# --- shares -----------------------------------------------------------------------------------------------------------


class Sender:
    """Sends requests of one size, each as soon as the one before has passed and its time has come."""

    def __init__(self, loop, lines, bucket, name, size, every_s=0.0):
        self.loop, self.lines, self.bucket, self.name = loop, lines, bucket, (name, "here")
        self.size, self.every_s = size, every_s
        self.waited, self.passed = [], 0
        self.due = loop.now
        loop.call_later(0, self.send)

    def send(self):
        if self.lines.passes(self.bucket, self.name, self.size, self.loop.now):
            self.done()
        else:
            self.lines.join(self.bucket, self.name, self.size, self.done)

    def done(self):
        now = self.loop.now
        self.lines.charge(self.bucket, self.name, self.size, now)
        self.passed += self.size
        self.waited.append(now - self.due)
        self.due = max(self.due + self.every_s, now)
        self.loop.call_later(max(self.due - now, 0.000_1), self.send)


def test_who_asks_for_less_than_his_part_waits_for_nobody(loop, lines):
    bucket = TokenBucket(6_000_000, loop.now)
    flood = [Sender(loop, lines, bucket, "flood", 1_000_000) for _ in range(20)]
    small = [Sender(loop, lines, bucket, f"small-{n}", 10_000, every_s=0.1) for n in range(10)]
    loop.run_until(30)
    for sender in small:
        assert sender.passed == pytest.approx(3_000_000, rel=0.02)
        assert max(sender.waited[5:]) < 0.05
    whole = sum(sender.passed for sender in (*flood, *small))
    assert 0.97 * 30 <= whole / 6_000_000 <= 1.05 * 30


def test_two_who_flood_have_the_same_whatever_their_requests(loop, lines):
    bucket = TokenBucket(1_000_000, loop.now)
    large = [Sender(loop, lines, bucket, "large", 500_000) for _ in range(3)]
    little = [Sender(loop, lines, bucket, "little", 5_000) for _ in range(30)]
    loop.run_until(60)
    parts = [sum(sender.passed for sender in each) for each in (large, little)]
    assert parts[0] == pytest.approx(parts[1], rel=0.05)


@pytest.mark.parametrize("names", [1, 20, 1_000])
def test_no_number_of_senders_has_more_than_the_limit(loop, lines, names):
    rate = 1_000_000
    bucket = TokenBucket(rate, loop.now)
    senders = [Sender(loop, lines, bucket, f"c{n % names}", 20_000) for n in range(1_000)]
    moments, before = [], 0
    for second in range(1, 61):
        loop.run_until(second)
        after = sum(sender.passed for sender in senders)
        moments.append(after - before)
        before = after
    worst = max(sum(moments[start : start + 30]) for start in range(31))
    assert worst <= 1.05 * 30 * rate


def test_who_ran_up_the_debt_does_not_pass_before_it_is_paid(loop, lines):
    """Nor does he earn credit beside it: else ten seconds' worth at once would cost him nothing."""
    bucket = TokenBucket(RATE, loop.now)
    lines.charge(bucket, ("large", "here"), 10 * RATE, loop.now)
    sender = Sender(loop, lines, bucket, "large", RATE // 10)
    other = Sender(loop, lines, bucket, "other", RATE // 10, every_s=1.0)
    loop.run_until(8.5)
    assert sender.passed == 0
    assert other.passed == 9 * RATE // 10
    loop.run_until(15)
    assert sender.passed > 0


def test_who_has_gone_has_no_part_any_more_though_others_still_wait(loop, lines):
    """The line is never empty while somebody floods; parts are of those who ask for something now."""
    bucket = TokenBucket(1_000_000, loop.now)
    flood = [Sender(loop, lines, bucket, "flood", 100_000) for _ in range(20)]
    loop.run_until(1)
    for number in range(50):
        lines.charge(bucket, (f"gone-{number}", "here"), 1, loop.now)
    loop.run_until(5)
    modest = Sender(loop, lines, bucket, "modest", 20_000, every_s=0.1)  # two fifths of an equal part
    loop.run_until(15)
    assert modest.passed == pytest.approx(2_000_000, rel=0.05)
    assert max(modest.waited[5:]) < 0.05
    assert sum(sender.passed for sender in (*flood, modest)) <= 1.05 * 15_000_000


def test_a_line_goes_when_nobody_needs_it(loop, lines, bucket):
    Sender(loop, lines, bucket, "a", SIZE, every_s=100)
    assert not lines.passes(bucket, ("b", "here"), SIZE, loop.now)
    assert bucket.line is not None
    loop.run_until(50)
    assert bucket.line is None
    assert lines.passes(bucket, ("b", "here"), SIZE, loop.now)
