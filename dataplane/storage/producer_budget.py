"""What the logs of one instance may remember of idempotent producers, together: when it is full, a little of it is forgotten.

A log alone is bounded (`producers.MAX_PRODUCERS`), but a tenant has many logs, and producer ids cost nothing. Who comes when the
budget is full makes the log that remembers most forget those of its producers that have not written for longest: a tenth of them,
so the next that come find room. As with a log that is full, fingerprints are left of them, so that a retry is still
recognised; then those go, too.

Only newcomers are counted as they come. Who expires, or goes with a log, is noticed when the budget is full and what there
really is is added up: once in hundreds of newcomers, since that takes milliseconds for an instance with very many logs. So too
where no room can be made, since what is known has open transactions.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints.producers import PRODUCER_BYTES
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.storage.log import Log

_Key = tuple[str, int]
"""Topic and partition."""
ROOM = 50
"""When a fiftieth of the budget has come to one that is full, what there is is added up again."""


class _Held:
    """What one instance's logs remember."""

    __slots__ = ("forgotten", "largest", "logs", "size_bytes", "unlooked")

    def __init__(self) -> None:
        self.logs: dict[_Key, Log] = {}
        self.size_bytes = 0  # not less than there are
        self.unlooked = 0  # bytes that have come since what there is was added up
        self.largest: list[tuple[int, int, _Key]] = []  # a heap by size, as it was then
        self.forgotten = 0  # producers, since the beginning

    def look(self) -> None:
        """Add up what there is."""
        known = [
            (key, producers) for key, log in self.logs.items() if (producers := log.producer_state.known) is not None
        ]
        self.largest = [(-producers.size_bytes, place, key) for place, (key, producers) in enumerate(known)]
        self.size_bytes = -sum(size for size, _, _ in self.largest)
        heapify(self.largest)
        self.unlooked = 0

    def make_room(self, limit_bytes: int) -> None:
        """Forget until less is held than this, as far as that can be."""
        largest = self.largest
        while largest and self.size_bytes >= limit_bytes:
            size, place, key = heappop(largest)
            log = self.logs.get(key)
            known = None if log is None else log.producer_state.known
            if known is None:  # it is deleted, or has to be read anew
                self.size_bytes += size
                continue
            before = known.size_bytes
            self.forgotten += known.make_room()
            left = known.size_bytes
            self.size_bytes += left - before
            if left < before:  # else all that it knows have open transactions
                heappush(largest, (-left, place, key))


class ProducerBudgets:
    """Of all instances. Names of the cluster's own have none."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[str, _Held] = {}  # by instance key

    def newcomers_of(self, topic: str) -> Callable[[int], None] | None:
        """What a log of this topic calls with how many producers it has got to know; None: nothing."""
        owner = _owner(topic)
        return None if owner is None else lambda count: self._came(owner, count)

    def opened(self, log: Log) -> None:
        """What it remembers counts."""
        owner = _owner(log.topic)
        if owner is not None:
            self._of(owner).logs[log.topic, log.partition] = log

    def deleted(self, log: Log) -> None:
        """Nothing of it is remembered any more."""
        owner = _owner(log.topic)
        if owner is not None and owner in self._held:
            self._held[owner].logs.pop((log.topic, log.partition), None)
            self._tidy(owner)

    def forgotten(self) -> dict[str, int]:
        """Producers that had to go, by instance key, since the beginning."""
        return {owner: held.forgotten for owner, held in self._held.items() if held.forgotten}

    def drop(self, owner: str) -> None:
        """The instance is gone; its logs may be deleted later."""
        if owner in self._held:
            self._held[owner].forgotten = 0
            self._tidy(owner)

    def _tidy(self, owner: str) -> None:
        held = self._held[owner]
        if not held.logs and not held.forgotten:
            del self._held[owner]

    def _of(self, owner: str) -> _Held:
        held = self._held.get(owner)
        if held is None:
            held = self._held[owner] = _Held()
        return held

    def _came(self, owner: str, count: int) -> None:
        held, size = self._of(owner), count * PRODUCER_BYTES
        held.size_bytes += size
        held.unlooked += size
        if held.size_bytes < self._limit_bytes:
            return
        if held.unlooked >= self._limit_bytes // ROOM:
            held.look()
            held.size_bytes += size  # they may not be in their log yet
        held.make_room(self._limit_bytes)


def _owner(topic: str) -> str | None:
    """The key of the instance that a physical topic belongs to."""
    names = split_physical(topic)
    return None if names is None else names[0]
