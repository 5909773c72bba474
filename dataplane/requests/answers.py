"""The answers of one connection: in the order of their requests, and not too many owed at a time.

Every request that is not answered at once has a place (`Slot`). What is filled leaves when nothing before it is missing.

Reading goes on unless the connection is *held* (too many requests, or too many bytes of them, wait for an answer) or
*parked* (one request waits, and everything behind it must).

All answers pass `_send_ready`: there requests are counted, and timed (`tenancy.request_figures`). `begin` says which begins, how
long it waits for others is said by who has it wait. What one read brought was here at one time, so of many requests of one kind
the clock is asked once, and those of them that leave together are counted in one sum (`turnstile.settle`: a read is over).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.doors import Buffer, Connection, FileRange, Loop
from dataplane.requests.slots import Asked, Parts, Slot
from dataplane.tasks import Future
from dataplane.tenancy.request_figures import Delays
from dataplane.tenancy.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTHING = -2
"""No request's key, not even of one that is too short to have any."""
MAX_REQUESTS_IN_FLIGHT = 1_000
"""Requests of one connection that wait for an answer; more than that is a client that will not stop."""
MAX_BYTES_IN_FLIGHT = 256 * 2**10
"""And so many bytes of them, Produce apart, whose bytes do not wait: decoded they cost ten times as much."""


class Waits(Protocol):
    """A request that waits for its answer (`tasks.Later`)."""

    def give_up(self) -> None:
        """Nobody wants it any more."""

    def look_again(self) -> None:
        """Who may do what has changed."""


class Answers:
    """What a connection has to send, and whether it reads meanwhile."""

    __slots__ = (
        "_bytes_in_flight",
        "_connection",
        "_figures",
        "_is_behind",
        "_loop",
        "_monotonic",
        "_session",
        "_slots",
        "_waits",
        "_will_send",
        "asked",
        "is_closed",
        "is_held",
        "is_parked",
        "key",
    )

    def __init__(self, loop: Loop, connection: Connection, session: Session) -> None:
        self._loop = loop
        self._session = session
        self._connection = connection
        self._figures = None if session.instance is None else session.instance.figures  # nobody's are counted
        self._monotonic = loop.clock.monotonic
        self.key = NOTHING  # of the API that was asked last, if what comes next came with it
        self.asked: Asked = (NOTHING, 0.0)  # by the request that began last
        self._slots: deque[Slot] = deque()
        self._will_send = False  # at the end of this turn
        self._is_behind = False  # what is filled in this turn is behind one that is not
        self.is_parked = False  # a request waits for its time, and everything behind it
        self.is_held = False  # too much waits for an answer
        self._bytes_in_flight = 0
        self._waits: dict[Slot, Waits] = {}  # what to stop when nobody waits for the answer any more
        self.is_closed = False

    @property
    def owes(self) -> bool:
        """Whether an answer is missing."""
        return bool(self._slots)

    def begin(self, key: int) -> None:
        """A request of this API begins, which is here now."""
        self.key, self.asked = key, (key, self._monotonic())

    # --- in order -----------------------------------------------------------------------------------------------------

    def reserve(self) -> Slot:
        """The next place in the order of answers."""
        slot = Slot()
        self.append_slot(slot)
        return slot

    def append_slot(self, slot: Slot) -> None:
        """Give a slot the next place in the order of answers. It is of the request that began last."""
        slot.asked = self.asked
        self._slots.append(slot)
        if len(self._slots) > MAX_REQUESTS_IN_FLIGHT:
            self._hold_if_full()

    def fill(self, slot: Slot, parts: Parts) -> None:
        """The answer of a place; it leaves with all that are ready behind it."""
        slots = self._slots
        if not slots:  # closed
            return
        slot.parts = parts
        if slots[0] is slot:
            self._send_ready()
        elif slots[0].parts is None:
            slot.behind(self._monotonic())

    def fill_soon(self, slot: Slot, parts: Parts) -> None:
        """As `fill`, and what else is filled in this turn leaves with it: many small answers cost one call."""
        if self.is_closed:
            return
        slot.parts = parts
        if not self._will_send:
            self._will_send = True
            self._is_behind = self._slots[0].parts is None
            self._loop.at_turn_end(self._send_ready)
        if self._is_behind:
            slot.behind(self._monotonic())

    def _send_ready(self) -> None:
        """Send the answers that nothing before them holds up."""
        self._will_send = False
        slots, figures = self._slots, self._figures
        ready: list[Buffer | FileRange] = []
        if figures is None:
            while slots and (parts := slots[0].parts) is not None:
                ready += parts
                slots.popleft()
        else:
            now = self._monotonic()
            last, alike = self.asked, 0
            while slots and (parts := slots[0].parts) is not None:
                asked = slots.popleft().asked
                if not parts:
                    figures.unanswered(asked.key if isinstance(asked, Delays) else asked[0])
                    continue
                ready += parts
                if asked is last:
                    alike += 1
                elif isinstance(asked, Delays):
                    figures.delayed(asked, now)
                else:
                    if alike:
                        figures.answered(last[0], now - last[1], alike)
                    last, alike = asked, 1
            if alike:
                figures.answered(last[0], now - last[1], alike)
        if ready:
            self._connection.send(ready)
        if self.is_held:
            self.read_on()

    def unanswered(self) -> None:
        """The request that began last has no place, and needs none: acks=0."""
        if self._figures is not None:
            self._figures.unanswered(self.asked[0])

    def refused(self, key: int, codes: Iterable[int]) -> None:
        """An answer to a request of this API has these error codes, of which 0 is none."""
        if self._figures is not None:
            self._figures.refused(key, codes)

    def drop(self) -> None:
        """The connection is gone: nothing is answered any more."""
        self.is_closed = True
        self._slots.clear()
        waits, self._waits = self._waits, {}
        for each in waits.values():
            each.give_up()

    def look_again(self) -> None:
        """Who may do what has changed: what waits may have to end."""
        for each in list(self._waits.values()):
            each.look_again()

    # --- not too many -------------------------------------------------------------------------------------------------

    def wait_at(self, slot: Slot, size: int, waits: Waits | None) -> None:
        """A request of `size` bytes has its place and no answer yet."""
        self._bytes_in_flight += 0 if self._session.is_internal else size
        self._hold_if_full()
        if waits is not None:
            self._waits[slot] = waits

    def waited(self, slot: Slot, size: int) -> None:
        """It has it, or is answered by somebody else."""
        self._bytes_in_flight -= 0 if self._session.is_internal else size
        self._waits.pop(slot, None)

    def _hold_if_full(self) -> None:
        if len(self._slots) > MAX_REQUESTS_IN_FLIGHT or self._bytes_in_flight > MAX_BYTES_IN_FLIGHT:
            self.is_held = True
            self._connection.pause_reading()

    def read_on(self) -> None:
        """Unless there is a reason left not to."""
        self.is_held = False
        self._hold_if_full()
        if not self.is_held and not self.is_parked:
            self._connection.resume_reading()

    def hold_until(self, future: Future[Any]) -> None:
        """No more requests before this is done: what they ask must come after it."""
        self.is_parked = True
        self._connection.pause_reading()

        def go_on(_: Future[Any]) -> None:
            self.is_parked = False
            if not self.is_closed:
                self.read_on()

        future.then(go_on)
