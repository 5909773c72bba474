"""Futures and tasks: order, errors, cancelling, and no failure that nobody hears of."""

import gc
import logging

import pytest

from dataplane.tasks import CancelledError, Future, Task, failed, gather, resolved


def test_waiters_are_called_in_their_order_when_the_future_is_resolved():
    future, called = Future(), []
    future.then(lambda f: called.append(("first", f.result())))
    future.then(lambda f: called.append(("second", f.result())))
    assert called == []
    future.resolve(7)
    assert called == [("first", 7), ("second", 7)]


def test_whoever_comes_first_decides():
    future = Future()
    future.resolve(1)
    future.fail(ValueError())
    future.resolve(2)
    assert future.result() == 1


def test_a_task_runs_at_once_up_to_its_first_unresolved_future():
    steps, gate = [], Future()

    async def work():
        steps.append("started")
        steps.append(await resolved("no waiting"))
        steps.append(await gate)
        return "done"

    task = Task(work())
    assert steps == ["started", "no waiting"]
    gate.resolve("opened")
    assert (steps[-1], task.result()) == ("opened", "done")


def test_an_error_is_raised_where_the_task_waits():
    async def work():
        try:
            await failed(KeyError("x"))
        except KeyError:
            return "caught"

    assert Task(work()).result() == "caught"


def test_cancelling_throws_into_the_task_and_is_its_error():
    cleaned = []

    async def work():
        try:
            await Future()
        finally:
            cleaned.append(True)

    task = Task(work())
    task.cancel()
    task.cancel()
    assert cleaned == [True]
    assert isinstance(task.error, CancelledError)


def test_a_future_resolved_after_cancelling_does_not_wake_the_task_again():
    gate, woken = Future(), []

    async def work():
        try:
            await gate
            woken.append("gate")
        except CancelledError:
            await Future()

    Task(work()).cancel()
    gate.resolve(None)
    assert woken == []


def test_gather_waits_for_all_and_raises_the_first_error_in_order():
    late, error = Future(), ValueError("second of three")
    task = Task(gather([resolved(1), failed(error), late]))
    assert not task.done
    late.resolve(3)
    assert task.error is error


@pytest.mark.parametrize("observed", [False, True])
def test_a_failure_that_nobody_asks_for_is_logged(caplog, observed):
    async def work():
        raise RuntimeError("a bug")

    task = Task(work(), "doomed")
    if observed:
        assert task.error is not None
    with caplog.at_level(logging.ERROR):
        del task
        gc.collect()
    assert ("doomed" in caplog.text) is not observed


@pytest.mark.parametrize("error", [None, ValueError("no")], ids=["a value", "an error"])
def test_one_that_follows_another_ends_as_that_has(error):
    first, second = Future(), Future()
    first.then(second.follow)
    assert not second.done
    if error is None:
        first.resolve(7)
        assert second.result() == 7
    else:
        first.fail(error)
        assert second.error is error
