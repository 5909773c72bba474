"""How many transactions of an instance are open, and how many transactional ids it has, over all brokers. Pure.

Each broker counts what it coordinates. An instance's limits hold for all of it, so each is told what the others have. A broker
that is silent counts nothing: what it coordinated is somebody else's soon, and who counts it twice refuses what is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

NONE = (0, 0)


class TransactionCounts:
    """By instance and broker. `counts` is there to be read: only what is not nothing stands in it."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[int, tuple[int, int]]] = {}

    def put(self, instance: str, broker: int, counts: tuple[int, int]) -> bool:
        """The broker coordinates so many. Returns whether that is news."""
        known = self.counts.setdefault(instance, {})
        is_news = known.get(broker, NONE) != counts
        if counts == NONE:
            known.pop(broker, None)
        else:
            known[broker] = counts
        if not known:
            del self.counts[instance]
        return is_news

    def elsewhere(self, instance: str, broker: int, silent: Collection[int]) -> tuple[int, int]:
        """On all brokers but this one and those that are silent."""
        return _sum(self.counts.get(instance, {}), {broker, *silent})

    def total(self, instance: str, silent: Collection[int]) -> tuple[int, int]:
        """On all brokers but those that are silent."""
        return _sum(self.counts.get(instance, {}), silent)


def _sum(counts: Mapping[int, tuple[int, int]], without: Collection[int]) -> tuple[int, int]:
    rows = [row for broker, row in counts.items() if broker not in without]
    return sum(row[0] for row in rows), sum(row[1] for row in rows)
