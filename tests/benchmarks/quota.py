"""``python -m tests.benchmarks.quota``: the simulator's scenarios on three real brokers, its own figures beside them.

Both sides get the same demand (the same seed), limit and strategy, and are judged by the same code
(`quota.simulator.figures`). Real brokers hear of it from clients that do what the simulator's do (`quota_clients`): four
connections per broker that wait as they are told. What is counted is requests when they are answered. `static` is what
brokers do without a master: each stays at its initial share. So it comes last, when the masters have been stopped.

Before that the active master is killed while one instance is offered twice its limit, most of it at one broker: what flowed
in the minute after it, in all and in its worst second. `var/reports/quota.json`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from quota.contracts.instance import MIB, Limits
from quota.core.model import Strategy
from quota.simulator.demand import SCENARIOS, Scenario
from quota.simulator.figures import figures
from quota.simulator.report import HEAD, line, row
from quota.simulator.run import LEADERS, STATIC, Trace, run
from tests.benchmarks.quota_clients import TOPIC, drive
from tests.benchmarks.report import keep
from tests.benchmarks.server import create_topic
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.waiting import wait_for

REPORT = Path("var/reports/quota.json")
_SET_UP_S, _KILLED_AFTER_S, _WATCHED_S = 5, 40, 60
"""Of an instance and its clients; from its beginning on; after that."""
STRATEGIES = [*(each.value for each in Strategy), STATIC]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run each scenario on both, print, write the figures."""
    options = _options(arguments)
    limit, rows, killed = int(options.limit * MIB), [], None
    with tempfile.TemporaryDirectory() as folder, ProcessCluster(Path(folder)) as cluster:
        wait_for(lambda: not cluster.master_says("/health")["learning"], 60, "the master to have learnt")
        print(HEAD)
        for strategy in sorted(options.strategies, key=STATIC.__eq__):
            if strategy == STATIC:
                killed = _master_killed(cluster, limit, options.seed)
                for master in cluster.masters.values():
                    master.kill()
            for name in options.scenarios:
                scenario = SCENARIOS[name](len(BROKERS), limit, options.seconds, Random(options.seed))
                simulated = run(scenario, limit, strategy, Random(options.seed))
                real = _on_brokers(cluster, scenario, strategy, limit)
                rows += [_judged(scenario, simulated, "simulated"), _judged(scenario, real, "real")]
    keep(REPORT, {"options": vars(options), "rows": rows, "master_killed": killed})
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quota", description="Quota on real brokers.")
    parser.add_argument(
        "--scenarios", nargs="+", choices=list(SCENARIOS), default=["step", "skew", "moving", "bursts", "random"]
    )
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=STRATEGIES)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each scenario")
    parser.add_argument("--limit", type=float, default=8.0, help="what the instance bought, MiB/s")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


def _on_brokers(cluster: ProcessCluster, scenario: Scenario, strategy: str, limit: int) -> Trace:
    """An instance of its own, so that no scenario begins in the state that another left."""
    limits, rule = Limits(limit, None, None, None), Strategy.CKAFKA if strategy == STATIC else strategy
    tenant = cluster.tenant(limits=limits, strategy=rule)
    create_topic(tenant.bootstrap, TOPIC, LEADERS * len(BROKERS))
    partitions = range(LEADERS * len(BROKERS))
    led: dict[int, list[int]] = {broker: [] for broker in BROKERS}
    for partition in partitions:
        led[cluster.leader(tenant, TOPIC, partition)].append(partition)
    time.sleep(2.0)  # the leaders are in a report
    trace = drive(scenario, strategy, limit, tenant.addresses, led)
    cluster.forget(tenant)
    return trace


def _master_killed(cluster: ProcessCluster, limit: int, seed: int) -> dict[str, float]:
    """In percent of what was bought. The scenario's first seconds are left out: shares have to follow use first."""
    scenario = SCENARIOS["skew"](len(BROKERS), limit, _KILLED_AFTER_S + _WATCHED_S + 5, Random(seed))
    active = cluster.master()
    assert active is not None
    timer = threading.Timer(_KILLED_AFTER_S, cluster.masters[active].kill)
    timer.start()
    trace = _on_brokers(cluster, scenario, Strategy.CKAFKA, limit)
    timer.join()
    seconds = [100 * sum(second) / limit for second in trace.admitted]
    killed_at = _KILLED_AFTER_S - _SET_UP_S
    before, after = seconds[10:killed_at], seconds[killed_at : killed_at + _WATCHED_S]
    found = {
        "before": round(sum(before) / len(before), 2),
        "minute_after": round(sum(after) / len(after), 2),
        "worst_second": round(min(after), 2),
    }
    print(f"the active master killed: {found}, in % of the limit", flush=True)
    return found


def _judged(scenario: Scenario, trace: Trace, side: str) -> dict[str, Any]:
    found = row(scenario.name, scenario.brokers, trace.strategy, [figures(trace, scenario.changes)])
    print(f"{line(found)}  {side}", flush=True)
    return {"side": side, **found}


if __name__ == "__main__":
    sys.exit(main())
