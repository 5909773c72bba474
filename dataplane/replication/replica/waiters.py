"""One that waits: what hangs on a partition, and what becomes of it when its time is up. `waiting` has all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections import deque

Done = Callable[[ErrorCode], None]


def _nothing() -> None:
    """Instead of what was called."""


class Watcher(Protocol):
    """What hangs on a partition because it reads from it."""

    def arrived(self, size: int) -> None:
        """`size` bytes more can be read; 0: none, but something else that readers are told has changed."""
        ...

    def lost(self) -> None:
        """The partition's role, epoch or state has changed: look again."""
        ...


class Waiter:
    """Something with a deadline."""

    __slots__ = ("tick",)

    def __init__(self) -> None:
        self.tick: dict[Waiter, None] | None = None

    def expired(self) -> None:
        """The deadline came first."""
        raise NotImplementedError

    def clear_deadline(self) -> None:
        """It will not expire."""
        if self.tick is not None:
            self.tick.pop(self, None)
            self.tick = None


class AckWaiter(Waiter):
    """A produce with acks=all: waits until the high watermark is above its last offset."""

    __slots__ = ("_queue", "done", "last_offset")

    def __init__(self, queue: deque[AckWaiter], last_offset: int, done: Done) -> None:
        super().__init__()
        self._queue = queue
        self.last_offset = last_offset
        self.done = done

    def expired(self) -> None:
        """Not on all of the ISR in time. It may get there yet: a retry is told of the duplicate."""
        self._queue.remove(self)
        self.done(ErrorCode.REQUEST_TIMED_OUT)


class ReadWaiter(Waiter):
    """A fetch that found too little."""

    __slots__ = ("missing", "places", "wake")

    def __init__(self, places: list[dict[Watcher, None]], missing: int, wake: Callable[[], None]) -> None:
        super().__init__()
        self.places = places
        self.missing = missing
        self.wake = wake

    def leave(self) -> None:
        """Hang nowhere any more."""
        for place in self.places:
            place.pop(self, None)

    def cancel(self) -> None:
        """Never mind."""
        self.leave()
        self.clear_deadline()

    def arrived(self, size: int) -> None:
        """Enough is enough."""
        self.missing -= size
        if self.missing <= 0:
            self.lost()

    def lost(self) -> None:
        """It answers with what there is."""
        self.cancel()
        self._wake_once()

    def expired(self) -> None:
        """It answers with what there is."""
        self.leave()
        self._wake_once()

    def _wake_once(self) -> None:
        """What was woken may be called in another turn, and until then partitions of a session tell their waiter again."""
        wake, self.wake = self.wake, _nothing
        wake()


class LowWatermarkWaiter(Waiter):
    """A DeleteRecords: waits until every live replica's log begins at `offset` or later."""

    __slots__ = ("_queue", "done", "offset")

    def __init__(self, queue: dict[LowWatermarkWaiter, None], offset: int, done: Done) -> None:
        super().__init__()
        self._queue = queue
        self.offset = offset
        self.done = done

    def expired(self) -> None:
        """Some replica lags. It gets there when it comes back; nobody reads what was deleted from the leader."""
        self._queue.pop(self, None)
        self.done(ErrorCode.REQUEST_TIMED_OUT)
