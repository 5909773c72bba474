"""Connections to an instance that this broker did not take, or that ended before anything could be done on them: a bounded table.

By address, route and reason: how many, and when the last one was. What was refused longest ago makes room; so many strangers
cannot fill it for good, nor hide who was refused a moment ago. It begins anew with the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dataplane.tenancy.session import Session
    from quota.contracts.refused import Refused

MOST = 256
"""Rows."""


class RefusedRow(NamedTuple):
    """Connections from one address to one route, for one reason."""

    address: str
    route: str
    reason: Refused
    times: int
    last_ms: int  # of the wall's clock


def turned_away(session: Session, reason: Refused, now_ms: int) -> None:
    """A connection that was let in ends before anything could be done on it. Those to the internal listener are not kept."""
    if session.instance is not None:
        session.instance.refused.add(session.peer, session.route, reason, now_ms)


class RefusedHere:
    """Of one instance."""

    __slots__ = ("_rows", "forgotten")

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, Refused], tuple[int, int]] = {}
        self.forgotten = 0  # connections of rows that made room

    def add(self, address: str, route: str, reason: Refused, now_ms: int) -> None:
        """One more."""
        key = (address, route, reason)
        count = self._rows.pop(key, (0, 0))[0]  # it comes behind all others
        if not count and len(self._rows) >= MOST:
            self.forgotten += self._rows.pop(next(iter(self._rows)))[0]
        self._rows[key] = count + 1, now_ms

    def rows(self) -> list[RefusedRow]:
        """The latest first."""
        return [RefusedRow(*key, *told) for key, told in reversed(self._rows.items())]
