"""One piece after the other, with rests: so that neither a processor nor the interpreter is taken from the loop for long."""

from __future__ import annotations

import pytest

from dataplane.storage.unhurried import MOST_VOID, REST_S, Unhurried
from dataplane.tasks import Future
from tests.support.memory_files import ImmediateBackground


class Steps:
    """A background door and `Loop.call_later`, each done when the test says so."""

    def __init__(self) -> None:
        self.works: list = []
        self.rests: list = []

    def run(self, work):
        future: Future = Future()
        self.works.append((work, future))
        return future

    def call_later(self, delay_s, callback) -> None:
        self.rests.append((delay_s, callback))

    def work(self) -> None:
        work, future = self.works.pop(0)
        try:
            future.resolve(work())
        except OSError as error:
            future.fail(error)

    def rest(self) -> None:
        self.rests.pop(0)[1]()


@pytest.fixture
def steps() -> Steps:
    return Steps()


def test_one_after_the_other_with_a_rest_between(steps):
    queue, done = Unhurried(steps, steps.call_later), []
    futures = [queue.run(lambda number=number: done.append(number)) for number in range(3)]
    for number in range(3):
        assert (len(steps.works), steps.rests) == (1, [])
        steps.work()
        assert done == list(range(number + 1))
        assert [future.done for future in futures] == [True] * (number + 1) + [False] * (2 - number)
        assert steps.works == []
        assert [delay_s for delay_s, _ in steps.rests] == [REST_S]
        steps.rest()
    assert steps.works == []


def test_what_need_not_be_done_any_more_is_passed_over_without_a_rest(steps):
    queue, done = Unhurried(steps, steps.call_later), []
    queue.run(lambda: done.append(1))
    void = queue.run(lambda: done.append(2), lambda: True)
    queue.run(lambda: done.append(3))
    steps.work()
    steps.rest()
    assert void.done
    steps.work()
    assert done == [1, 3]


def test_very_many_that_need_not_be_done_are_let_go_of_in_parts(steps):
    queue = Unhurried(steps, steps.call_later)
    queue.run(lambda: None)
    voids = [queue.run(lambda: None, lambda: True) for _ in range(MOST_VOID + 1)]
    steps.work()
    steps.rest()
    assert [future.done for future in voids] == [True] * MOST_VOID + [False]
    steps.rest()
    assert voids[-1].done


def test_what_cannot_be_begun_does_not_stop_the_queue(steps, monkeypatch):
    queue, done = Unhurried(steps, steps.call_later), []
    with monkeypatch.context() as broken:
        broken.setattr(steps, "run", lambda work: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            queue.run(lambda: None)
    queue.run(lambda: done.append(1))
    steps.work()
    assert done == [1]


def test_one_that_fails_says_so_and_the_next_are_done(steps):
    queue, done = Unhurried(steps, steps.call_later), []

    def fail() -> None:
        raise OSError("no")

    failed = queue.run(fail)
    queue.run(lambda: done.append(1))
    steps.work()
    assert isinstance(failed.error, OSError)
    steps.rest()
    steps.work()
    assert done == [1]


def test_where_very_many_wait_there_are_no_rests(steps):
    queue = Unhurried(steps, steps.call_later, rests_up_to=2)
    for _ in range(5):
        queue.run(lambda: None)
    steps.work()
    steps.work()
    assert (len(steps.works), steps.rests) == (1, []), "two wait behind it"
    steps.work()
    assert (steps.works, len(steps.rests)) == ([], 1)


def test_without_a_loop_nobody_rests():
    queue, done = Unhurried(ImmediateBackground()), []
    for number in range(3):
        queue.run(lambda number=number: done.append(number))
    assert done == [0, 1, 2]
