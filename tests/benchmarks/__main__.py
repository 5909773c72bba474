"""`make bench`: ours through a tenant's port, and Apache Kafka's, in alternation, by the same clients on this machine.

    python -m tests.benchmarks [--sections throughput,small,latency,replicated,secured,idle] [--rounds 3] [--alone]

CPU seconds are the brokers' own, over the whole run. The prototype's column is of another machine of the same kind; the
`floor` is what receiving and writing alone cost here in the same run. `--alone` leaves Apache Kafka out.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import floor, idle, latency, small, throughput
from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.catch_up import catch_up
from tests.benchmarks.report import Figures, Say, keep, progress, table
from tests.benchmarks.rig import FullRig, Rig, SecuredRig
from tests.benchmarks.server import Server
from tests.support.apache_kafka import NotAvailableError

BATCHES = {"16 KiB": 16 * 2**10, "128 KiB": 128 * 2**10, "1 MiB": 2**20}
TOTAL_BYTES = 1_000_000_000
REPLICATED_BYTES = 300_000_000
APACHE_SLOW_BYTES = 100_000_000
"""Three of Apache Kafka's brokers on two cores take a minute and more for a GB of small batches."""
WARM_BYTES = 1_600_000_000
SECTIONS = ("throughput", "small", "latency", "idle", "replicated", "secured")
REPLICATED = "three brokers, acks=all,"
SECURED = "plaintext or TLS within, acks=all,"
LATENCY_S = 8.0
SMALL_S = 4.0
_CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    options = _options(arguments)
    say = progress()
    figures = Figures()
    report: dict[str, Any] = {"machine": _machine(), "record_bytes": throughput.RECORD_BYTES, "rounds": options.rounds}
    report["validation"] = options.validation
    with _congestion_control(options.congestion, say) as congestion:
        report["congestion_control"] = congestion
        if options.sections & {"throughput", "small", "latency", "idle"}:
            with contextlib.ExitStack() as stack:
                servers = _servers(stack, 1, options, say)
                report["floor"] = _floor(servers[0], say)
                report["log_on_tmpfs"] = servers[0].on_tmpfs
                for server in servers:
                    figures.add("resident idle, MiB", server.name, server.resident_mib())
                _single(servers, figures, options, say)
        if "replicated" in options.sections:
            with contextlib.ExitStack() as stack:
                _replicated(_servers(stack, 3, options, say), figures, options, say)
        if "secured" in options.sections:
            with contextlib.ExitStack() as stack:
                both: list[Server] = [stack.enter_context(kind(brokers=3)) for kind in (Rig, SecuredRig)]
                _replicated(both, figures, options, say, SECURED)
    report["rows"] = figures.rows()
    print(table(report["rows"]))
    print("floor (receive and write only):", report.get("floor"))
    keep(Path(f"var/reports/{_report_name(options.sections)}.json"), report)
    return 0


def _report_name(sections: set[str]) -> str:
    """Some sections do not take the place of all."""
    return "bench" if sections == set(SECTIONS) else "-".join(["bench", *(s for s in SECTIONS if s in sections)])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description="Throughput, latency and CPU of the brokers.")
    parser.add_argument("--sections", default=",".join(SECTIONS), help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--validation",
        choices=("header", "full", "both"),
        default="header",
        help="what our broker checks of a batch; both: rows of full validation beside the others",
    )
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control for both, where root may set it")
    options = parser.parse_args(arguments)
    options.sections = set(options.sections.split(","))
    unknown = options.sections - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    return options


def _servers(stack: contextlib.ExitStack, brokers: int, options: argparse.Namespace, say: Say) -> list[Server]:
    servers: list[Server] = []
    for kind in {"header": (Rig,), "full": (FullRig,), "both": (Rig, FullRig)}[options.validation]:
        ours = kind(brokers=brokers)
        servers.append(stack.enter_context(ours))
        say(f"{ours.name}: {brokers} up, accepting after {ours.accepts_after_s:.2f} s")
    if not options.alone:
        try:
            theirs = ApacheRig(brokers=brokers)
            servers.append(stack.enter_context(theirs))
            say(f"Apache Kafka: {brokers} up, accepting after {theirs.accepts_after_s:.2f} s")
        except NotAvailableError as error:
            say(f"without Apache Kafka: {error}")
    return servers


def _floor(server: Server, say: Say) -> dict[str, float]:
    fresh = floor.cpu_s_per_gb(directory=str(server.directory))
    say(f"the floor on fresh pages: {fresh[0]:.2f} CPU-s/GB; touching pages so that they are warm")
    server.keep_pages_warm(WARM_BYTES)
    warm = floor.cpu_s_per_gb(directory=str(server.directory))
    say(f"the floor on warm pages: {warm[0]:.2f} CPU-s/GB, {warm[1]:.0f} MB/s")
    return {"cpu_s_per_gb": round(warm[0], 3), "mb_per_s": round(warm[1]), "fresh_cpu_s_per_gb": round(fresh[0], 3)}


def _single(servers: list[Server], figures: Figures, options: argparse.Namespace, say: Say) -> None:
    for number in range(options.rounds):
        for server in servers:
            tell = _prefixed(say, f"round {number + 1} of {options.rounds}, {server.name}: ")
            if "throughput" in options.sections:
                _throughput(server, figures, f"{number}", tell)
            if "small" in options.sections:
                _small(server, figures, f"small-{number}", tell)
            if "latency" in options.sections:
                for rate in (1_000, 20_000):
                    _latency(server, figures, rate, f"latency-{rate}-{number}", say)
    for server in servers:
        figures.add("resident after load, MiB", server.name, server.resident_mib())
        figures.add("accepts after, s", server.name, server.accepts_after_s)
        if "idle" in options.sections:
            figures.add("idle connection, KiB", server.name, idle.kib_per_connection(server))


def _prefixed(say: Say, prefix: str) -> Say:
    return lambda text: say(prefix + text)


def _throughput(server: Server, figures: Figures, tag: str, say: Say) -> None:
    for label, size in BATCHES.items():
        topic = f"bench-{tag}-{size}"
        server.topic(topic, throughput.PARTITIONS)
        for what, (rate, cost) in (
            ("produce", throughput.produce(server, topic, size, TOTAL_BYTES)),
            ("consume", throughput.consume(server, topic, TOTAL_BYTES)),
        ):
            figures.add(f"{what} {label}, MB/s", server.name, rate)
            figures.add(f"{what} {label}, CPU-s/GB", server.name, cost)
            say(f"{what} {label}: {rate:.0f} MB/s, {cost:.2f} CPU-s/GB")
        server.delete_topic(topic)


def _small(server: Server, figures: Figures, topic: str, say: Say) -> None:
    server.topic(topic, 1)
    for what, request in (("produce", small.produce_request(topic)), ("fetch", small.fetch_request(topic, 0))):
        per_core, rate = small.per_core(server, request, SMALL_S)
        figures.add(f"small {what}, requests/s of a core", server.name, per_core)
        say(f"small {what}: {rate:.0f} requests/s, {per_core:.0f} a second of CPU")
    server.delete_topic(topic)


def _latency(
    server: Server, figures: Figures, rate: int, topic: str, say: Say, *, title: str = "end to end at", acks: str = "1"
) -> None:
    server.topic(topic, 1, min(3, len(server.brokers)))
    median, worst = latency.end_to_end(server.bootstrap, topic, rate, LATENCY_S, acks=acks)
    figures.add(f"{title} {rate}/s, p50 ms", server.name, median)
    figures.add(f"{title} {rate}/s, p99 ms", server.name, worst)
    say(f"{server.name}: {title} {rate}/s: p50 {median:.2f} ms, p99 {worst:.2f} ms")
    server.delete_topic(topic)


def _replicated(
    servers: list[Server], figures: Figures, options: argparse.Namespace, say: Say, title: str = REPLICATED
) -> None:
    say("touching pages so that they are warm: every byte is written three times")
    servers[0].keep_pages_warm(WARM_BYTES)
    for number in range(options.rounds):
        for server in servers:
            for label in ("16 KiB", "128 KiB"):
                topic = f"bench-{number}-{BATCHES[label]}"
                server.topic(topic, throughput.PARTITIONS, 3)
                slow = server.name == ApacheRig.name and label == "16 KiB"
                total = APACHE_SLOW_BYTES if slow else REPLICATED_BYTES
                rate, cost = throughput.produce(server, topic, BATCHES[label], total, acks="all")
                figures.add(f"{title} {label}, MB/s", server.name, rate)
                figures.add(f"{title} {label}, CPU-s/GB", server.name, cost)
                say(f"{server.name}: {title} {label}: {rate:.0f} MB/s, {cost:.2f} CPU-s/GB of all three")
                server.delete_topic(topic)
            _latency(server, figures, 1_000, f"latency-{number}", say, title=title, acks="all")
            _acknowledged(server, figures, f"acknowledged-{number}", say, title)
            _catch_up(server, figures, f"catch-up-{number}", say, "" if title == REPLICATED else f"{title} ")


def _acknowledged(server: Server, figures: Figures, topic: str, say: Say, title: str) -> None:
    server.topic(topic, 1, 3)
    median, worst = latency.acknowledged(server.bootstrap, topic, 1_000, LATENCY_S)
    figures.add(f"{title} 1000/s acknowledged, p50 ms", server.name, median)
    figures.add(f"{title} 1000/s acknowledged, p99 ms", server.name, worst)
    say(f"{server.name}: {title} 1000/s: acknowledged after p50 {median:.2f} ms, p99 {worst:.2f} ms")
    server.delete_topic(topic)


def _catch_up(server: Server, figures: Figures, topic: str, say: Say, title: str) -> None:
    rate, cost = catch_up(server, topic, REPLICATED_BYTES)
    figures.add(f"{title}a new replica, MB/s", server.name, rate)
    figures.add(f"{title}a new replica, CPU-s/GB", server.name, cost)
    say(f"{server.name}: a new replica gets in sync: {rate:.0f} MB/s, {cost:.2f} CPU-s/GB of all three")
    server.delete_topic(topic)


@contextlib.contextmanager
def _congestion_control(wanted: str, say: Say) -> Iterator[str]:
    """The same for both: loopback under bbr doubles what sendfile costs. The system's own comes back at the end."""
    before = _CONGESTION.read_text().strip()
    try:
        _CONGESTION.write_text(wanted)
    except OSError as error:
        say(f"congestion control stays {before}: {error.strerror}")
        yield before
        return
    say(f"congestion control {wanted} (the system's own is {before})")
    try:
        yield wanted
    finally:
        _CONGESTION.write_text(before)


def _machine() -> dict[str, Any]:
    optimised = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "python_built_with_optimisations": optimised,
        "kernel": platform.release(),
        "load_average": os.getloadavg(),
    }


if __name__ == "__main__":
    sys.exit(main())
