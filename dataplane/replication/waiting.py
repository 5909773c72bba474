"""Requests that wait: acks=all for the high watermark, fetches for bytes. Idle partitions cost nothing.

A waiter hangs on the partitions it waits for, so progress of a partition looks at its own waiters and at nothing else.
Waiters of acks are in order of their offsets: progress takes them from the front.

Deadlines: most waiters are woken long before theirs, thousands in a second, with timeouts of 30 s. A timer for each
would fill the loop's heap with dead ones. So deadlines are rounded up to ticks, a tick has one timer and the waiters
that would time out then, and a waiter that is woken leaves its tick at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.doors import Callback, Loop, Timer
    from dataplane.replication.partition import Partition

TICK_S = 0.01
MAX_WAIT_S = 300.0
"""Clients say how long to wait, up to 24 days. Nobody means it, and what waits takes memory."""


class _Waiter:
    """Something with a deadline."""

    __slots__ = ("tick",)

    def __init__(self) -> None:
        self.tick: dict[_Waiter, None] | None = None

    def expired(self) -> None:
        """The deadline came first."""
        raise NotImplementedError


class AckWaiter(_Waiter):
    """A produce with acks=all: waits until the high watermark is above its last offset."""

    __slots__ = ("done", "last_offset", "partition")

    def __init__(self, partition: Partition, last_offset: int, done: Callable[[ErrorCode], None]) -> None:
        super().__init__()
        self.partition = partition
        self.last_offset = last_offset
        self.done = done

    def expired(self) -> None:
        """Not on all of the ISR in time. It may get there yet: a retry is told of the duplicate."""
        self.partition.ack_waiters.remove(self)
        self.done(ErrorCode.REQUEST_TIMED_OUT)


class ReadWaiter(_Waiter):
    """A fetch that found too little."""

    __slots__ = ("missing", "places", "wake")

    def __init__(self, places: list[dict[ReadWaiter, None]], missing: int, wake: Callback) -> None:
        super().__init__()
        self.places = places
        self.missing = missing
        self.wake = wake

    def leave(self) -> None:
        """Hang nowhere any more."""
        for place in self.places:
            place.pop(self, None)

    def expired(self) -> None:
        """It answers with what there is."""
        self.leave()
        self.wake()


class Waiting:
    """All waiters of a broker."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._clock = loop.clock
        self._ticks: dict[int, tuple[dict[_Waiter, None], Timer]] = {}

    # --- acks ---------------------------------------------------------------------------------------------------------

    def for_acks(self, partition: Partition, produces: list[tuple[int, float, Callable[[ErrorCode], None]]]) -> None:
        """Take the produces of a turn that has been committed: (last offset, timeout in seconds, whom to call).

        They are called when the high watermark has passed them (often it has, already), when the partition is lost to
        us, or when their time is up.
        """
        waiters, ordered = partition.ack_waiters, True
        for last_offset, timeout_s, done in produces:
            if last_offset < partition.high_watermark:
                done(_outcome(partition))
                continue
            waiter = AckWaiter(partition, last_offset, done)
            # A duplicate of something that is not committed yet comes before what was appended since.
            ordered = ordered and not (waiters and waiters[-1].last_offset > last_offset)
            waiters.append(waiter)
            self._set_deadline(waiter, timeout_s)
        if not ordered:
            in_order = sorted(waiters, key=lambda waiter: waiter.last_offset)
            waiters.clear()
            waiters.extend(in_order)

    def acknowledge(self, partition: Partition) -> None:
        """Answer whoever waits for an offset that is committed now."""
        waiters, high_watermark = partition.ack_waiters, partition.high_watermark
        code = _outcome(partition)
        while waiters and waiters[0].last_offset < high_watermark:
            waiter = waiters.popleft()
            self._clear_deadline(waiter)
            waiter.done(code)

    # --- bytes --------------------------------------------------------------------------------------------------------

    def for_bytes(
        self, partitions: Sequence[Partition], min_bytes: int, timeout_s: float, wake: Callback, *, as_replica: bool
    ) -> Callback:
        """Call `wake` once, when `min_bytes` more can be read from the partitions together, or when time is up.

        Or when the role of one of them changes. Returns how to give up.
        """
        places = [p.replica_waiters if as_replica else p.read_waiters for p in partitions]
        waiter = ReadWaiter(places, min_bytes, wake)
        for place in places:
            place[waiter] = None
        self._set_deadline(waiter, timeout_s)

        def cancel() -> None:
            waiter.leave()
            self._clear_deadline(waiter)

        return cancel

    def arrived(self, place: dict[ReadWaiter, None], size: int) -> None:
        """`size` bytes more can be read where these waiters hang."""
        for waiter in list(place):
            waiter.missing -= size
            if waiter.missing <= 0 and waiter in place:
                self._wake(waiter)

    def _wake(self, waiter: ReadWaiter) -> None:
        waiter.leave()
        self._clear_deadline(waiter)
        waiter.wake()

    # --- ends ---------------------------------------------------------------------------------------------------------

    def dismiss(self, partition: Partition, code: ErrorCode) -> None:
        """We do not lead the partition any more: produces get `code`, fetches look again and see for themselves."""
        waiters = list(partition.ack_waiters)
        partition.ack_waiters.clear()
        for waiter in waiters:
            self._clear_deadline(waiter)
            waiter.done(code)
        for place in (partition.read_waiters, partition.replica_waiters):
            for reader in list(place):
                if reader in place:
                    self._wake(reader)

    def _set_deadline(self, waiter: _Waiter, timeout_s: float) -> None:
        timeout_s = min(timeout_s, MAX_WAIT_S)
        tick = math.ceil((self._clock.monotonic() + timeout_s) / TICK_S)
        entry = self._ticks.get(tick)
        if entry is None:
            delay = max(0.0, tick * TICK_S - self._clock.monotonic())
            entry = self._ticks[tick] = ({}, self._loop.call_later(delay, lambda: self._expire(tick)))
        waiter.tick = entry[0]
        entry[0][waiter] = None

    @staticmethod
    def _clear_deadline(waiter: _Waiter) -> None:
        if waiter.tick is not None:
            waiter.tick.pop(waiter, None)
            waiter.tick = None

    def _expire(self, tick: int) -> None:
        waiters, _ = self._ticks.pop(tick)
        while waiters:
            waiter = next(iter(waiters))
            del waiters[waiter]
            waiter.tick = None
            waiter.expired()


def _outcome(partition: Partition) -> ErrorCode:
    """What acks=all is told of an offset that is committed."""
    return ErrorCode.NONE if partition.has_enough_replicas() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
