"""Runs the matrix, and says what it found: exit status 1 on a leak.

    python -m tests.leaks                                                a cluster of ours: three brokers, two instances
    python -m tests.leaks --bootstrap host:port --foreign host:port      A's and B's address in a running installation
    python -m tests.leaks --api METADATA,FETCH                           these only

In an installation both instances get topics, groups, users, ACLs and quotas, which are gone again afterwards: use two that
nobody needs at the time. Both have to allow everybody everything (no ACLs that refuse, no whitelists of topics), and no limits
that could be reached.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

from quota.contracts.instance import parse_address
from tests.leaks.client import Client
from tests.leaks.lines import Sockets
from tests.leaks.matrix import PHASES, Matrix, Report
from tests.leaks.world import Sides, our_cluster

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "var" / "reports" / "leaks.json"
_SHOWN = 40


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    with _sides(arguments) as sides:
        apis = frozenset(filter(None, arguments.api.upper().split(",")))
        token = f"zq{uuid4().hex[:8]}"
        report = Matrix(sides, token=token, apis=apis, edges=arguments.edges, say=say).run()
    _write(report, time.monotonic() - began)
    _show(report)
    return 1 if report.leaks else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make leaks")
    parser.add_argument("--bootstrap", help="host:port of the instance that asks")
    parser.add_argument("--foreign", help="host:port of the instance that is asked about")
    parser.add_argument("--login", help="host:port where users of the first log in by SASL, if they do")
    parser.add_argument("--api", default="", help="only these, as METADATA,FETCH")
    parser.add_argument("--edges", action="store_true", help="of each API the oldest and the newest version only")
    arguments = parser.parse_args()
    if bool(arguments.bootstrap) is not bool(arguments.foreign):
        parser.error("--bootstrap and --foreign go together")
    return arguments


@contextmanager
def _sides(arguments: argparse.Namespace) -> Iterator[Sides]:
    if arguments.bootstrap:
        network = Sockets()
        clients = [Client(network, parse_address(text)) for text in (arguments.bootstrap, arguments.foreign)]
        yield Sides(*clients, login=parse_address(arguments.login) if arguments.login else None)
        return
    with (
        tempfile.TemporaryDirectory(prefix="sluice-leaks-") as folder,
        our_cluster(Path(folder), REPORT.parent) as sides,
    ):
        yield sides


def _write(report: Report, seconds: float) -> None:
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "seconds": round(seconds, 1),
        "cells": {phase: report.of(phase) for phase in PHASES},
        "answers_scanned": report.scanned,
        "by_api": {api: {phase: report.cells[api, phase] for phase in PHASES} for api in _apis(report)},
        "nothing_foreign": report.nothing_foreign,
        "leaks": [asdict(leak) for leak in report.leaks],
    }
    REPORT.write_text(json.dumps(document, indent=1))


def _show(report: Report) -> None:
    for leak in report.leaks[:_SHOWN]:
        print(f"{leak.api} v{leak.version} at broker {leak.broker}, {leak.where}\n    {leak.what}")
        print(f"    foreign: {leak.foreign}\n    absent:  {leak.absent}")
    if len(report.leaks) > _SHOWN:
        print(f"... and {len(report.leaks) - _SHOWN} more, in {REPORT.relative_to(ROOT)}")
    print(f"\n{'api':34}" + "".join(f"{phase:>11}" for phase in (*PHASES, "leaks")))
    for api in _apis(report):
        counts = [report.cells[api, phase] for phase in PHASES]
        leaks = sum(leak.api == api for leak in report.leaks)
        print(f"{api:34}" + "".join(f"{count:>11}" for count in (*counts, leaks)))
    for kind, example in report.nothing_foreign.items():
        print(f"not asked here: B has nothing foreign of the kind {kind} ({example})")
    total = ", ".join(f"{report.of(phase)} {phase}" for phase in PHASES)
    print(f"{total}; {report.scanned} answers looked through; {len(report.leaks)} leaks")


def _apis(report: Report) -> list[str]:
    return list(dict.fromkeys(api for api, _ in report.cells))


if __name__ == "__main__":
    sys.exit(main())
