"""How long a partition takes no writes after its leader was killed (SIGKILL) or stopped in order (SIGTERM).

A producer with acks=all writes to each of a few partitions every few milliseconds. The figure is the time between the last
acknowledgement before the change of leader and the first after it, of the partitions that the victim led; so it has the
client's own search for the new leader in it. `elected_s` is when ZooKeeper had the new leader, from the signal on.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from tests.chaos.cluster import ChaosCluster
from tests.integration.clients import create_topic
from tests.support.cluster import BROKERS
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.specs import Tenant

_PARTITIONS = 3
_EVERY_S = 0.005
_TOPIC = "failover"


class _Steady(threading.Thread):
    """Writes, and remembers when what was acknowledged."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__(daemon=True)
        self.times: dict[int, list[float]] = {partition: [] for partition in range(_PARTITIONS)}
        self._over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": tenant.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "retry.backoff.ms": 10,
                "retry.backoff.max.ms": 50,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 20,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        while not self._over.is_set():
            for partition in range(_PARTITIONS):
                self._producer.produce(_TOPIC, b"x" * 50, partition=partition, on_delivery=self._done)
            self._producer.poll(_EVERY_S)
        self._producer.flush(10)

    def _done(self, error: Any, message: Any) -> None:
        if error is None:
            self.times[message.partition()].append(time.monotonic())

    def stop(self) -> None:
        self._over.set()
        self.join(20)

    def gap(self, partition: int, since: float) -> float | None:
        """The longest time without an acknowledgement that ended after `since`."""
        times = [when for when in list(self.times[partition]) if when > since - 1]
        gaps = [after - before for before, after in itertools.pairwise(times) if after > since]
        return max(gaps, default=None)


def measure(trials: int, say: Callable[[str], None]) -> dict[str, Any]:
    """So many of each."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-failover-"))
    figures: dict[str, Any] = {"session_timeout_s": 2.0, "trials": trials}
    try:
        with ChaosCluster(folder) as cluster:
            tenant = cluster.tenant()
            create_topic(tenant, _TOPIC, _PARTITIONS, min_insync_replicas="2")
            for how in ("stopped", "killed"):
                rows = []
                for trial in range(trials):
                    rows.append(_trial(cluster, tenant, how, trial))
                    say(f"{how} {trial + 1}: no writes for {rows[-1][0]:.3f} s, elected after {rows[-1][1]:.3f} s")
                figures[how] = {**_summary([row[0] for row in rows]), "elected": _summary([row[1] for row in rows])}
                say(f"{how}: {figures[how]}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def _trial(cluster: ChaosCluster, tenant: Tenant, how: str, trial: int) -> tuple[float, float]:
    physical = f"{tenant.key}.{_TOPIC}"
    cluster.heal()
    wait_for(lambda: len(set(cluster.leaders(physical, _PARTITIONS).values())) == len(BROKERS), 20, "leaders to spread")
    steady = _Steady(tenant)
    steady.start()
    try:
        wait_for(lambda: all(len(times) > 50 for times in steady.times.values()), 20, "the producer to get going")
        partition = trial % _PARTITIONS
        victim = cluster.leaders(physical, _PARTITIONS)[partition]
        began = time.monotonic()
        if how == "killed":
            cluster.brokers[victim].kill()
        else:
            stopper = threading.Thread(target=cluster.brokers[victim].stop)
            stopper.start()
        elected = _watch(cluster, physical, partition, victim) - began
        seen = len(steady.times[partition])
        wait_for(lambda: len(steady.times[partition]) > seen + 20, 20, "writes to be taken again")
        if how == "stopped":
            stopper.join(20)
            time.sleep(0.5)
        gap = steady.gap(partition, began)
        assert gap is not None
        return gap, elected
    finally:
        steady.stop()


def _watch(cluster: ChaosCluster, physical: str, partition: int, former: int) -> float:
    wait_for(lambda: cluster.state(physical, partition)["leader"] not in (former, -1), 20, "another leader")
    return time.monotonic()


def _summary(values: list[float]) -> dict[str, float]:
    return {
        "median_s": round(statistics.median(values), 3),
        "worst_s": round(max(values), 3),
        "best_s": round(min(values), 3),
    }
