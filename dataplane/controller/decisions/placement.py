"""Where the replicas of a new topic go (SPEC RP5).

`place` is Kafka's rule. Brokers are sorted by id; the first replicas go round robin from a random start; the others
follow at a distance (the shift) that begins at random and grows by one after each round, so that the followers of one
leader's partitions are not all on its neighbour:

    5 brokers, start 0, shift 1      p0 [0 1 2]  p1 [1 2 3]  p2 [2 3 4]  p3 [3 4 0]  p4 [4 0 1]
                                     p5 [0 2 3]  p6 [1 3 4]  p7 [2 4 0]  p8 [3 0 1]  p9 [4 1 2]

With racks the brokers stand in an order in which neighbours are of different racks, and of the followers in that order
those come first whose rack has no replica yet. A topic that grows goes on where its first partitions ended.

`simple` is the rule of the older document: replica j of partition i on broker (i + j) mod n.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dataplane.records.steps import Pace, Steps, run_through

Assignment = dict[int, tuple[int, ...]]


class Dice(Protocol):
    """As much of `random.Random` as is used here; the caller brings it."""

    def randrange(self, start: int, stop: int | None = None, /) -> int: ...

    def getrandbits(self, k: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where the placement of a topic that has partitions already goes on: its first leader, and how many there are."""

    first_leader: int
    partitions: int


def place(
    racks: Mapping[int, str | None],
    partitions: int,
    factor: int,
    random: Dice,
    after: Continuation | None = None,
) -> Steps[Assignment]:
    """Partition -> brokers, preferred leader first. At most one replica per broker: `factor` <= number of brokers.

    `racks` are the brokers with where they stand. Where each says it, replicas go to as many racks as there are. With pauses: of
    ten thousand partitions over a hundred brokers it takes a second.
    """
    assert 1 <= factor <= len(racks)
    stand = {broker: rack for broker, rack in sorted(racks.items()) if rack}
    if len(stand) == len(racks):
        ordered, step = _alternating(stand), len(set(stand.values()))
    else:
        ordered, stand, step = sorted(racks), dict.fromkeys(racks, ""), 1
    count = len(ordered)
    if after is None:
        start = random.randrange(count)
        shift = random.randrange(1, count) if count > 1 else 0
    else:  # from the same start; with a shift that follows from it, as Kafka's
        start = ordered.index(after.first_leader) if after.first_leader in ordered else 0
        shift = start + 1
    done = after.partitions if after is not None else 0
    assignment: Assignment = {}
    turns = max(1, count - 1)
    known: dict[tuple[int, int], tuple[int, ...]] = {}  # replicas, by the first of them and the turn of the others
    pace = Pace()
    for partition in range(done, done + partitions):
        if partition and partition % count == 0:
            shift += 1
        first = (start + partition) % count
        turn = (shift * step - 1) % turns
        replicas, cost_us = known.get((first, turn)), 1
        if replicas is None:
            # The distance of follower j: never 0, and different for each j.
            others = [ordered[(first + 1 + (turn + j) % turns) % count] for j in range(count - 1)]
            replicas = known[first, turn] = _spread([ordered[first], *others], stand, factor)
            cost_us = count
        assignment[partition] = replicas
        if pace.over(cost_us):
            yield None
    return assignment


def spread(brokers: Sequence[int], partitions: int, factor: int, random: Dice) -> Assignment:
    """`place` where nobody says in which rack it stands."""
    return run_through(place(dict.fromkeys(brokers), partitions, factor, random))


def _spread(candidates: Sequence[int], stand: Mapping[int, str], factor: int) -> tuple[int, ...]:
    """The first ones of racks that have no replica yet; when every rack has one, the first ones that are left."""
    chosen: list[int] = []
    seen: dict[str, None] = {}
    for broker in candidates:
        if stand[broker] not in seen:
            seen[stand[broker]] = None
            chosen.append(broker)
    chosen += [broker for broker in candidates if broker not in chosen]
    return tuple(chosen[:factor])


def _alternating(stand: Mapping[int, str]) -> list[int]:
    """Brokers so that neighbours stand in different racks as long as there are any: a1 b1 c1 a2 b2 c2."""
    by_rack: dict[str, list[int]] = {}
    for broker, rack in stand.items():
        by_rack.setdefault(rack, []).append(broker)
    lines = [by_rack[rack] for rack in sorted(by_rack)]
    return [line[turn] for turn in range(max(map(len, lines))) for line in lines if turn < len(line)]


def simple(brokers: Sequence[int], partitions: int, factor: int) -> Assignment:
    """(i + j) mod n."""
    ordered = sorted(brokers)
    assert 1 <= factor <= len(ordered)
    return {i: tuple(ordered[(i + j) % len(ordered)] for j in range(factor)) for i in range(partitions)}
