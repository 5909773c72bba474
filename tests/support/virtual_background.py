"""The background door on virtual time: a few threads whose work takes effect some time later, between two turns of the loop.

    background = VirtualBackground(loop, Random(7))
    background.slow = (0.1, 2.0)          # from now on a job takes that long: a disk that has much to do

A job waits for a thread, has its effect all at once at a random moment of its time, and its result reaches the loop when
that is over. So whatever the loop does meanwhile (cuts a log, begins a segment, deletes a replica) races with it. What a
host that crashes had not begun is not done; what had its effect may never be heard of. A stopped process works no more
than its loop.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from dataplane.tasks import Future

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.support.virtual_loop import VirtualLoop

T = TypeVar("T")

THREADS = 4
FAST_S = (0.0002, 0.004)
STALL_S = (0.02, 0.6)
STALLS = 0.02  # of all jobs: a disk that does something else first
LOOK_AGAIN_S = 0.02


class VirtualBackground:
    """See the file's text. `random` belongs to it alone."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self._loop, self._network, self._random = loop, loop.network, random
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._busy = 0
        self.slow: tuple[float, float] | None = None
        self.jobs = 0

    def run(self, work: Callable[[], T]) -> Future[T]:
        """As `doors.Background`."""
        future: Future[T] = Future()
        self._waiting.append((work, future))
        self._begin()
        return future

    def run_apart(self, work: Callable[[Callable[[int], None]], T], bytes_per_s: float) -> Future[T]:
        """In a process of its own, which takes no thread: the time is longer, and else it is the same."""
        del bytes_per_s
        future: Future[T] = Future()
        self._start(lambda: work(lambda _: None), future, lambda: None)
        return future

    def _begin(self) -> None:
        while self._waiting and self._busy < THREADS:
            self._busy += 1
            work, future = self._waiting.popleft()
            self._start(work, future, self._free)

    def _free(self) -> None:
        self._busy -= 1
        self._begin()

    def _start(self, work: Callable[[], Any], future: Future[Any], free: Callable[[], None]) -> None:
        self.jobs += 1
        takes_s = self._random.uniform(*self._span())
        before_s = takes_s * self._random.random()

        def act() -> None:
            if self._loop.crashed:
                return
            if self._loop.paused:
                self._after(LOOK_AGAIN_S, act)
                return
            outcome = _outcome(work, future)
            self._after(takes_s - before_s, lambda: end(outcome))

        def end(outcome: Callable[[], None]) -> None:
            self._loop.call_threadsafe(outcome)
            free()

        self._after(before_s, act)

    def _span(self) -> tuple[float, float]:
        if self.slow is not None:
            return self.slow
        return STALL_S if self._random.random() < STALLS else FAST_S

    def _after(self, seconds: float, callback: Callable[[], None]) -> None:
        self._network.at(self._network.clock.seconds + seconds, callback)


def _outcome(work: Callable[[], Any], future: Future[Any]) -> Callable[[], None]:
    """Do it; what is left is to tell."""
    try:
        value = work()
    except Exception as error:  # noqa: BLE001 - the future carries it
        failure = error
        return lambda: future.fail(failure)
    return lambda: future.resolve(value)
