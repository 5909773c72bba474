"""Who in a group gets which partitions. Pure: every member works it out by itself, from the same nodes, and comes to the same.

The documents' algorithm, for a topic T that member Ci reads::

    1. PT: all partitions of T, sorted
    2. CG: all consumers of the group that read T, sorted
    3. i: where Ci stands in CG; N = size(PT) / size(CG), rounded up
    4. partitions i*N to (i+1)*N - 1 are Ci's
    5. what Ci had and has no more is released, what is new is claimed; perhaps several times, until whoever had it lets go

A consumer is a *thread* here, ``<member>-<number>`` for each stream that a member has asked for; threads are sorted as text.

`DOCUMENTED` may leave the last ones with nothing where others have two (5 partitions, 4 threads: 2, 2, 1, 0). Kafka 0.8 rounds
down, and gives one more to each of the first ones (2, 1, 1, 1): `RANGE`. A group with members of both kinds would
claim the same partition for two: all of its members have to use one strategy, Kafka's own members only know `RANGE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Place = tuple[str, int]
"""A partition: topic and index."""
Owners = Mapping[Place, str]
"""By partition the thread that it belongs to."""
Share = Callable[[int, int, int], tuple[int, int]]
"""``(partitions, threads, i) -> (first, after the last)`` of those that thread i gets."""


def documented(partitions: int, threads: int, i: int) -> tuple[int, int]:
    """N partitions each, N rounded up, as long as there are any."""
    n = -(-partitions // threads)
    return min(i * n, partitions), min((i + 1) * n, partitions)


def kafka_range(partitions: int, threads: int, i: int) -> tuple[int, int]:
    """As Kafka's own members since 0.8: within one of each other."""
    n, more = divmod(partitions, threads)
    first = i * n + min(i, more)
    return first, first + n + (i < more)


DOCUMENTED, RANGE = "documented", "range"
STRATEGIES: Mapping[str, Share] = {DOCUMENTED: documented, RANGE: kafka_range}
"""By the name that `partition.assignment.strategy` has."""


def thread_id(member: str, number: int) -> str:
    """As it stands in the node of an owner."""
    return f"{member}-{number}"


def assigned(
    partitions: Mapping[str, Sequence[int]], members: Mapping[str, Mapping[str, int]], share: Share
) -> dict[Place, str]:
    """The owner of every partition that anybody reads. `members`: of each how many threads read which topic."""
    owners: dict[Place, str] = {}
    for topic in sorted(partitions):
        ordered = sorted(partitions[topic])
        threads = sorted(
            thread_id(member, number) for member, topics in members.items() for number in range(topics.get(topic, 0))
        )
        for i, thread in enumerate(threads):
            first, after = share(len(ordered), len(threads), i)
            owners.update(((topic, partition), thread) for partition in ordered[first:after])
    return owners


class Changes(NamedTuple):
    """What a member has to do: first the one, then the other."""

    release: tuple[Place, ...]
    claim: tuple[tuple[Place, str], ...]


def changes(held: Owners, wanted: Owners) -> Changes:
    """From what a member's threads hold to what they shall hold. What stays where it is is not touched: it goes on being read."""
    release = tuple(place for place in sorted(held) if wanted.get(place) != held[place])
    claim = tuple((place, wanted[place]) for place in sorted(wanted) if held.get(place) != wanted[place])
    return Changes(release, claim)
