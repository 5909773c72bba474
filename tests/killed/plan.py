"""Which round kills what, on which database and which Spark. Pure: the same seed is the same plan.

Each database has every kind in its turn, in an order of the seed's, `FAULTS` of them in a round: so 30 rounds have each kind on
each database twice or more. Rounds alternate between the databases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

POINTS = (
    "before the lake",
    "while it writes",
    "after the lake",
    "before the merge",
    "in the transaction",
    "before COMMIT",
    "after COMMIT",
    "before the checkpoint",
)
"""Where a batch of the job is when its driver is killed, in their order (`driver`)."""
DRIVER, EXECUTOR, WORKER, BROKER, LEADER = "driver", "executor", "worker", "broker", "leader"
KINDS = (*POINTS, DRIVER, EXECUTOR, WORKER, BROKER, LEADER)
OF_A_CLUSTER = frozenset({EXECUTOR, WORKER})
"""Where driver and executors are one JVM there are none of these."""
OF_BROKERS = frozenset({BROKER, LEADER})
DATABASES = SQLITE, POSTGRESQL = ("sqlite", "postgresql")
BUGS = APPENDS_AGAIN, COUNTS_AGAIN, LOSES_RECORDS, A_BYTE_MORE = (
    "appends again",  # a batch that comes again is in the lake twice
    "counts again",  # it is counted twice
    "loses records",  # of the third batch after a start, those of one partition
    "a byte more",  # of what was produced, in one key of each batch
)
"""To be planted into the job: whoever compares has to find each."""
FAULTS = 2
"""Of a round."""
ON_A_CLUSTER = 0.25
"""So many of the rounds that could do without a Spark cluster run on one all the same."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kill."""

    kind: str
    batch: int  # of POINTS: in which batch, counted from when it is ordered
    pause_s: float  # how long the job works before it
    down_s: float  # of OF_BROKERS: how long it is away


@dataclass(frozen=True, slots=True)
class Round:
    """One start of the job with the kills that it has to survive."""

    number: int  # from 1
    database: str
    on_a_cluster: bool  # of Spark; else driver and executors are one JVM
    faults: tuple[Fault, ...]


def planned(rounds: int, seed: int, kinds: Sequence[str] = KINDS, databases: Sequence[str] = DATABASES) -> list[Round]:
    """All of them."""
    dice = random.Random(seed)
    turns = {database: _turns(kinds, dice) for database in databases}
    found = []
    for number in range(rounds):
        database = databases[number % len(databases)]
        chosen = [next(turns[database]) for _ in range(FAULTS)]
        faults = tuple(
            Fault(kind, dice.randint(1, 3), round(dice.uniform(0, 3), 1), round(dice.uniform(0.5, 6), 1))
            for kind in chosen
        )
        on_a_cluster = not OF_A_CLUSTER.isdisjoint(chosen) or dice.random() < ON_A_CLUSTER
        found.append(Round(number + 1, database, on_a_cluster, faults))
    return found


def _turns(kinds: Sequence[str], dice: random.Random) -> Iterator[str]:
    while True:
        yield from dice.sample(kinds, len(kinds))
