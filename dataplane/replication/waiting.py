"""Requests that wait: acks=all for the high watermark, fetches for bytes. Idle partitions cost nothing.

A waiter hangs on the partitions it waits for, so progress of a partition looks at its own waiters and at nothing else.
Waiters of acks are in order of their offsets: progress takes them from the front.

What reads from a partition hangs on it as a `Watcher`: a fetch that waits for all of its partitions, or one partition of
a fetch session, which stays there from fetch to fetch (`fetch_sessions`). The fetch of a session hangs nowhere itself.

Deadlines: most waiters are woken long before theirs, thousands in a second, with timeouts of 30 s. A timer for each
would fill the loop's heap with dead ones. So deadlines are rounded up to ticks, a tick has one timer and the waiters
that would time out then, and a waiter that is woken leaves its tick at once.

An exception of one that is told is a bug of theirs: it is written down, and all others are told (`tell`, `hear`).
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.replica.waiters import (
    AckWaiter,
    LowWatermarkWaiter,
    ReadWaiter,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Callback, Loop, Timer
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.replica.waiters import Waiter, Watcher

TICK_S = 0.01
MAX_WAIT_S = 300.0
"""Clients say how long to wait, up to 24 days. Nobody means it, and what waits takes memory."""

_log = logging.getLogger(__name__)


def tell(done: Callable[[ErrorCode], None], code: ErrorCode) -> None:
    """Call one that waits. Never raises: others of the same turn have not been told yet."""
    try:
        done(code)
    except Exception:  # noqa: BLE001 - a bug
        _log.exception("what waited for %s failed", code.name)


def hear(listener: Callable[..., None], *what: object) -> None:
    """The same of one that hears of a change."""
    try:
        listener(*what)
    except Exception:  # noqa: BLE001 - a bug
        _log.exception("what heard of a change failed")


class Waiting:
    """All waiters of a broker."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._clock = loop.clock
        self._ticks: dict[int, tuple[dict[Waiter, None], Timer]] = {}

    # --- acks ---------------------------------------------------------------------------------------------------------

    def for_acks(self, partition: Partition, produces: list[tuple[int, float, Callable[[ErrorCode], None]]]) -> None:
        """Take the produces of a turn that has been committed: (last offset, timeout in seconds, whom to call).

        They are called when the high watermark has passed them (often it has, already), when the partition is lost to
        us, or when their time is up.
        """
        waiters, ordered = partition.queues.ack_waiters, True
        for last_offset, timeout_s, done in produces:
            if last_offset < partition.state.high_watermark:
                tell(done, _outcome(partition))
                continue
            waiter = AckWaiter(waiters, last_offset, done)
            # A duplicate of something that is not committed yet comes before what was appended since.
            ordered = ordered and not (waiters and waiters[-1].last_offset > last_offset)
            waiters.append(waiter)
            self.set_deadline(waiter, timeout_s)
        if not ordered:
            in_order = sorted(waiters, key=lambda waiter: waiter.last_offset)
            waiters.clear()
            waiters.extend(in_order)

    def acknowledge(self, partition: Partition) -> None:
        """Answer the requests that wait for an offset that is committed now."""
        waiters, high_watermark = partition.queues.ack_waiters, partition.state.high_watermark
        code = _outcome(partition)
        while waiters and waiters[0].last_offset < high_watermark:
            waiter = waiters.popleft()
            waiter.clear_deadline()
            tell(waiter.done, code)

    # --- low watermarks -----------------------------------------------------------------------------------------------

    def for_low_watermark(
        self, partition: Partition, offset: int, timeout_s: float, done: Callable[[ErrorCode], None]
    ) -> None:
        """Call `done` once, when no live replica's log begins before `offset`."""
        if partition.low_watermark() >= offset:
            done(ErrorCode.NONE)
            return
        queue = partition.queues.low_watermark_waiters
        waiter = LowWatermarkWaiter(queue, offset, done)
        queue[waiter] = None
        self.set_deadline(waiter, timeout_s)

    def low_watermark_moved(self, partition: Partition) -> None:
        """A follower's log begins later than it did, or a follower has died."""
        low_watermark, waiters = partition.low_watermark(), partition.queues.low_watermark_waiters
        for waiter in list(waiters):
            if waiter.offset <= low_watermark:
                del waiters[waiter]
                waiter.clear_deadline()
                tell(waiter.done, ErrorCode.NONE)

    # --- bytes --------------------------------------------------------------------------------------------------------

    def for_bytes(
        self, places: list[dict[Watcher, None]], min_bytes: int, timeout_s: float, wake: Callback, account: str = ""
    ) -> ReadWaiter:
        """Call `wake` once, when `min_bytes` more can be read at the places together, or when time is up.

        Or when the role of one of the partitions changes. One record can wake a thousand: of an `account` (an instance),
        many are woken when its time comes (`doors.Loop.when_due`). What is returned can be cancelled.
        """
        waiter = ReadWaiter(places, min_bytes, self._in_its_time(account, wake))
        for place in places:
            place[waiter] = None
        self.set_deadline(waiter, timeout_s)
        return waiter

    def for_session(self, min_bytes: int, timeout_s: float, wake: Callback, account: str = "") -> ReadWaiter:
        """The same for a fetch whose partitions hang where they must already; the session passes on what arrives."""
        waiter = ReadWaiter([], min_bytes, self._in_its_time(account, wake))
        self.set_deadline(waiter, timeout_s)
        return waiter

    def _in_its_time(self, account: str, wake: Callback) -> Callback:
        loop = self._loop
        return (lambda: loop.when_due(account, wake)) if account else wake

    @staticmethod
    def arrived(place: dict[Watcher, None], size: int) -> None:
        """`size` bytes more can be read where these hang."""
        for watcher in list(place):
            if watcher in place:
                hear(watcher.arrived, size)

    # --- ends ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def too_few(partition: Partition) -> None:
        """The ISR is now smaller than acks=all asks for: a request that waits for more is told at once, not when time is up."""
        waiters = list(partition.queues.ack_waiters)
        partition.queues.ack_waiters.clear()
        for waiter in waiters:
            waiter.clear_deadline()
            tell(waiter.done, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def dismiss(self, partition: Partition, code: ErrorCode) -> None:
        """We do not lead the partition any more: produces get `code`."""
        queues = partition.queues
        waiters: list[AckWaiter | LowWatermarkWaiter] = [*queues.ack_waiters, *queues.low_watermark_waiters]
        queues.ack_waiters.clear()
        queues.low_watermark_waiters.clear()
        for waiter in waiters:
            waiter.clear_deadline()
            tell(waiter.done, code)
        for call in queues.take_sync_calls():
            tell(call, code)

    @staticmethod
    def look_again(partition: Partition) -> None:
        """Fetches must not go on as if nothing had happened to the partition."""
        queues = partition.queues
        for place in (queues.read_waiters, queues.stable_waiters, queues.replica_waiters):
            for watcher in list(place):
                if watcher in place:
                    hear(watcher.lost)

    def set_deadline(self, waiter: Waiter, timeout_s: float) -> None:
        """Have it expire, unless its deadline is cleared before."""
        timeout_s = min(timeout_s, MAX_WAIT_S)
        tick = math.ceil((self._clock.monotonic() + timeout_s) / TICK_S)
        entry = self._ticks.get(tick)
        if entry is None:
            delay = max(0.0, tick * TICK_S - self._clock.monotonic())
            entry = self._ticks[tick] = ({}, self._loop.call_later(delay, lambda: self._expire(tick)))
        waiter.tick = entry[0]
        entry[0][waiter] = None

    def _expire(self, tick: int) -> None:
        waiters, _ = self._ticks.pop(tick)
        while waiters:
            waiter = next(iter(waiters))
            del waiters[waiter]
            waiter.tick = None
            hear(waiter.expired)


def _outcome(partition: Partition) -> ErrorCode:
    """What acks=all is told of an offset that is committed."""
    return ErrorCode.NONE if partition.state.has_enough_replicas() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
