"""``python -m tests.stalls``: can a legal request hold up everybody? Every API and version, beside a victim.

    python -m tests.stalls [--quick] [--only METADATA,DESCRIBE_CONFIGS] [--minutes 30] [--apache] [--fresh]

A real broker (or three) with many topics and groups. For each row, the largest legal request of its kind is sent alone,
pipelined, or from a thousand connections (`attacks`, `worst`), beside a tenant that produces and consumes 1,000 records a
second (`victim`). A row says what a request cost the loop, what the longest turn was, and what the victim felt of it.

    turn ms     the longest turn of the loop, in processor time, as the broker itself wrote it down; of Apache Kafka as `held`
    held        the longest that a probe waited for ApiVersions, less what the machine took (`lost`)
    ratio       the victim's p99 over its p99 alone, between the rows; the worse of acknowledged and consumed
    MiB         the most memory that the broker held

A row is beyond the limits (and the exit status 1) with a turn longer than 20 ms, a p99 of more than 1.5 times alone that the
machine's noise does not explain (`judging`), errors of the victim, or more than 1 GiB. When all rows have been measured once,
those beyond the first two are measured up to twice more and judged by the median (`tries` in the table; all attempts are in
the report). Figures are kept after every attempt in `var/reports/stalls.json`; with the same options the next run goes on with
what is missing, `--fresh` begins anew.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.benchmarks.report import progress
from tests.stalls import world as worlds
from tests.stalls.attacks import Attack, generated
from tests.stalls.judging import LONGEST_TURN_MS, P99_RATIO, RESIDENT_MIB
from tests.stalls.running import Row, Runner, commonest, is_settled, line, lines
from tests.stalls.worst import worst
from tests.support.apache_kafka import NotAvailableError, jars

REPORT = Path("var/reports/stalls.json")
QUICK = (
    "tenant API_VERSIONS v4 flat alone",
    "tenant METADATA v12 wide alone",
    "tenant OFFSET_FETCH v9 wide crowd",
    "tenant FIND_COORDINATOR v6 wide pipelined",
    "tenant CREATE_TOPICS v7 wide alone",
    "tenant METADATA v10 of everything, 100 connections pipelined",
    "tenant LIST_OFFSETS v0 one partition 19,000 times",
    "internal UPDATE_METADATA v8 of everything",
    "tenant DESCRIBE_CONFIGS v4 of 4,000 names for one broker",
    "indebted PRODUCE v11 24 frames of 60 MiB, indebted",
)
"""Rows that say most in two minutes."""
_DESCRIPTORS = 20_000
_WARM_BYTES = 3 * 2**30
"""More than broker and victim take in all rows; as much again stays in use beside it (`tests.benchmarks.warm`)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    options = _options(arguments)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # what the world has made goes with it, gigabytes in memory
    attacks = _chosen(options)
    if options.list:
        print("\n".join(attack.name for attack in attacks))
        return 0
    _more_descriptors()
    kept = Kept(options)
    ends = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
    _run(worlds.ours, options, kept, attacks, "sluice", ends)
    if options.apache:
        try:
            jars()
            _run(worlds.apache, options, kept, [attack for attack in attacks if attack.on_apache], "apache", ends)
        except NotAvailableError as problem:
            print(problem)
    rows = kept.rows([attack.name for attack in attacks])
    print("\n".join(lines(rows)))
    print(commonest(rows))
    missing = len(attacks) - len(rows)
    if missing:
        print(f"{missing} rows were not reached: the same again goes on with them")
    print(f"figures: {options.report}")
    return int(any(row["wrong"] for row in rows))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.stalls", description="Requests that hold up a broker.")
    parser.add_argument("--quick", action="store_true", help="ten rows in a small cluster: about two minutes")
    parser.add_argument("--only", default="", help="APIs or words of rows, with commas between them")
    parser.add_argument("--door", choices=[worlds.TENANT, worlds.INTERNAL, "indebted"], help="only this one")
    parser.add_argument("--kind", choices=["generated", "worst"], help="rows from declarations, or those made by hand")
    parser.add_argument("--minutes", type=float, default=0.0, help="no row begins later")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a row, and of the window before it")
    parser.add_argument("--brokers", type=int, default=1, choices=[1, 3])
    parser.add_argument("--topics", type=int, default=0, help="of other tenants; 2,000, with --quick 500")
    parser.add_argument("--own", type=int, default=0, help="topics of the aggressor; 500, with --quick 200")
    parser.add_argument("--groups", type=int, default=0, help="of each of both; 300, with --quick 100")
    parser.add_argument("--frame-mib", type=float, default=100.0, help="size of Produce")
    parser.add_argument("--internal-mib", type=float, default=2.0, help="size of other requests on the internal door")
    parser.add_argument("--apache", action="store_true", help="the same rows against Apache Kafka, too")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--list", action="store_true", help="only say which rows there are")
    parser.add_argument("--report", type=Path, default=REPORT)
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace) -> list[Attack]:
    kinds = {"generated": generated, "worst": worst}
    attacks = [attack for kind, made in kinds.items() if options.kind in (None, kind) for attack in made()]
    if options.quick and not options.only:
        attacks = [attack for attack in attacks if attack.name in QUICK]
    if options.only:
        words = [word.strip() for word in options.only.split(",")]
        attacks = [attack for attack in attacks if attack.api in words or any(word in attack.name for word in words)]
    return [attack for attack in attacks if options.door in (None, attack.door)]


def _sizes(options: argparse.Namespace) -> worlds.Sizes:
    others, own, groups = (500, 200, 100) if options.quick else (2_000, 500, 300)
    return worlds.Sizes(
        options.topics or others,
        options.own or own,
        options.groups or groups,
        options.frame_mib,
        options.internal_mib,
        warm_bytes=0 if options.quick else _WARM_BYTES,
    )


class Kept:
    """The report: rows by name, written after each of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._path: Path = options.report
        measured = {name: value for name, value in vars(options).items() if name in _MATTERS}
        self._document: dict[str, Any] = {
            "commit": _commit(),
            "options": measured,
            "limits": {"turn_ms": LONGEST_TURN_MS, "p99_ratio": P99_RATIO, "resident_mib": RESIDENT_MIB},
            "noise_ms": {},
            "rows": {},
        }
        if self._path.exists() and not options.fresh:
            before = json.loads(self._path.read_text())
            if all(before.get(name) == self._document[name] for name in ("commit", "options")):
                self._document = before

    def row(self, name: str, side: str) -> Row | None:
        row: Row | None = self._document["rows"].get(name, {}).get(side)
        return row

    def keep(self, row: Row, side: str, noise: dict[str, float]) -> None:
        self._document["rows"].setdefault(row["name"], {})[side] = row
        self._document["noise_ms"][side] = noise
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._document, indent=1) + "\n")

    def rows(self, names: Sequence[str]) -> list[Row]:
        """Ours, with Apache Kafka's within."""
        found = [self._document["rows"].get(name, {}) for name in names]
        return [{**sides["sluice"], "apache": sides.get("apache")} for sides in found if "sluice" in sides]


_MATTERS = ("quick", "seconds", "brokers", "topics", "own", "groups", "frame_mib", "internal_mib")


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _run(
    make: Callable[..., AbstractContextManager[worlds.World]],
    options: argparse.Namespace,
    kept: Kept,
    attacks: Sequence[Attack],
    side: str,
    ends: float,
) -> None:
    if not _unsettled(kept, attacks, side):
        return
    say = progress()
    with make(_sizes(options), options.brokers, say) as world, Runner(world, options.seconds, say) as runner:
        while todo := _unsettled(kept, attacks, side):  # all once, then again those that are beyond a limit
            say(f"{side}: {len(todo)} rows")
            for number, attack in enumerate(todo, 1):
                if time.monotonic() > ends:
                    say("the time is over")
                    return
                row = runner.row(attack, kept.row(attack.name, side))
                kept.keep(row, side, runner.noise)
                say(f"{number}/{len(todo)}  {line(row)}")


def _unsettled(kept: Kept, attacks: Sequence[Attack], side: str) -> list[Attack]:
    rows = {attack.name: kept.row(attack.name, side) for attack in attacks}
    todo = [attack for attack in attacks if (row := rows[attack.name]) is None or not is_settled(row)]
    new = [attack for attack in todo if rows[attack.name] is None]
    return new or todo


def _more_descriptors() -> None:
    """A thousand connections have two ends; brokers inherit it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(_DESCRIPTORS, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


if __name__ == "__main__":
    sys.exit(main())
