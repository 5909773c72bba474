"""How long a plan takes: a cluster of 100 brokers with 50,000 partitions, made up, in one process and without a cluster.

    python -m tests.benchmarks.rebalancing [--brokers 100] [--partitions 50000] [--seed 1]

Racks are three, replicas three, instances 500; flow and size are skewed (few partitions have most), leaders and replicas lie as
chance has it with every tenth broker twice as likely. What is planned for: this skew; ten new and empty brokers; two brokers
drained. For each: seconds (and of a core), moves, bytes to copy, and the scores before and after. var/reports/rebalancing.json.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controlplane.rebalancing.planner.model import Broker, Cluster, Instance, Partition, Wishes
from controlplane.rebalancing.planner.planning import applied, plan
from tests.benchmarks.report import keep, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

REPORT = Path("var/reports/rebalancing.json")
MIB, GIB = 2**20, 2**30
RACKS, REPLICAS, INSTANCES = 3, 3, 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.rebalancing", description="How long a plan takes."
    )
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    say = progress()
    skewed = cluster(options.brokers, options.partitions, random.Random(options.seed))
    figures = {}
    figures["skew"], after = measured("skew", skewed, Wishes(), say)
    figures["again"], _ = measured("again", after, Wishes(), say)
    more = replace(after, brokers=(*after.brokers, *brokers(options.brokers, options.brokers // 10)))
    figures["ten new"], _ = measured("ten new", more, Wishes(), say)
    figures["two drained"], _ = measured("two drained", after, Wishes(draining=frozenset({1, 2})), say)
    figures["leaders only"], _ = measured("leaders only", skewed, Wishes(leaders_only=True), say)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    keep(REPORT, {"options": vars(options), "figures": figures, "peak_mib": peak_mib})
    return 0


def measured(name: str, before: Cluster, wishes: Wishes, say: Any) -> tuple[dict[str, Any], Cluster]:
    """One plan."""
    began, began_cpu = time.monotonic(), time.process_time()
    found = plan(before, wishes)
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - began_cpu
    figures = {
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "moves": len(found.moves),
        "leaders_only": sum(move.is_leader_only for move in found.moves),
        "gib_to_copy": round(found.bytes_to_copy / GIB, 1),
        "settled": found.settled,
        "stuck": len(found.stuck),
        "scores_before": {str(goal): score for goal, score in found.scores_before.items()},
        "scores_after": {str(goal): score for goal, score in found.scores_after.items()},
        "usable_mib_per_s": [
            round(sum(getattr(each, when) for each in found.tenants) / MIB)
            for when in ("usable_before", "usable_after")
        ],
    }
    say(f"{name}: {figures}")
    return figures, applied(before, found)


def brokers(after: int, count: int) -> tuple[Broker, ...]:
    """Numbers follow on those that there are."""
    return tuple(
        Broker(number, f"rack-{number % RACKS}", 4_000 * GIB, 0, 300 * MIB)
        for number in range(after + 1, after + count + 1)
    )


def cluster(count: int, partitions: int, dice: random.Random) -> Cluster:
    """Skewed, with racks kept."""
    rows = brokers(0, count)
    by_rack = [[row.id for row in rows if row.id % RACKS == rack] for rack in range(RACKS)]
    heavy = [[each for each in rack for _ in range(2 if each % 10 == 0 else 1)] for rack in by_rack]
    found = []
    for number in range(partitions):
        replicas = [dice.choice(heavy[rack]) for rack in dice.sample(range(RACKS), REPLICAS)]
        rate = int(dice.paretovariate(1.3) * 20_000) % (20 * MIB)
        found.append(
            Partition(
                f"topic-{number // 10}",
                number % 10,
                tuple(replicas),
                replicas[0],
                int(dice.paretovariate(1.3) * 64 * MIB) % (100 * GIB),
                rate,
                rate * dice.randrange(3),
                f"ins-{number // 10 % INSTANCES:08d}",
            )
        )
    limits = tuple(Instance(f"ins-{number:08d}", dice.choice((5, 20, 40, 100)) * MIB) for number in range(INSTANCES))
    return Cluster(rows, tuple(found), limits)


if __name__ == "__main__":
    sys.exit(main())
