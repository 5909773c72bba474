"""Where the replicas of a new topic go (SPEC RP5).

`spread` is Kafka's rule. Brokers are sorted by id; the first replicas go round robin from a random start; the others
follow at a distance (the shift) that begins at random and grows by one after each round, so that the followers of one
leader's partitions are not all on its neighbour:

    5 brokers, start 0, shift 1      p0 [0 1 2]  p1 [1 2 3]  p2 [2 3 4]  p3 [3 4 0]  p4 [4 0 1]
                                     p5 [0 2 3]  p6 [1 3 4]  p7 [2 4 0]  p8 [3 0 1]  p9 [4 1 2]

`simple` is the rule of the older document: replica j of partition i on broker (i + j) mod n.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Assignment = dict[int, tuple[int, ...]]


def spread(brokers: Sequence[int], partitions: int, factor: int, random: Random) -> Assignment:
    """Partition -> brokers, preferred leader first. At most one replica per broker: `factor` <= number of brokers."""
    ordered = sorted(brokers)
    count = len(ordered)
    assert 1 <= factor <= count
    start = random.randrange(count)
    shift = random.randrange(1, count) if count > 1 else 0
    assignment: Assignment = {}
    for partition in range(partitions):
        if partition and partition % count == 0:
            shift += 1
        first = (start + partition) % count
        # The distance of follower j: never 0, and different for each j.
        others = ((first + 1 + (shift - 1 + j) % (count - 1)) % count for j in range(factor - 1))
        assignment[partition] = tuple(ordered[position] for position in (first, *others))
    return assignment


def simple(brokers: Sequence[int], partitions: int, factor: int) -> Assignment:
    """(i + j) mod n."""
    ordered = sorted(brokers)
    assert 1 <= factor <= len(ordered)
    return {i: tuple(ordered[(i + j) % len(ordered)] for j in range(factor)) for i in range(partitions)}
