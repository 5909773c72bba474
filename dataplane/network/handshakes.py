"""How many TLS handshakes of one account begin in a second, which wait, and which go on.

A handshake costs a server as much as thousands of small requests, and nobody has said yet who he is. So an account begins a
few in a second; whoever is above that waits, unread. At most so many wait, or are under way, as can be over before their time
is (`tls_connection.HANDSHAKE_WITHIN_S`). One account's handshakes beside the loop run one after the other, so that a flood of
them has one thread and no more.

Within the account client addresses take turns (`fairness`), to begin and to go on beside the loop. Where there is no place, the
oldest of the address that has most makes room for one from an address that has fewer; one more of that address itself is closed
at once. So an address that opens handshakes without end keeps out itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dataplane.network.fairness import Places, Turns
from quota.core.bucket import TokenBucket

if TYPE_CHECKING:
    from dataplane.network.loop import EpollLoop
    from dataplane.tasks import Future

WAIT_AT_MOST_S = 10
"""How many seconds' worth of handshakes are present."""
Beside = Callable[[Callable[[], bool]], "Future[bool]"]
"""Runs a call beside the loop (`doors.Background.run`)."""
Step = tuple[Beside, Callable[[], bool], "Callable[[Future[bool]], None]"]
"""What to run, by what, and who is told."""


class Waiting(Protocol):
    """A connection whose handshake is not over."""

    peer: tuple[str, int]

    def begin_handshake(self) -> bool:
        """Whether it has: else it is gone."""
        ...

    def make_room(self) -> None:
        """End, for a connection from another address. It says that it `went`."""
        ...


class Handshakes:
    """Of one account. `per_s`: how many may begin in a second."""

    __slots__ = ("_beside", "_bucket", "_is_beside", "_loop", "_places", "_steps", "_timer", "_waiting")

    def __init__(self, loop: EpollLoop, per_s: int) -> None:
        self._loop = loop
        self._bucket = TokenBucket(per_s, loop.clock.monotonic())
        self._places: Places[Waiting] = Places()  # of those whose handshake is not over
        self._waiting: Turns[Waiting] = Turns()  # to begin
        self._timer = False
        self._beside: Turns[Waiting] = Turns()  # for the thread
        self._steps: dict[Waiting, Step] = {}  # of these
        self._is_beside = False

    @property
    def present(self) -> int:
        """How many handshakes are not over."""
        return len(self._places)

    def limit(self, per_s: int) -> None:
        """So many may begin in a second from now on."""
        if per_s != self._bucket.rate:
            self._bucket.set_rate(per_s, self._loop.clock.monotonic())

    def came(self, one: Waiting) -> bool:
        """One more connection; whether there is a place for it. Each that has one goes once."""
        if len(self._places) >= max(1, (self._bucket.rate or 0) * WAIT_AT_MOST_S):
            in_the_way = next(iter(self._places.fullest(one.peer[0])), None)
            if in_the_way is None:
                return False
            in_the_way.make_room()
        self._places.came(one.peer[0], one)
        return True

    def went(self, one: Waiting) -> None:
        """Its handshake is over, or its connection."""
        address = one.peer[0]
        self._places.went(address, one)
        self._waiting.discard(address, one)
        self._beside.discard(address, one)
        self._steps.pop(one, None)

    def may_begin(self, one: Waiting) -> bool:
        """Whether the handshake may begin now. If not, it is told when it may."""
        now = self._loop.clock.monotonic()
        if not self._waiting and not self._bucket.delay(now):
            self._bucket.charge(1, now)
            return True
        self._waiting.add(one.peer[0], one)
        self._wait(now)
        return False

    def _wait(self, now: float) -> None:
        if not self._timer and self._waiting:
            self._timer = True
            self._loop.call_later(max(self._bucket.delay(now), 0.001), self._next)

    def _next(self) -> None:
        self._timer = False
        now = self._loop.clock.monotonic()
        while self._waiting and not self._bucket.delay(now):
            if self._waiting.next().begin_handshake():
                self._bucket.charge(1, now)
        self._wait(now)

    def beside(self, one: Waiting, run: Beside, step: Callable[[], bool], then: Callable[[Future[bool]], None]) -> None:
        """Take a step of its handshake beside the loop, when its turn comes. Nobody is told when it `went` before."""
        self._steps[one] = (run, step, then)
        self._beside.add(one.peer[0], one)
        self._run_next()

    def _run_next(self) -> None:
        if self._is_beside or not self._beside:
            return
        self._is_beside = True
        run, step, then = self._steps.pop(self._beside.next())
        run(step).then(lambda future: self._ran(future, then))

    def _ran(self, future: Future[bool], then: Callable[[Future[bool]], None]) -> None:
        self._is_beside = False
        try:
            then(future)
        finally:
            self._run_next()
