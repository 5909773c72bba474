"""``python -m tests.benchmarks.fairness``: does a limit hold whoever comes, and is what it leaves shared?

Three brokers, two masters, one instance for each row.

evasion   1,000 connections offer as much as they are let, at a limit of 8 MiB/s, and wait for nothing that answers tell them:
          under 20 client ids, under one for each connection, and with a new connection for every request. The most bytes that
          were admitted in any 30 s, in percent of the limit: what is admitted at the beginning is in it. Aim: at most 105 %

small     ten clients of 0.1 MiB/s each, with their own client ids, beside one that floods, in an instance at its limit of
          6 MiB/s. Latency of the ten from the moment a request was due, with and without the flooder, in alternation; requests
          that were not answered within 30 s; what all were admitted, in percent of the limit.
          Aim: p99 at most twice that without, no time-outs, at least 97 %

Figures go to `var/reports/fairness.json`.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quota.contracts.instance import MIB, Limits
from tests.benchmarks.fairness_clients import Client, Noted, Swarm, body, most_in
from tests.benchmarks.report import Say, keep, progress
from tests.benchmarks.server import create_topic
from tests.stalls.judging import percentile
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.specs import Tenant
from tests.support.waiting import wait_for

REPORT = Path("var/reports/fairness.json")
TARGETS = {
    "evasion_percent": "at most 105",
    "small_p99": "at most 2x",
    "timed_out": "0",
    "whole_percent": "at least 97",
}
TOPIC, PARTITIONS = "flow", 12
WINDOW_S = 30.0
CLIENT_IDS = 20
WAYS = ("client ids", "own id", "reconnecting")
SMALL, SMALL_EVERY_S = 10, 0.1
SMALL_BYTES_PER_S = MIB // 10
FLOOD_BYTES = 128 * 2**10
_MEMORY = Path("/dev/shm")
_DESCRIPTORS = 20_000

Led = dict[int, list[int]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write the figures."""
    options = _options(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, most), most))
    say, found = progress(), {}
    folder = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=folder) as directory, ProcessCluster(Path(directory)) as cluster:
        wait_for(lambda: not cluster.master_says("/health")["learning"], 60, "the master to have learnt")
        if "evasion" in options.programs:
            found["evasion"] = [
                _evasion(cluster, options, way, int(kib * 2**10), say) for way in options.ways for kib in options.kib
            ]
        if "small" in options.programs:
            found["small"] = _small(cluster, options, say)
    print(_table(found))
    keep(REPORT, {"options": vars(options), "targets": TARGETS, **found})
    return int(not all(_is_met(found)))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.fairness", description="Limits and their shares.")
    parser.add_argument("programs", nargs="*", default=["evasion", "small"], metavar="evasion|small")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--kib", nargs="+", type=float, default=[1024, 64], help="of a request that evades")
    parser.add_argument("--connections", type=int, default=1_000, help="that evade, over all brokers")
    parser.add_argument("--limit-mib", type=float, default=8.0, help="that is evaded, MiB/s")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each evasion")
    parser.add_argument("--small-limit-mib", type=float, default=6.0, help="with small clients, MiB/s")
    parser.add_argument("--phase", type=float, default=30.0, help="seconds with, and without the flooder, that count")
    parser.add_argument("--settle", type=float, default=10.0, help="seconds before each that do not")
    parser.add_argument("--rounds", type=int, default=2, help="of both")
    parser.add_argument("--flood-connections", type=int, default=3, help="of the flooder to each broker")
    options = parser.parse_args(arguments)
    if unknown := {*options.programs} - {"evasion", "small"}:
        parser.error(f"there is no {', '.join(unknown)}")
    return options


def _instance(cluster: ProcessCluster, limit: int) -> tuple[Tenant, Led]:
    """An instance with a topic that all brokers lead parts of."""
    tenant = cluster.tenant(limits=Limits(limit, None, None, None))
    create_topic(tenant.bootstrap, TOPIC, PARTITIONS)
    led: Led = {broker: [] for broker in BROKERS}
    for partition in range(PARTITIONS):
        led[cluster.leader(tenant, TOPIC, partition)].append(partition)
    time.sleep(3.0)  # the leaders are in a report, and the shares granted
    return tenant, led


# --- evasion ----------------------------------------------------------------------------------------------------------


def _evasion(cluster: ProcessCluster, options: argparse.Namespace, way: str, size: int, say: Say) -> dict[str, Any]:
    limit = options.limit_mib * MIB
    tenant, led = _instance(cluster, int(limit))
    swarm = Swarm(_evaders(tenant, led, options.connections, way, size))
    began = time.monotonic()
    swarm.run(began + options.seconds)
    ended = time.monotonic()
    swarm.close()
    cluster.forget(tenant)
    admitted = [each for each in swarm.noted if each.error == 0]
    assert admitted, f"nothing was admitted: {Counter(each.error for each in swarm.noted)}"
    window_s = min(WINDOW_S, options.seconds)
    row = {
        "way": way,
        "request_kib": size / 2**10,
        "connections": options.connections,
        "percent": round(100 * most_in(admitted, window_s) / (limit * window_s), 1),
        "later_percent": _later_percent(admitted, began, ended, limit),
        "errors": sum(each.error != 0 for each in swarm.noted),
    }
    say(
        f"evasion by {way}, {row['request_kib']:g} KiB: {row['percent']} % of the limit in the worst {window_s:g} s, "
        f"{row['later_percent']} % in the second half"
    )
    return row


def _evaders(tenant: Tenant, led: Led, connections: int, way: str, size: int) -> list[Client]:
    bodies = {broker: body(TOPIC, partitions[0], size) for broker, partitions in led.items()}
    found = []
    for number in range(connections):
        broker = BROKERS[number % len(BROKERS)]
        name = f"id-{number if way == 'own id' else number % CLIENT_IDS}"
        anew = way == "reconnecting"
        found.append(
            Client(number, tenant.addresses[broker], name, bodies[broker], depth=1, waits=False, connects_anew=anew)
        )
    return found


def _later_percent(admitted: Sequence[Noted], began: float, ended: float, limit: float) -> float:
    """When the beginning is over: what a limit comes to."""
    middle = (began + ended) / 2
    return round(100 * sum(each.size for each in admitted if each.answered_s >= middle) / (limit * (ended - middle)), 1)


# --- small beside large -----------------------------------------------------------------------------------------------


def _small(cluster: ProcessCluster, options: argparse.Namespace, say: Say) -> dict[str, Any]:
    limit = options.small_limit_mib * MIB
    tenant, led = _instance(cluster, int(limit))
    flood = _flooders(tenant, led, options.flood_connections)
    swarm = Swarm([*_small_ones(tenant, led), *flood])
    rounds = []
    for number in range(options.rounds):
        row: dict[str, Any] = {}
        for name, floods in (("without", False), ("with", True)):
            for client in flood:
                client.offers = floods
            swarm.run(time.monotonic() + options.settle)
            began = time.monotonic()
            swarm.run(began + options.phase)
            row[name] = (began, time.monotonic())
        rounds.append(row)
        say(f"round {number + 1} of {options.rounds} is over")
    for client in flood:
        client.offers = False
    swarm.run(time.monotonic() + options.settle)
    noted = swarm.noted + swarm.waiting(time.monotonic())
    swarm.close()
    cluster.forget(tenant)
    return _small_figures(noted, rounds, limit)


def _small_ones(tenant: Tenant, led: Led) -> list[Client]:
    each = int(SMALL_BYTES_PER_S * SMALL_EVERY_S)
    return [
        Client(
            number,
            tenant.addresses[broker := BROKERS[number % len(BROKERS)]],
            f"small-{number}",
            body(TOPIC, led[broker][number // len(BROKERS) % len(led[broker])], each),
            every_s=SMALL_EVERY_S,
        )
        for number in range(SMALL)
    ]


def _flooders(tenant: Tenant, led: Led, connections: int) -> list[Client]:
    """One client by its id, which has connections to every broker and waits for nothing."""
    return [
        Client(SMALL, tenant.addresses[broker], "flood", body(TOPIC, led[broker][-1], FLOOD_BYTES), waits=False)
        for broker in BROKERS
        for _ in range(connections)
    ]


def _small_figures(noted: Sequence[Noted], rounds: Sequence[dict[str, Any]], limit: float) -> dict[str, Any]:
    found: dict[str, Any] = {"rounds": []}
    for row in rounds:
        shown: dict[str, Any] = {name: _phase(noted, *row[name], limit) for name in ("without", "with")}
        shown["p99_ratio"] = round(shown["with"]["p99_ms"] / max(shown["without"]["p99_ms"], 0.001), 2)
        found["rounds"].append(shown)
    found["p99_ratio"] = statistics.median(row["p99_ratio"] for row in found["rounds"])
    found["whole_percent"] = statistics.median(row["with"]["whole_percent"] for row in found["rounds"])
    found["timed_out"] = sum(row[name]["timed_out"] for row in found["rounds"] for name in ("without", "with"))
    return found


def _phase(noted: Sequence[Noted], began: float, ended: float, limit: float) -> dict[str, float]:
    """Latency of what small clients were due to send in it; what all were admitted in it."""
    small = [each for each in noted if each.client < SMALL and began <= each.due_s < ended]
    took_ms = [(each.answered_s - each.due_s) * 1000 for each in small if each.error == 0]
    admitted = sum(each.size for each in noted if each.error == 0 and began <= each.answered_s < ended)
    return {
        "p50_ms": round(percentile(took_ms, 0.5), 2),
        "p99_ms": round(percentile(took_ms, 0.99), 2),
        "longest_ms": round(max(took_ms, default=0.0), 2),
        "answered": len(took_ms),
        "timed_out": sum(each.error != 0 or each.answered_s - each.due_s > WINDOW_S for each in small),
        "whole_percent": round(100 * admitted / (limit * (ended - began)), 1),
    }


# --- report -----------------------------------------------------------------------------------------------------------


def _is_met(found: dict[str, Any]) -> list[bool]:
    met = [row["percent"] <= 105 for row in found.get("evasion", ())]
    if small := found.get("small"):
        met += [small["p99_ratio"] <= 2, small["timed_out"] == 0, small["whole_percent"] >= 97]
    return met


def _table(found: dict[str, Any]) -> str:
    lines = [
        f"evasion by {row['way']:<14}{row['request_kib']:>6g} KiB{row['percent']:>9} % in the worst 30 s (aim: 105)"
        f"{row['later_percent']:>9} % later"
        for row in found.get("evasion", ())
    ]
    if small := found.get("small"):
        lines += [
            f"small clients {name:<8} p50 {row[name]['p50_ms']:>9} ms   p99 {row[name]['p99_ms']:>9} ms   "
            f"{row[name]['timed_out']} timed out   whole {row[name]['whole_percent']} %"
            for row in small["rounds"]
            for name in ("without", "with")
        ]
        lines.append(
            f"p99 {small['p99_ratio']}x (aim: 2), {small['timed_out']} timed out (aim: 0), "
            f"whole {small['whole_percent']} % (aim: 97)"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
