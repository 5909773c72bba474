"""Connections to an instance that this broker did not take, or that ended before anything could be done on them: a bounded table.

By address, route and reason: how many, when the last one was, and which user and client it said to be. What was refused longest
ago makes room; so many strangers cannot fill it for good, nor hide who was refused a moment ago. One address that tries many
users has one row, which names the last of them: with a row for each it would push all others out. It begins anew with the broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dataplane.tenancy.session import Session
    from quota.contracts.refused import Refused

MOST = 256
"""Rows."""
MOST_NAME = 200
"""Characters that are kept of what a client says of itself."""


class RefusedRow(NamedTuple):
    """Connections from one address to one route, for one reason."""

    address: str
    route: str
    reason: Refused
    times: int
    last_ms: int  # of the wall's clock
    user: str = ""  # that the last of them tried to log in as; empty: not known
    client_id: str = ""  # that it said; empty: none


def turned_away(session: Session, reason: Refused, now_ms: int, *, user: str = "", client_id: str = "") -> None:
    """A connection that was let in ends before anything could be done on it. Those to the internal listener are not kept."""
    if session.instance is not None:
        session.instance.refused.add(session.peer, session.route, reason, now_ms, user=user, client_id=client_id)


class RefusedHere:
    """Of one instance."""

    __slots__ = ("_rows", "forgotten")

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, Refused], tuple[int, int, str, str]] = {}
        self.forgotten = 0  # connections of rows that made room

    def add(
        self, address: str, route: str, reason: Refused, now_ms: int, *, user: str = "", client_id: str = ""
    ) -> None:
        """One more."""
        key = (address, route, reason)
        before = self._rows.pop(key, None)  # it comes behind all others
        count = 0 if before is None else before[0]
        if not count and len(self._rows) >= MOST:
            self.forgotten += self._rows.pop(next(iter(self._rows)))[0]
        self._rows[key] = count + 1, now_ms, user[:MOST_NAME], client_id[:MOST_NAME]

    def rows(self) -> list[RefusedRow]:
        """The latest first."""
        return [
            RefusedRow(*key, count, at_ms, user, client_id)
            for key, (count, at_ms, user, client_id) in reversed(self._rows.items())
        ]
