"""Who produces and who consumes which topic of an instance here, and how much: by client id and address.

A `Talk` is what all connections of one client (its id and its address) have moved of one topic. Whoever serves a request adds
the bytes of its records to the talk's counter; the short cuts keep the talk beside the shape of the request, so that it is
one addition there. What is counted is what brokers took into a log, and what they gave into an answer.

A talk is kept while it says something (until two readings in a row find it as it was), and as long as a short cut has it,
which would otherwise count where nobody looks. So there are two tables: the weak one has all, the other holds on to those of
which something is to be told. Both together are `MOST_TALKS` at most, a megabyte or two. Whoever comes when they are full is
counted among `others`, until some go quiet: sums are exact, who is among the others is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dataplane.tenancy.recent import Readings

if TYPE_CHECKING:
    from collections.abc import Generator

    from dataplane.tenancy.session import Session

MOST_TALKS = 4_096
MOST_CLIENT_ID = 200
"""Characters of a client id that are kept."""
_TALKS_PER_STEP = 50
_NOTHING = (0, 0)


class Talk:
    """What one client has moved of one topic, in bytes of records, since it began."""

    __slots__ = ("__weakref__", "address", "client_id", "consumed", "produced", "readings", "topic")

    def __init__(self, client_id: str, address: str, topic: str, now_s: float) -> None:
        """`topic` is the physical name."""
        self.client_id, self.address, self.topic = client_id, address, topic
        self.produced = self.consumed = 0
        self.readings = Readings(now_s, _NOTHING)

    def lately(self, now_s: float) -> tuple[float, int, int]:
        """Over how many seconds, and the bytes produced and consumed in them."""
        seconds, (produced, consumed) = self.readings.look(now_s, (self.produced, self.consumed))
        return seconds, produced, consumed


NOBODYS = Talk("", "", "", 0.0)
"""Of the internal listener: what brokers read of each other is nobody's consumption."""


def talk_of(session: Session, client_id: str | None, topic: str, now_s: float) -> Talk:
    """Where the bytes that a client moves of a topic (a physical name) are counted."""
    if session.instance is None:
        return NOBODYS
    return session.instance.talkers.of(client_id, session.peer, topic, now_s)


class Talkers:
    """Of one instance on this broker."""

    __slots__ = ("_all", "_told", "others")

    def __init__(self) -> None:
        self._all: WeakValueDictionary[tuple[str, str, str], Talk] = WeakValueDictionary()
        self._told: dict[tuple[str, str, str], Talk] = {}
        self.others = Talk("", "", "", 0.0)

    def of(self, client_id: str | None, address: str, topic: str, now_s: float) -> Talk:
        """Where the bytes of this client and topic (a physical name) are counted."""
        key = ((client_id or "")[:MOST_CLIENT_ID], address, topic)
        talk = self._all.get(key)
        if talk is None:
            if len(self._all) >= MOST_TALKS:
                return self.others
            talk = self._all[key] = self._told[key] = Talk(*key, now_s)
        return talk

    def all(self) -> list[Talk]:
        """Those that there are, in the order in which they came."""
        return list(self._all.values())

    def sweep(self, now_s: float) -> Generator[None, None, None]:
        """Look at all of them, with pauses: those that have gone quiet need not be kept."""
        for count, (key, talk) in enumerate(list(self._all.items()), 1):
            if any(talk.lately(now_s)[1:]):
                self._told[key] = talk
            else:
                self._told.pop(key, None)
            if not count % _TALKS_PER_STEP:
                yield
        self.others.lately(now_s)
