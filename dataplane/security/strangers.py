"""Connections of the internal listener on which nobody has proved who he is yet, and how long failures wait to be told.

Whoever reaches the listener may open connections; nobody who does so without end may keep out those who can log in, which
takes them milliseconds. So those that have not are few, and the ones that have waited longest make room: the oldest of an
address that has `MOST_OF_A_SOURCE`, else the oldest of all when there are `MOST`. Each has its ten seconds anyway
(`requests.introduction`). Nothing is refused, since the next that comes may be a broker.

A failure is told later the more there were from its address, never at once; nobody is refused unheard, for an operator who
guesses may sit on a broker's machine.
"""

from __future__ import annotations

from typing import Protocol

from dataplane.security.attempts import Attempts

MOST, MOST_OF_A_SOURCE = 1_000, 250

_ANYBODY = ""


class Peer(Protocol):
    """Where a connection comes from."""

    peer: str  # the address, without the port


class Stranger(Protocol):
    """A connection."""

    @property
    def session(self) -> Peer: ...

    def close(self) -> None: ...


class Strangers:
    """Of one broker. Times are monotonic seconds, given by the caller."""

    __slots__ = ("_all", "_attempts", "_by_source", "failed", "made_room")

    def __init__(self) -> None:
        self._all: dict[Stranger, None] = {}  # both in the order in which they came
        self._by_source: dict[str, dict[Stranger, None]] = {}
        self._attempts = Attempts()
        self.failed = 0  # logins, since the beginning
        self.made_room = 0  # connections that were closed for later ones, since the beginning

    def __len__(self) -> int:
        return len(self._all)

    def came(self, one: Stranger) -> None:
        """Another one. Who has to make room for it is closed."""
        source = one.session.peer
        here = self._by_source.get(source, {})
        if len(here) >= MOST_OF_A_SOURCE:
            self._close(next(iter(here)))
        elif len(self._all) >= MOST:
            self._close(next(iter(self._all)))
        self._all[one] = None
        self._by_source.setdefault(source, {})[one] = None

    def _close(self, one: Stranger) -> None:
        self.made_room += 1
        self.went(one)
        one.close()

    def went(self, one: Stranger) -> None:
        """It has logged in, or is gone. Harmless twice."""
        if one in self._all:
            del self._all[one]
            source = one.session.peer
            here = self._by_source[source]
            del here[one]
            if not here:
                del self._by_source[source]

    def failed_s(self, source: str, now: float) -> float:
        """A login from this address has failed; in how many seconds that is to be told."""
        self.failed += 1
        self._attempts.begin(source, _ANYBODY, now)
        return self._attempts.delay_s(source, _ANYBODY)
