"""What the logs of one instance may remember of idempotent producers, together: when it is full, a little of it is forgotten.

A log alone is bounded (`producers.MAX_PRODUCERS`), but a tenant has many logs, and producer ids cost nothing. Over the
budget the log that remembers most forgets those of its producers that have not written for longest, again and again. As
with a log that is full, fingerprints are left of them, so that a retry is still recognised; then those go, too.

Only newcomers are counted as they come. Who expires, or goes with a log, is noticed when the count has reached the budget
and what there really is is added up: once in hundreds of newcomers, for it takes milliseconds.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from dataplane.storage.checkpoints.producers import PRODUCER_BYTES
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dataplane.storage.log import Log

ROOM = 50
"""A fiftieth of the budget is free then: of an instance with 1,000 logs here, that is made in 5 ms."""


class ProducerBudgets:
    """Of all instances. Names of the cluster's own have none."""

    def __init__(self, logs: Mapping[tuple[str, int], Log], limit_bytes: int) -> None:
        self._logs, self._limit_bytes = logs, limit_bytes
        self._counted: dict[str, int] = {}  # bytes by instance key, not less than there are
        self._forgotten: dict[str, int] = {}

    def newcomers_of(self, topic: str) -> Callable[[int], None] | None:
        """What a log of this topic calls with how many producers it has got to know; None: nothing."""
        names = split_physical(topic)
        if names is None:
            return None
        owner = names[0]
        return lambda count: self._came(owner, count)

    def forgotten(self) -> dict[str, int]:
        """Producers that had to go, by instance key, since the beginning."""
        return dict(self._forgotten)

    def drop(self, owner: str) -> None:
        """The instance is gone."""
        self._counted.pop(owner, None)
        self._forgotten.pop(owner, None)

    def _came(self, owner: str, count: int) -> None:
        size = count * PRODUCER_BYTES
        self._counted[owner] = self._counted.get(owner, 0) + size
        if self._counted[owner] >= self._limit_bytes:
            self._counted[owner] = self._make_room(owner) + size  # they may not be in their log yet

    def _make_room(self, owner: str) -> int:
        """Bytes that are held now."""
        prefix = f"{owner}."
        logs = (log for (topic, _), log in self._logs.items() if topic.startswith(prefix))
        known = [producers for log in logs if (producers := log.producer_state.known) is not None]
        largest = [(-producers.size_bytes, place) for place, producers in enumerate(known)]
        left, forgotten = -sum(size for size, _ in largest), 0
        heapify(largest)
        while largest and left > self._limit_bytes - self._limit_bytes // ROOM:
            size, place = heappop(largest)
            forgotten += known[place].make_room()
            left += size + known[place].size_bytes
            if known[place].size_bytes < -size:  # else all that it knows have open transactions
                heappush(largest, (-known[place].size_bytes, place))
        if forgotten:
            self._forgotten[owner] = self._forgotten.get(owner, 0) + forgotten
        return left
