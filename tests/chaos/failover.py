"""How long a partition takes no writes after its leader was killed (SIGKILL) or stopped in order (SIGTERM).

A producer with acks=all writes to each of a few partitions every few milliseconds. The figure is the time between the last
acknowledgement before the change of leader and the first after it, of the partitions that the victim led; so it has the
client's own search for the new leader in it. `elected` is when ZooKeeper had the new leader, from the signal on. Brokers
reach each other without the proxies of the campaigns: their time would be in the figures.

What is aimed at: after SIGKILL, which ZooKeeper notices by the end of the session, the worst below KILLED_AIM sessions;
after SIGTERM the worst below STOPPED_AIM_S.
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

from tests.integration.clients import create_topic
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.support.specs import Tenant

SESSION_S = 2.0  # of brokers with ZooKeeper
KILLED_AIM = 1.5  # sessions
STOPPED_AIM_S = 0.2
_SETTINGS = {"leader_imbalance_check_interval_ms": 500}  # leaders are soon back where the next trial wants them
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
    figures: dict[str, Any] = {"session_timeout_s": SESSION_S, "trials": trials}
    try:
        with ProcessCluster(folder, _SETTINGS) as cluster:
            tenant = cluster.tenant()
            create_topic(tenant, _TOPIC, _PARTITIONS, min_insync_replicas="2")
            for how in ("stopped", "killed"):
                rows = []
                for trial in range(trials):
                    rows.append(_trial(cluster, tenant, how, trial))
                    say(f"{how} {trial + 1}: no writes for {rows[-1][0]:.3f} s, elected after {rows[-1][1]:.3f} s")
                gaps, elected = zip(*rows, strict=True)
                figures[how] = {**_summary(gaps), "elected": _summary(elected)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for how, aim_s in (("stopped", STOPPED_AIM_S), ("killed", KILLED_AIM * SESSION_S)):
        figures[how] |= {"aim_s": aim_s, "met": figures[how]["worst_s"] < aim_s}
    return figures


def table(figures: dict[str, Any]) -> str:
    """For the terminal: seconds, and in sessions with ZooKeeper."""
    lines = [f"{'no writes taken, s':<24}{'median':>10}{'worst':>10}{'sessions':>18}{'aim':>8}"]
    for how in ("stopped", "killed"):
        row = figures[how]
        sessions = f"{row['median_sessions']:g} / {row['worst_sessions']:g}"
        verdict = "met" if row["met"] else "MISSED"
        lines.append(f"{how:<24}{row['median_s']:>10g}{row['worst_s']:>10g}{sessions:>18}{row['aim_s']:>8g}  {verdict}")
        lines.append(f"{'  until elected':<24}{row['elected']['median_s']:>10g}{row['elected']['worst_s']:>10g}")
    return "\n".join(lines)


def _trial(cluster: ProcessCluster, tenant: Tenant, how: str, trial: int) -> tuple[float, float]:
    physical = f"{tenant.key}.{_TOPIC}"
    cluster.heal()
    wait_for(
        lambda: len({_leader(cluster, physical, p) for p in range(_PARTITIONS)}) == len(BROKERS),
        20,
        "leaders to spread",
    )
    steady = _Steady(tenant)
    steady.start()
    try:
        wait_for(lambda: all(len(times) > 50 for times in steady.times.values()), 20, "the producer to get going")
        partition = trial % _PARTITIONS
        victim = _leader(cluster, physical, partition)
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


def _leader(cluster: ProcessCluster, physical: str, partition: int) -> int:
    return int(cluster.state(physical, partition)["leader"])


def _watch(cluster: ProcessCluster, physical: str, partition: int, former: int) -> float:
    wait_for(lambda: _leader(cluster, physical, partition) not in (former, -1), 20, "another leader")
    return time.monotonic()


def _summary(values: Sequence[float]) -> dict[str, float]:
    found = {"median": statistics.median(values), "worst": max(values), "best": min(values)}
    seconds = {f"{name}_s": round(value, 3) for name, value in found.items()}
    return seconds | {f"{name}_sessions": round(value / SESSION_S, 3) for name, value in found.items()}
