"""A connection as the short cuts see it: whose it is, and its parts. `dispatch.ClientConnection` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.handlers.context import BrokerRooms
    from dataplane.requests.answers import Answers
    from dataplane.requests.slots import Slot
    from dataplane.requests.turnstile import Turnstile
    from dataplane.tenancy.session import Session


class Served(Protocol):
    """See `answers`, `turnstile` and `dispatch`, where each of these is explained."""

    broker: BrokerRooms
    session: Session
    answers: Answers
    turnstile: Turnstile

    def go_on(self, slot: Slot, frame: bytes, told_s: float, answer: Callable[[], bool]) -> None: ...
