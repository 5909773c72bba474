"""How many transactional ids, open transactions and partitions in them each instance has at this coordinator.

Over all partitions of ``__transaction_state`` that the broker leads: numbers that follow each change, so that a question costs
the same however many there are. A partition that moves away takes what it has along (`shard.Transactions.leave`); one that is
loaded brings its own. An instance that has nothing has no row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Count:
    """`is_open`: transactions that have begun, are about to, or wait for their markers. `partitions`: within them."""

    ids: int = 0
    is_open: int = 0
    partitions: int = 0

    def add(self, ids: int, is_open: int, partitions: int) -> None:
        """More; fewer where a number is negative."""
        self.ids += ids
        self.is_open += is_open
        self.partitions += partitions


class Counts:
    """By instance key."""

    def __init__(self) -> None:
        self._counts: dict[str, Count] = {}

    def of(self, key: str) -> Count:
        """What an instance has; not to be changed."""
        return self._counts.get(key) or Count()

    def add(self, key: str, ids: int, is_open: int, partitions: int) -> None:
        """See `Count.add`."""
        count = self._counts.setdefault(key, Count())
        count.add(ids, is_open, partitions)
        if not (count.ids or count.is_open or count.partitions):
            del self._counts[key]

    def keys(self) -> list[str]:
        """Of instances that have any."""
        return list(self._counts)
