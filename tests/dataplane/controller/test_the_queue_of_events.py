"""The controller's queue: one event after the other, and never one that stands still without anybody knowing."""

from itertools import pairwise

import pytest

from dataplane.controller.events import EventQueue, TermEndedError
from dataplane.tasks import Future
from tests.simulation.virtual_time import VirtualTime
from tests.support.virtual_loop import VirtualNetwork


async def nothing():
    return None


def test_a_bug_of_somebody_who_waited_ends_the_term_instead_of_stopping_the_queue():
    network = VirtualNetwork(seed=1)
    failures = []
    queue = EventQueue(network.loop("broker"), failures.append)

    def bug(_: Future) -> None:
        raise ValueError("a bug")

    queue.submit(nothing).then(bug)
    network.run_for(1)
    assert [str(error) for error in failures] == ["a bug"]


@pytest.mark.parametrize("count", [1, 5])
def test_events_run_in_their_order(count):
    network = VirtualNetwork(seed=1)
    queue = EventQueue(network.loop("broker"), lambda error: None)
    done = []

    async def event(number):
        done.append(number)

    for number in range(count):
        queue.submit(lambda number=number: event(number))
    network.run_for(1)
    assert done == list(range(count))


def test_events_that_wait_for_nothing_are_one_a_turn():
    time = VirtualTime()
    queue = EventQueue(time, lambda error: None)
    done = []

    async def event():
        done.append(None)

    for _ in range(100):
        queue.submit(event)
    seen = []
    while time.step():
        seen.append(len(done))
    assert seen[-1] == 100
    assert all(after - before <= 1 for before, after in pairwise(seen))


def test_what_waits_between_two_events_when_the_term_ends_is_told():
    time = VirtualTime()
    queue = EventQueue(time, lambda error: None)
    first, second = queue.submit(nothing), queue.submit(nothing)
    while not first.done:
        time.step()
    queue.close(TermEndedError("over"))
    time.run(1)
    assert isinstance(second.error, TermEndedError)
