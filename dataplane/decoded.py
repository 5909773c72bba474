"""Memory of long requests, decoded: so much an owner, and who comes beyond it waits undecoded.

A request of many elements takes five to twenty times its bytes when it is decoded, and some handlers keep it while they wait
for others: for ZooKeeper, the controller, a rate of changes. What a client that has gone meanwhile left behind counts as well:
it is worked on to its end. So room is taken here and not from the connection (`network.accounts`), before the first element is
made, and given back when nobody needs the request any more.

One request of an owner always has room, however large it is: who has nothing waits for nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from dataplane.slices import CONTROLLER, INTERNAL
from dataplane.tasks import CancelledError, Future, Later

MOST_BYTES, MOST_INTERNAL_BYTES = 64 * 2**20, 256 * 2**20
"""Of one instance, and of each of the cluster's own."""
MOST_OF_ALL_BYTES = 256 * 2**20
"""Of all instances together: beyond it each has one request."""
_OWN = (CONTROLLER, INTERNAL)


class Decoded:
    """What each owner's requests take."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._of_all = 0  # instances
        self._lines: dict[str, deque[Begun]] = {}  # who waits, in the order in which they came

    def begin(self, owner: str, size: int, work: Callable[[], Later[Any]]) -> Later[Any]:
        """Have `work` begin once there is room for `size` bytes: until the outcome is there, which is the work's own."""
        begun = Begun(self, owner, size, work)
        if owner in self._lines or not self._has_room(owner, size):
            self._lines.setdefault(owner, deque()).append(begun)
        else:
            begun.start()
        return begun

    def take(self, owner: str, size: int) -> None:
        """More, of a request that has begun: it may be beyond what there is."""
        self._taken[owner] = self._taken.get(owner, 0) + size
        if owner not in _OWN:
            self._of_all += size

    def give_back(self, owner: str, size: int) -> None:
        """And let those begin for whom there is room now, owners by turns."""
        self.take(owner, -size)
        if not self._taken[owner]:
            del self._taken[owner]
        for waiting in list(self._lines):
            line = self._lines.get(waiting) or deque()
            while line and (line[0].done or self._has_room(waiting, line[0].size)):
                line.popleft().start()  # who is over at once gives back as well, and may have another of this owner come
            if self._lines.get(waiting) is line:
                del self._lines[waiting]
                if line:
                    self._lines[waiting] = line  # behind the others

    def _has_room(self, owner: str, size: int) -> bool:
        taken = self._taken.get(owner, 0)
        if not taken:
            return True
        if owner in _OWN:
            return taken + size <= MOST_INTERNAL_BYTES
        return taken + size <= MOST_BYTES and self._of_all + size <= MOST_OF_ALL_BYTES


class Begun(Later[Any]):
    """A request that begins, or waits to."""

    __slots__ = ("_decoded", "_owner", "_work", "_worked_on", "size")

    def __init__(self, decoded: Decoded, owner: str, size: int, work: Callable[[], Later[Any]]) -> None:
        super().__init__()
        self._decoded, self._owner, self.size = decoded, owner, size
        self._work: Callable[[], Later[Any]] | None = work
        self._worked_on: Later[Any] | None = None

    @property
    def held_until(self) -> Future[Any]:
        """Itself: of one connection one long request is worked on at a time."""
        return self

    def waited_s(self, _began_s: float, _now_s: float) -> float:
        """Never for others: it was worked on, or there was no room for it."""
        return 0.0

    def start(self) -> None:
        """There is room. Nothing happens to what was given up."""
        work, self._work = self._work, None
        if work is None or self.done:
            return
        self._decoded.take(self._owner, self.size)
        self._worked_on = work()
        self._worked_on.then(self._over)

    def give_up(self) -> None:
        """Nobody wants it any more."""
        self._work = None
        if self._worked_on is not None:
            self._worked_on.give_up()
        else:
            self.fail(CancelledError())

    def _over(self, work: Future[Any]) -> None:
        """Whoever takes the outcome up may take room for it as well, before this is given back."""
        self.follow(work)
        self._decoded.give_back(self._owner, self.size)
