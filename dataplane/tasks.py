"""Futures and tasks for everything in a broker that waits: ZooKeeper, other brokers, other threads' results.

The smallest thing that gives `await`: no event loop of its own and no hidden queue, so it is deterministic. A future calls
its waiters in the order in which they came, at the moment it is resolved; a task runs until its next unresolved future.
The data path does not use it: produce and fetch are callbacks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)

_log = logging.getLogger(__name__)
_STEPS_PER_TURN, _HURRIED_STEPS_PER_TURN = 2, 6
"""A sixth of a millisecond, and half of one."""


class CancelledError(Exception):
    """Thrown into a task by `Task.cancel`, and the error of a task that ended by it."""


def without_frames(error: E, count: int) -> E:
    """An error that goes into a future, without the outermost frames of its traceback: they have the future, a cycle."""
    traceback = error.__traceback__
    for _ in range(count):
        traceback = traceback.tb_next if traceback is not None else None
    error.__traceback__ = traceback
    return error


def without_traceback(error: E) -> E:
    """The same where the code in between is no generator: each of its frames has the one behind it. A note says where it was."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is not None:
        code = traceback.tb_frame.f_code
        error.add_note(f"raised in {code.co_qualname}, {code.co_filename}:{traceback.tb_lineno}")
    return error.with_traceback(None)


class Future(Generic[T]):
    """A value or an error that comes later, once."""

    __slots__ = ("_error", "_observed", "_value", "_waiters", "done")

    def __init__(self) -> None:
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._observed = False  # somebody has asked, or waits
        self._waiters: list[Callable[[Future[T]], None]] = []

    def resolve(self, value: T) -> None:
        """Give the value. Ignored when done: whoever came first has decided."""
        if not self.done:
            self.done, self._value = True, value
            self._wake()

    def fail(self, error: BaseException) -> None:
        """Give the error. Ignored when done."""
        if not self.done:
            self.done, self._error = True, error
            self._wake()

    def result(self) -> T:
        """The value; raises the error. Only when done."""
        self._observed = True
        if self._error is not None:
            try:
                raise self._error
            finally:
                del self  # the error would have it, in this frame: a cycle, which stays in memory (`garbage`)
        assert self.done
        return self._value  # type: ignore[return-value]

    @property
    def error(self) -> BaseException | None:
        """The error, if it ended with one."""
        self._observed = True
        return self._error

    def then(self, callback: Callable[[Future[T]], None]) -> None:
        """Call with this future when done; at once if it is."""
        self._observed = True
        if self.done:
            callback(self)
        else:
            self._waiters.append(callback)

    def follow(self, other: Future[T]) -> None:
        """End as another one has, which is done."""
        error = other.error
        if error is None:
            self.resolve(other.result())
        else:
            self.fail(error)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            waiter(self)

    def __await__(self) -> Generator[Future[T], None, T]:
        if not self.done:
            yield self
        try:
            return self.result()
        finally:
            del self


class Later(Future[T]):
    """A future that is worked on for somebody who may go away meanwhile, as a client does."""

    __slots__ = ()

    @property
    def held_until(self) -> Future[Any] | None:
        """What has to be done before anything more is taken from whom this is for; None: nothing."""
        return None

    def give_up(self) -> None:
        """Nobody wants it any more. Harmless when it is done."""

    def look_again(self) -> None:
        """Whom it is for may do less than when it asked. Nothing to most; what waits long may end."""

    def waited_s(self, began_s: float, now_s: float) -> float:
        """For how long it waited for others, now that it is done: as a rule since it was begun."""
        return now_s - began_s


class Task(Future[T]):
    """A coroutine that is being run. It starts at once."""

    __slots__ = ("_coroutine", "_waiting_for", "name")

    def __init__(self, coroutine: Coroutine[Any, Any, T], name: str = "") -> None:
        super().__init__()
        self._coroutine = coroutine
        self._waiting_for: Future[Any] | None = None
        self.name = name
        self._step(None)

    def cancel(self) -> None:
        """Throw CancelledError into the coroutine where it waits. Harmless when done."""
        if not self.done:
            self._waiting_for = None
            self._step(CancelledError())

    def _step(self, error: BaseException | None) -> None:
        try:
            waits_for = self._coroutine.throw(error) if error is not None else self._coroutine.send(None)
        except StopIteration as stop:
            self.resolve(stop.value)
        except Exception as failure:  # noqa: BLE001 - the future carries it
            self.fail(without_frames(failure, 1))
        else:
            self._waiting_for = waits_for
            waits_for.then(self._resume)

    def __del__(self) -> None:
        if self._error is not None and not self._observed and not isinstance(self._error, CancelledError):
            _log.error("the task %r failed and nobody asked", self.name, exc_info=self._error)

    def _resume(self, future: Future[Any]) -> None:
        if future is self._waiting_for and not self.done:
            self._waiting_for = None
            self._step(None)


def resolved(value: T) -> Future[T]:
    """A future that is done."""
    future: Future[T] = Future()
    future.resolve(value)
    return future


def failed(error: BaseException) -> Future[Any]:
    """A future that has failed."""
    future: Future[Any] = Future()
    future.fail(error)
    return future


async def gather(futures: Sequence[Future[T]]) -> list[T]:
    """All values, in order; raises the first error in that order once all are done."""
    for future in futures:
        if not future.done:
            over: Future[None] = Future()
            future.then(lambda _, over=over: over.resolve(None))  # type: ignore[misc]
            await over
    failures = [error for error in [future.error for future in futures] if error is not None]
    if failures:
        first = failures[0]
        try:
            raise first
        finally:
            del futures, future, failures, first  # the error has this frame: as in `Future.result`
    return [future.result() for future in futures]


class Timers(Protocol):
    """As much of a loop as `sleep` needs (`doors.Loop`, which stands above this)."""

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object:
        """Run once, so many seconds from now or a little later."""
        ...


def sleep(timers: Timers, seconds: float) -> Future[None]:
    """A future that is resolved that much later."""
    future: Future[None] = Future()
    timers.call_later(seconds, lambda: future.resolve(None))
    return future


async def in_steps(
    steps: Generator[Any, Any, T],
    pause: Callable[[], Future[None]],
    per_turn: Callable[[], int] = lambda: _STEPS_PER_TURN,
) -> T:
    """The result of steps that only pause (`records.steps`), some of them in each turn. They end with who waits for them."""
    try:
        while True:
            for _ in range(per_turn()):
                assert next(steps) is None
            await pause()
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        steps.close()


class Hurried:
    """The same for what partitions have no leader without: half a millisecond of each turn, shared by all that are made here."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._under_way = 0

    async def run(self, steps: Generator[Any, Any, T]) -> T:
        """The result of steps that only pause."""
        self._under_way += 1
        try:
            return await in_steps(steps, lambda: sleep(self._timers, 0.0), self._share)
        finally:
            self._under_way -= 1

    def _share(self) -> int:
        return max(1, _HURRIED_STEPS_PER_TURN // self._under_way)


async def either(wanted: Future[Any], deadline: Future[None]) -> bool:
    """Wait for the first of the two; whether it was the wanted one."""
    first: Future[bool] = Future()
    wanted.then(lambda _: first.resolve(True))
    deadline.then(lambda _: first.resolve(False))
    return await first
