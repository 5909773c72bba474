"""How many TLS handshakes of one account begin in a second, and which wait.

A handshake costs a server as much as thousands of small requests, and nobody has said yet who he is. So an account begins a
few in a second; whoever is above that waits, unread, in the order in which they came. At most so many wait, or are under way,
as can be over before their time is (`tls_connection.HANDSHAKE_WITHIN_S`): one more is closed at once. One account's handshakes
beside the loop run one after the other, so that a flood of them has one thread and no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from quota.core.bucket import TokenBucket

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop
    from dataplane.tasks import Future

WAIT_AT_MOST_S = 10
"""How many seconds' worth of handshakes are present."""
Beside = Callable[[Callable[[], bool]], "Future[bool]"]
"""Runs a call beside the loop (`doors.Background.run`)."""


class Waiting(Protocol):
    """A connection whose handshake may not begin yet."""

    def begin_handshake(self) -> bool:
        """Whether it has: else it is gone."""
        ...


class Handshakes:
    """Of one account. `per_s`: how many may begin in a second."""

    __slots__ = ("_bucket", "_is_beside", "_loop", "_present", "_queue", "_steps", "_timer")

    def __init__(self, loop: EpollLoop, per_s: int) -> None:
        self._loop = loop
        self._bucket = TokenBucket(per_s, loop.clock.monotonic())
        self._queue: deque[Waiting] = deque()
        self._present = 0  # connections whose handshake is not over
        self._timer = False
        self._steps: deque[tuple[Beside, Callable[[], bool], Callable[[Future[bool]], None]]] = deque()
        self._is_beside = False

    def limit(self, per_s: int) -> None:
        """So many may begin in a second from now on."""
        if per_s != self._bucket.rate:
            self._bucket.set_rate(per_s, self._loop.clock.monotonic())

    def came(self) -> bool:
        """One more connection; whether there is room for it. Each that there was goes once."""
        if self._present >= max(1, (self._bucket.rate or 0) * WAIT_AT_MOST_S):
            return False
        self._present += 1
        return True

    def went(self) -> None:
        """The handshake of one is over, or its connection."""
        self._present -= 1

    def may_begin(self, connection: Waiting) -> bool:
        """Whether the handshake may begin now. If not, it is told when it may."""
        now = self._loop.clock.monotonic()
        if not self._queue and not self._bucket.delay(now):
            self._bucket.charge(1, now)
            return True
        self._queue.append(connection)
        self._wait(now)
        return False

    def _wait(self, now: float) -> None:
        if not self._timer and self._queue:
            self._timer = True
            self._loop.call_later(max(self._bucket.delay(now), 0.001), self._next)

    def _next(self) -> None:
        self._timer = False
        now = self._loop.clock.monotonic()
        while self._queue and not self._bucket.delay(now):
            if self._queue.popleft().begin_handshake():
                self._bucket.charge(1, now)
        self._wait(now)

    def beside(self, run: Beside, step: Callable[[], bool], then: Callable[[Future[bool]], None]) -> None:
        """Take a step of a handshake beside the loop, when those before it are through."""
        self._steps.append((run, step, then))
        self._run_next()

    def _run_next(self) -> None:
        if self._is_beside or not self._steps:
            return
        self._is_beside = True
        run, step, then = self._steps.popleft()
        run(step).then(lambda future: self._ran(future, then))

    def _ran(self, future: Future[bool], then: Callable[[Future[bool]], None]) -> None:
        self._is_beside = False
        try:
            then(future)
        finally:
            self._run_next()
