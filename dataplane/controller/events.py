"""One thing after the other: the controller's events. Each is a coroutine that runs to its end before the next begins.

So whatever an event reads from memory is still true when it writes, however long ZooKeeper takes in between. The next one
begins in another turn of the loop: a thousand that have nothing to wait for are not one long turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from dataplane.doors import Loop
from dataplane.tasks import CancelledError, Future, Task, sleep

Event = Callable[[], Coroutine[Any, Any, Any]]


class TermEndedError(Exception):
    """This broker is not the controller any more."""


class EventQueue:
    """Runs events in the order in which they came; `failed` is called with the first error, and the queue stops."""

    def __init__(self, loop: Loop, failed: Callable[[Exception], None]) -> None:
        self._loop = loop
        self._failed = failed
        self._waiting: deque[tuple[Event, Future[Any]]] = deque()
        self._running: Future[Any] | None = None
        self._started = False
        self._task: Task[None] | None = None
        self._closed: Exception | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return self._running is None and not self._waiting

    def submit(self, event: Event) -> Future[Any]:
        """Run it after those before it; the future is its outcome."""
        future: Future[Any] = Future()
        if self._closed is not None:
            future.fail(self._closed)
            return future
        self._waiting.append((event, future))
        if not self._started:
            self._started = True
            self._loop.call_soon(self._start)
        return future

    def close(self, error: Exception) -> None:
        """Stop where it stands; everybody who waits gets this error. Not to be called from within an event."""
        if self._closed is not None:
            return
        self._closed = error
        futures = ([self._running] if self._running else []) + [future for _, future in self._waiting]
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        for future in futures:
            future.fail(error)

    def _start(self) -> None:
        if self._closed is None:
            self._task = Task(self._run(), "controller events")

    async def _run(self) -> None:
        while self._waiting and self._closed is None:
            event, self._running = self._waiting.popleft()
            try:
                result = await event()
            except CancelledError:
                return
            except Exception as error:  # noqa: BLE001 - told to the one who knows what it means
                self._loop.call_soon(lambda error=error: self._failed(error))  # type: ignore[misc]
                return
            done, self._running = self._running, None
            try:
                done.resolve(result)
            except Exception as error:  # noqa: BLE001 - of who waited; a queue that stood still would be no controller
                self._loop.call_soon(lambda error=error: self._failed(error))  # type: ignore[misc]
                return
            if self._waiting:
                await sleep(self._loop, 0.0)
        self._started = False
