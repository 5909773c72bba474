"""What topics have moved since this was asked last: the difference of two readings of their counters. No request pays for it.

A topic's first change after a record puts it on a list; later changes pass by, until the next record is made. So a topic stays
on the list for as long as its counters have changed since its last record, and has gone through it once more after that.
Whoever asks walks along the list in portions, and pays for topics in which something moved, however many others there are.

While nobody asks, as without a flow master that ever was, topics that are gone stay on the list; they are taken off it where they
would be more than those that are there. Where somebody has asked within a minute, they stay until they are told to their end.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.metering.usage import TopicUsage

ALWAYS_KEPT = 1_000
"""Topics that may be on the list whatever there is."""
ASKED_LATELY_MS = 60_000
LOOK_AGAIN_MS = 5_000
"""For topics that are gone: a look is at the whole list, and of very many that are deleted each brings one about."""


class MovedTopic(NamedTuple):
    """By the names that the tenant knows: instance id and topic, bytes, and records that were produced."""

    instance: str
    topic: str
    produced: int
    consumed: int
    records: int


class MovedTopics:
    """Of one broker. `now_ms` is monotonic."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._usages: deque[TopicUsage] = deque()
        self._asked_ms: int | None = None
        self._looked_ms: int | None = None  # for those that are gone, of which some had to stay

    def __len__(self) -> int:
        return len(self._usages)

    def add(self, usage: TopicUsage) -> None:
        """One of its counters has changed."""
        if not usage.is_among_moved:
            usage.is_among_moved = True
            self._usages.append(usage)

    def take(self, most: int) -> list[MovedTopic]:
        """Of the next so many topics of the list; those that may have moved more by the next time go to its end."""
        self._asked_ms = self._now_ms()
        found = []
        for _ in range(min(most, len(self._usages))):
            usage = self._usages.popleft()
            produced, consumed, records = usage.take_moved()
            if produced or consumed:
                found.append(MovedTopic(usage.instance, usage.topic, produced, consumed, records))
            if usage.is_dirty:
                self._usages.append(usage)
            else:
                usage.is_among_moved = False
        return found

    def forget_gone(self, topics: int) -> None:
        """Topics that were told to their end, if the list is longer than so many topics explain."""
        if len(self._usages) <= 2 * topics + ALWAYS_KEPT:
            return
        now_ms = self._now_ms()
        if self._looked_ms is not None and now_ms - self._looked_ms < LOOK_AGAIN_MS:
            return
        is_asked = self._asked_ms is not None and now_ms - self._asked_ms < ASKED_LATELY_MS
        kept: deque[TopicUsage] = deque()
        self._looked_ms = None
        for usage in self._usages:
            if not usage.has_left:
                kept.append(usage)
            elif is_asked and usage.has_moved:
                kept.append(usage)
                self._looked_ms = now_ms
            else:
                usage.is_among_moved = False
        self._usages = kept
