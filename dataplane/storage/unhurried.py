"""Work in the background that nobody waits for: one piece after the other, with rests.

A piece is a few system calls, after each of which its thread takes the interpreter from the loop, or one that keeps a processor
for milliseconds, as removing a large file does. One now and then is not felt. Thousands of new replicas made the loop's turns
three times as long, and 250 segments, removed by all threads of the background together, held others up for 50 ms.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dataplane.tasks import Future

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Background

    Later = Callable[[float, Callable[[], None]], object]
    Work = Callable[[], None]

REST_S = 0.01
"""Between two."""
MOST_VOID = 32
"""So many pieces that need not be done any more are dropped in one turn."""


def _never() -> bool:
    return False


class Unhurried:
    """One queue. While more than `rests_up_to` wait in it there are no rests.

    `later` calls something after so many seconds (`Loop.call_later`); without it there are no rests either.
    """

    def __init__(self, background: Background, later: Later | None = None, rests_up_to: int | None = None) -> None:
        self._background, self._later, self._rests_up_to = background, later, rests_up_to
        self._waiting: deque[tuple[Work, Callable[[], bool], Future[None]]] = deque()
        self._is_busy = False  # or at rest

    def run(self, work: Work, is_void: Callable[[], bool] = _never) -> Future[None]:
        """Have it done some time; the future is resolved on the loop.

        `is_void`: whether it need not be done, asked when its turn comes.
        """
        future: Future[None] = Future()
        self._waiting.append((work, is_void, future))
        self._next()
        return future

    def _next(self) -> None:
        let_go = 0
        while self._waiting and not self._is_busy:
            work, is_void, future = self._waiting.popleft()
            if not is_void():
                self._do(work, future)
                continue
            future.resolve(None)
            let_go += 1
            if let_go == MOST_VOID:
                self._is_busy = True
                self._rest()

    def _do(self, work: Work, future: Future[None]) -> None:
        def done(found: Future[None]) -> None:
            self._rest()
            if found.error is None:
                future.resolve(None)
            else:
                future.fail(found.error)

        under_way = self._background.run(work)
        self._is_busy = True
        under_way.then(done)

    def _rest(self) -> None:
        is_long = self._rests_up_to is not None and len(self._waiting) > self._rests_up_to
        if self._later is None or is_long:
            self._go_on()
        else:
            self._later(REST_S, self._go_on)

    def _go_on(self) -> None:
        self._is_busy = False
        self._next()
