"""A connection as the short cuts see it: whose it is, and where answers go. `dispatch.ClientConnection` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.handlers.context import BrokerRooms
    from dataplane.requests.slots import Parts, Slot
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.session import Session


class Served(Protocol):
    """See `answers`, `turnstile` and `dispatch`, where each of these is explained."""

    broker: BrokerRooms
    session: Session
    told_s: float
    reads_nothing: bool

    @property
    def account(self) -> str: ...

    def append_slot(self, slot: Slot) -> None: ...

    def fill_soon(self, slot: Slot, parts: Parts) -> None: ...

    def wait_at(self, slot: Slot, size: int, give_up: Callable[[], None] | None) -> None: ...

    def go_on(self, slot: Slot, frame: bytes, answer: Callable[[], bool]) -> None: ...

    def consumed(self, instance: Instance, size: int) -> float: ...
