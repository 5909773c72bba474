"""What the machine took is taken off a wait, and nothing that the broker did."""

import os
import time

import pytest

from tests.stalls.lost import Losses, Reading, read
from tests.stalls.machine import Stolen, stolen_s

BEFORE = Reading(10.0, 1000.0, 200.0, 50.0, (300.0, 400.0))


def after(ran=0.0, broker_waited=0.0, victim_waited=0.0, stolen=(0.0, 0.0)):
    return Reading(
        10.05,
        BEFORE.broker_ran + ran,
        BEFORE.broker_waited + broker_waited,
        BEFORE.victim_waited + victim_waited,
        tuple(then + more for then, more in zip(BEFORE.stolen, stolen, strict=True)),
    )


@pytest.mark.parametrize(
    ("later", "lost"),
    [
        (after(), 0.0),
        (after(ran=50.0), 0.0),
        (after(broker_waited=30.0), 30.0),
        (after(victim_waited=30.0), 30.0),
        (after(stolen=(0.0, 40.0)), 40.0),
        (after(stolen=(20.0, 20.0)), 40.0),
        (after(broker_waited=15.0, victim_waited=5.0, stolen=(20.0, 0.0)), 40.0),
        (after(ran=45.0, stolen=(30.0, 0.0)), 5.0),  # the other processor was taken: the broker ran on its own
        (after(stolen=(60.0, 0.0)), 50.0),  # no wait becomes less than nothing
    ],
)
def test_what_was_lost_of_a_wait_of_fifty_milliseconds(later, lost):
    assert later.lost_ms(BEFORE, 50.0) == pytest.approx(lost)


def test_stolen_time_is_read_by_processor():
    stat = "cpu  9 0 9 9 9 0 9 700 0 0\ncpu0 1 0 1 1 1 0 1 300 0 0\ncpu1 1 0 1 1 1 0 1 400 0 0\nintr 12 0\n"
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert stolen_s(stat) == pytest.approx((300 * tick_s, 400 * tick_s))


def test_what_was_stolen_is_a_share_of_all_processors(monkeypatch):
    taken = iter([(1.0, 1.0), (1.3, 1.1)])
    clock = iter([10.0, 12.0])
    monkeypatch.setattr(Stolen, "_read", staticmethod(lambda: next(taken)))
    monkeypatch.setattr("tests.stalls.machine.time.monotonic", lambda: next(clock))
    assert Stolen().percent() == pytest.approx(10.0)


def test_a_reading_of_this_process_counts_what_it_runs():
    before = read(os.getpid())
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        pass
    assert read(os.getpid()).broker_ran - before.broker_ran >= 30


def test_a_wait_is_compared_with_the_reading_before_it_began(monkeypatch):
    readings = iter(
        [BEFORE, after(broker_waited=5.0)._replace(at_s=10.1), after(broker_waited=35.0)._replace(at_s=10.2)]
    )
    monkeypatch.setattr("tests.stalls.lost.read", lambda _: next(readings))
    losses = Losses(1)
    losses.look(10.003)  # too early to read again
    losses.look(10.1)
    losses.look(10.2)
    assert losses.without(10.15, 50.0) == pytest.approx(20.0)
    assert losses.without(10.05, 150.0) == pytest.approx(115.0)
    losses.forget(10.15)
    assert losses.without(10.05, 150.0) == pytest.approx(120.0)


def test_of_a_broker_that_is_none_of_ours_nothing_is_taken_off():
    losses = Losses(None)
    losses.look(time.monotonic() + 1)
    losses.forget(time.monotonic())
    assert losses.without(time.monotonic() - 1, 1000.0) == 1000.0
