"""Pieces of work in the order in which they came, though some of them take many turns of the loop.

A controller's words are such: each is applied as if in one moment, before the next one is looked at, so what is checked at
its beginning (whose controller it is, which epochs) holds to its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from dataplane.records.steps import Steps, run_through
from dataplane.tasks import Future

T = TypeVar("T")
Run = Callable[[Steps[Any]], "Future[Any]"]
"""Makes the steps of some work, in turns of its own or at once."""


def at_once(steps: Steps[T]) -> Future[T]:
    """For short work."""
    future: Future[T] = Future()
    try:
        future.resolve(run_through(steps))
    except Exception as error:  # noqa: BLE001 - the future carries it
        future.fail(error)
    return future


class InOrder:
    """See the module. What fails does not hold up what is behind it."""

    def __init__(self) -> None:
        self._line: deque[tuple[Steps[Any], Run, Future[Any]]] = deque()
        self._is_busy = self._goes_on = False  # a piece is under way; those behind it are looked at

    def add(self, steps: Steps[T], run: Run = at_once) -> Future[T]:
        """Have steps made when those before them are over; the future is their outcome."""
        outcome: Future[T] = Future()
        self._line.append((steps, run, outcome))
        self._go_on()
        return outcome

    def _go_on(self) -> None:
        if self._goes_on:
            return
        self._goes_on = True
        while self._line and not self._is_busy:
            steps, run, outcome = self._line.popleft()
            self._is_busy = True
            run(steps).then(lambda future, outcome=outcome: self._over(outcome, future))  # type: ignore[misc]
        self._goes_on = False

    def _over(self, outcome: Future[Any], future: Future[Any]) -> None:
        self._is_busy = False
        if future.error is None:
            outcome.resolve(future.result())
        else:
            outcome.fail(future.error)
        self._go_on()
