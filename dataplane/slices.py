"""Long Python work in slices between the turns of the loop, a millisecond each, fairly shared among owners.

What is run are `records.steps`: generators that yield None to pause, or a call for the background door (codecs). A piece
of work begins at once, and most of it is over before its first pause. What is not goes on in later turns: one slice per
turn in all, so that conversion, however much is asked for, takes a bounded part of the loop; owners (instances) take turns.

Of one owner one piece is under way at a time, and `MAX_UNDER_WAY` in all: that bounds the memory that half-done work
holds. What waits has not begun, and so holds only what it was given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dataplane.tasks import Future

if TYPE_CHECKING:
    from dataplane.doors import Background, Loop
    from dataplane.records.steps import Steps

T = TypeVar("T")
MAX_UNDER_WAY = 16


class _Job:
    __slots__ = ("future", "owner", "steps")

    def __init__(self, owner: str, steps: Steps[Any], future: Future[Any]) -> None:
        self.owner, self.steps, self.future = owner, steps, future


class Slices:
    """See the module."""

    def __init__(self, loop: Loop, background: Background) -> None:
        self._loop, self._background = loop, background
        self._under_way: dict[str, _Job] = {}
        self._waiting: dict[str, deque[_Job]] = {}  # in the order in which owners came
        self._ready: deque[_Job] = deque()
        self._is_scheduled = False

    def run(self, owner: str, steps: Steps[T]) -> Future[T]:
        """The future has what the steps return or raise; it is done already where they did not pause."""
        future: Future[T] = Future()
        job = _Job(owner, steps, future)
        if owner in self._under_way or len(self._under_way) >= MAX_UNDER_WAY:
            self._waiting.setdefault(owner, deque()).append(job)
        else:
            self._under_way[owner] = job
            self._step(job, None, None)
        return future

    def _step(self, job: _Job, answer: Any, error: Exception | None) -> None:
        try:
            work = job.steps.send(answer) if error is None else job.steps.throw(error)
        except StopIteration as stop:
            self._over(job)
            job.future.resolve(stop.value)
        except Exception as failure:  # noqa: BLE001 - the future carries it
            self._over(job)
            job.future.fail(failure)
        else:
            if work is None:
                self._later(job)
            else:
                self._elsewhere(job, work)

    def _elsewhere(self, job: _Job, work: Callable[[], Any]) -> None:
        def done(future: Future[Any]) -> None:
            error = future.error
            if error is None:
                self._step(job, future.result(), None)
            else:
                assert isinstance(error, Exception)
                self._step(job, None, error)

        self._background.run(work).then(done)

    def _later(self, job: _Job) -> None:
        self._ready.append(job)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """One slice, and the others in later turns."""
        self._is_scheduled = False
        self._step(self._ready.popleft(), None, None)
        if self._ready and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._turn)

    def _over(self, job: _Job) -> None:
        """Let the next one begin, in a later turn."""
        del self._under_way[job.owner]
        owner = next((owner for owner in self._waiting if owner not in self._under_way), None)
        if owner is None:
            return
        queue = self._waiting.pop(owner)
        following = queue.popleft()
        if queue:
            self._waiting[owner] = queue  # behind the other owners
        self._under_way[owner] = following
        self._later(following)
