"""How long readers at read_committed stood still: the last stable offset of each partition, looked at all the while.

It stands while a transaction is open, and a copier that is killed leaves one behind, until its coordinator aborts it
(`transaction.timeout.ms`) or its successor begins. *Stuck* is one that is the same from look to look and below the end. Looks in
which nobody answers, as a leader is away, are none, and the time goes on: readers stand still then as well.
"""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVERY_S = 0.5
ANSWERED_WITHIN_S = 2.0


class Look(NamedTuple):
    """At one partition. The end was asked for first: `stable` below it is below it."""

    at_s: float
    partition: int
    stable: int
    end: int


class Stuck(NamedTuple):
    """How long, and where."""

    seconds: float
    partition: int
    offset: int


NEVER = Stuck(0.0, -1, -1)


def longest_stuck(looks: Iterable[Look]) -> Stuck:
    """From the first look at an offset that is below the end to the last, of all partitions. Looks come in order of time."""
    since: dict[int, Look] = {}
    longest = NEVER
    for look in looks:
        first = since.get(look.partition)
        if first is not None and look.stable < first.stable:
            continue  # of a leader that has just been elected, and does not know yet how far it may go
        if look.stable >= look.end:
            since.pop(look.partition, None)
        elif first is None or look.stable > first.stable:
            since[look.partition] = look
        else:
            longest = max(longest, Stuck(look.at_s - first.at_s, look.partition, look.stable))
    return longest


def judged(looks: Iterable[Look], partitions: int, most_s: float) -> Iterator[str]:
    """What is wrong: an offset that was stuck for more than `most_s`, a partition that nobody could look at for as long."""
    known = list(looks)
    found = longest_stuck(known)
    if found.seconds > most_s:
        yield (
            f"partition {found.partition}: the last stable offset stood at {found.offset} for {found.seconds:.1f} s, "
            f"and may for {most_s:.0f}"
        )
    for index in range(partitions):
        times = [look.at_s for look in known if look.partition == index]
        blind_s = max((later - earlier for earlier, later in pairwise(times)), default=0.0)
        if not times:
            yield f"partition {index}: nobody saw its last stable offset"
        elif blind_s > most_s:
            yield f"partition {index}: nobody saw its last stable offset for {blind_s:.1f} s"


class Stability(threading.Thread):
    """Looks at a topic until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.looks: list[Look] = []
        self._topic, self._partitions = topic, partitions
        self._over = threading.Event()
        self._servers = bootstrap  # threads have a `_bootstrap` of their own

    def run(self) -> None:
        askers = _askers(self._servers)
        while not self._over.wait(EVERY_S):
            for index in range(self._partitions):
                try:
                    self.looks.append(self._look(askers, index))
                except KafkaException:
                    _close(askers)  # one that is assigned nothing does not look again for partitions that it has lost
                    askers = _askers(self._servers)
        _close(askers)

    def _look(self, askers: tuple[Consumer, Consumer], index: int) -> Look:
        place = TopicPartition(self._topic, index)
        end, stable = (asker.get_watermark_offsets(place, ANSWERED_WITHIN_S, cached=False)[1] for asker in askers)
        return Look(time.monotonic(), index, stable, end)

    def is_settled(self) -> bool:
        """Whether no transaction is open in any partition now. Raises KafkaException where somebody does not answer."""
        askers = _askers(self._servers)
        try:
            looks = [self._look(askers, index) for index in range(self._partitions)]
        finally:
            _close(askers)
        return all(look.stable == look.end for look in looks)

    def stop(self) -> None:
        """Return when it has."""
        self._over.set()
        self.join(20)


def _askers(bootstrap: str) -> tuple[Consumer, Consumer]:
    """Who is told of all that there is, and who of what is committed."""
    return _asker(bootstrap, "read_uncommitted"), _asker(bootstrap, "read_committed")


def _close(askers: tuple[Consumer, Consumer]) -> None:
    for asker in askers:
        asker.close()


def _asker(bootstrap: str, level: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "isolation.level": level,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
