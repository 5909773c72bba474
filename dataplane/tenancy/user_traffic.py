"""What the users of an instance have moved on this broker: a counter for each, which the connections hold that it signed in at.

Connections add to it when they are looked at and when they end, as they do to `Traffic`, so a request costs nothing here, and a
connection that moves nothing does not either. What has changed since it was told is in `changed`: who tells it (`metering.users`)
looks at nothing else, but for users without connections, of whom it decides when they are forgotten.

`MOST_USERS` users have a counter of their own, some 300 bytes each. Whoever signs in when there are so many counts among
`others` on that connection; users who are gone make room at an hour's edge. Connections that did not sign in are `nobody`'s.
"""

from __future__ import annotations

from itertools import islice

from quota.contracts.usage import NO_USER, OTHER_USERS, user_told

MOST_USERS = 500
"""Of one instance: as many as it may have by SASL. Tokens and certificates name any number."""
Counted = tuple[int, int, int]
"""Bytes that came and went, and requests."""
_LOOKED_AT = 50
"""Users without connections, in one go: some ten microseconds."""


class UserTraffic:
    """Of one user, since it was made."""

    __slots__ = ("boot", "connections", "name", "received_bytes", "requests", "sent_bytes", "was_gone")

    def __init__(self, name: str) -> None:
        self.name = name
        self.received_bytes = self.sent_bytes = self.requests = 0
        self.connections = 0
        self.boot = ""  # under which it is told; empty: it never was
        self.was_gone = False  # had no connections when an hour ended, and has had none since

    @property
    def counted(self) -> Counted:
        """In the order of `quota.contracts.usage.USER_COUNTERS`."""
        return self.received_bytes, self.sent_bytes, self.requests


class UserTraffics:
    """Of one instance."""

    __slots__ = ("_named", "_without_connections", "changed", "last_boot", "nobody", "others")

    def __init__(self) -> None:
        self.nobody, self.others = UserTraffic(NO_USER), UserTraffic(OTHER_USERS)
        self._named: dict[str, UserTraffic] = {}
        self._without_connections: dict[UserTraffic, None] = {}
        self.changed: dict[UserTraffic, None] = {}  # since they were told
        self.last_boot = ""  # under which the rest is told, once the instance is gone

    def came(self, name: str) -> UserTraffic:
        """A connection has signed in by this name: where it counts, until `went`."""
        told = user_told(name)
        user = self._named.get(told)
        if user is None:
            if len(self._named) >= MOST_USERS:
                return self.others
            user = self._named[told] = UserTraffic(told)
        self._without_connections.pop(user, None)
        user.connections += 1
        user.was_gone = False
        return user

    def went(self, user: UserTraffic) -> None:
        """Its connection is gone."""
        if user is self.others:
            return
        user.connections -= 1
        if not user.connections:
            self._without_connections[user] = None

    def add(self, user: UserTraffic, received: int, sent: int, requests: int) -> None:
        """What has moved since the last time."""
        user.received_bytes += received
        user.sent_bytes += sent
        user.requests += requests
        self.changed[user] = None

    def tell_all(self) -> None:
        """Whoever has counted anything is to be told, also who was."""
        for user in (self.nobody, self.others, *self._named.values()):
            if any(user.counted):
                self.changed[user] = None

    def forget_gone(self, *, at_edge: bool) -> bool:
        """Forget users who have been told, and have had no connection since the hour before began; whether any was ever told.

        `at_edge`: an hour has ended; otherwise nothing is done, or a tenant whose users come and go would make rows without end:
        whoever is forgotten and comes again is another key. Where there is no room for others, one edge is enough. It looks at
        some of them each time.
        """
        if not at_edge:
            return False
        is_full, was_told = len(self._named) >= MOST_USERS, False
        gone = self._without_connections
        for user in list(islice(gone, _LOOKED_AT)):
            del gone[user]
            if user not in self.changed and (is_full or user.was_gone):
                del self._named[user.name]
                was_told = was_told or bool(user.boot)
            else:
                user.was_gone = True
                gone[user] = None  # others first, the next time
        return was_told
