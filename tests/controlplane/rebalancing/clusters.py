"""Clusters to plan for: drawn by Hypothesis, and small ones by hand."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from controlplane.rebalancing.planner.model import Broker, Cluster, Goal, Instance, Partition, Wishes

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 2**20


def partitions(topic: str, *replicas: Sequence[int], **members: object) -> tuple[Partition, ...]:
    """One partition for each list of replicas, led by the first."""
    return tuple(Partition(topic, index, tuple(each), each[0], **members) for index, each in enumerate(replicas))


def clusters() -> st.SearchStrategy[Cluster]:
    """Sizes are drawn, so that small ones are found; the rest is made from a seed, which takes a tenth of the time."""
    return st.builds(cluster_of, st.integers(3, 7), st.integers(0, 25), st.integers(0, 2**32))


def cluster_of(count: int, partition_count: int, seed: int) -> Cluster:
    """Brokers in up to three racks, or in none, with partitions anywhere; some are skewed, some cannot be moved."""
    dice = random.Random(seed)
    racks = dice.choice(["", "ab", "abc"])
    brokers = tuple(
        Broker(
            number,
            rack=dice.choice(racks) if racks else "",
            disk_bytes=dice.choice([None, 400, 2_000]),
            bandwidth_bytes_per_s=dice.choice([None, 50, 300]),
            alive=dice.random() < 0.9,
        )
        for number in range(1, count + 1)
    )
    numbers = [broker.id for broker in brokers]
    crowded = numbers[: dice.randint(1, count)]
    served = dice.choice([None, None, frozenset(numbers[:-1])])
    instances = (Instance("one", dice.randint(0, 900)), Instance("two", dice.randint(0, 300), served))
    return Cluster(
        brokers, tuple(_partition(index, numbers, crowded, dice) for index in range(partition_count)), instances
    )


def _partition(index: int, numbers: Sequence[int], crowded: Sequence[int], dice: random.Random) -> Partition:
    first = dice.choice(crowded)
    replicas = (first, *dice.sample([each for each in numbers if each != first], dice.randint(0, 2)))
    return Partition(
        "topic",
        index,
        replicas,
        dice.choice([None, *replicas]),
        dice.randint(0, 60),
        dice.randint(0, 40),
        dice.randint(0, 40),
        dice.choice(["", "one", "two"]),
        out_of_sync=replicas[1:] if dice.random() < 0.1 else (),
        movable=dice.random() < 0.9,
    )


def wishes() -> st.SearchStrategy[Wishes]:
    some = st.frozensets(st.integers(1, 7), max_size=1)
    return st.builds(
        Wishes,
        goals=st.lists(st.sampled_from(list(Goal)), unique=True).map(tuple),
        cordoned=some,
        draining=some,
        demoted=some,
        margin_percent=st.sampled_from([0, 10, 50]),
        leaders_only=st.booleans(),
    )
