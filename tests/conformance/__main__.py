"""`make conformance`: other people's suites and our scenarios with other people's clients, against our brokers.

    python -m tests.conformance [suite …] [--door internal|tenant|apache] [--only PART]

Each suite runs through both doors (see `target`), one at a time; "apache" runs it against a real Apache Kafka 3.9.2
instead, which is how the expected tables of our own scenarios were made. Exit status 1 when something that Apache Kafka
passes does not pass here and is not listed with its reason (see `results`), or when a broker died.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.results import Row, compare, kept, report, table
from tests.conformance.suites import java_streams, java_tools, kafka_python, librdkafka, scenarios
from tests.conformance.target import DOORS, PROFILE_A, PROFILE_B, OurCluster, Profile
from tests.support.apache_kafka import ApacheKafka, NotAvailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conformance.results import Result

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "var" / "reports" / "conformance.json"
LOGS = ROOT / "var" / "conformance" / "logs"


@dataclass(frozen=True)
class Suite:
    """How it is run, and on which cluster."""

    profile: Profile
    run: Callable[[str, Path, Callable[[str], None], str], list[Result]]


SUITES = {
    "kafka-python": Suite(PROFILE_A, kafka_python.run),
    "librdkafka-quick": Suite(PROFILE_B, librdkafka.run_quick),
    "kafkajs": Suite(PROFILE_B, scenarios.run_kafkajs),
    "java": Suite(PROFILE_B, scenarios.run_java),
    "java-tools": Suite(PROFILE_B, java_tools.run),
    "java-streams": Suite(PROFILE_B, java_streams.run),
    "librdkafka-full": Suite(PROFILE_B, librdkafka.run_full),
}


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    began = time.monotonic()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    rows: list[Row] = []
    problems: list[str] = []
    for name in arguments.suites or SUITES:
        for door in arguments.door or DOORS:
            say(f"=== {name}, door {door}")
            try:
                rows += _run(name, door, arguments.only, say, problems)
            except NotAvailableError as error:
                problems.append(f"{name}, {door}: not run: {error}")
    print(table(rows))
    for problem in problems:
        print(problem)
    if not arguments.only:
        _write(rows, problems)
    print(f"{time.monotonic() - began:.0f} s; figures: {REPORT.relative_to(ROOT)}, logs: {LOGS.relative_to(ROOT)}")
    return 1 if problems or any(row.is_failure for row in rows) else 0


def _write(rows: list[Row], problems: list[str]) -> None:
    """The report, together with what it says of suites that were not run this time."""
    before = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    old = kept(before, rows)
    beginnings = tuple({f"{row.suite}, {row.door}:" for row in old})
    problems = [problem for problem in before.get("problems", ()) if problem.startswith(beginnings)] + problems
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({**report([*old, *rows]), "problems": problems}, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], metavar="suite", help=", ".join(SUITES))
    parser.add_argument("--door", action="append", choices=(*DOORS, "apache"))
    parser.add_argument("--only", default="", help="tests with this in their names")
    return parser.parse_args()


def _run(name: str, door: str, only: str, say: Callable[[str], None], problems: list[str]) -> list[Row]:
    suite = SUITES[name]
    scratch = LOGS / f"{name}-{door}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory(prefix="sluice-conformance-") as folder,
        _cluster(Path(folder), suite.profile, door) as cluster,
    ):
        results = suite.run(cluster.bootstrap, scratch, say, only)
        if isinstance(cluster, OurCluster):
            problems += [f"{name}, {door}: {text}" for text in cluster.crashed()]
            cluster.keep_logs(scratch)
            if count := cluster.complaints():
                problems.append(
                    f"{name}, {door}: {count} tracebacks in the brokers' logs, see {scratch.relative_to(ROOT)}"
                )
    return compare(name, door, results, whole=not only)


@contextmanager
def _cluster(folder: Path, profile: Profile, door: str) -> Iterator[OurCluster | ApacheKafka]:
    if door != "apache":
        with OurCluster(folder, profile, door) as cluster:
            yield cluster
        return
    settings = profile.apache_settings()
    with ApacheKafka(
        folder, brokers=len(profile.brokers), first_id=profile.brokers[0], settings=settings, heap="512m"
    ) as apache:
        yield apache


if __name__ == "__main__":
    sys.exit(main())
