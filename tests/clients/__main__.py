"""`make clients`: the matrix of clients and routes, one cell at a time; see the package's docstring.

    python -m tests.clients [--client NAME …] [--row PART] [--check NAME …]

Exit status 1 when a cell failed, when a client could not be had, or when a broker died or logged a traceback.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.clients.cells import Cell, run_cell
from tests.clients.checks import CHECKS
from tests.clients.clients import CLIENTS
from tests.clients.instance import Served
from tests.clients.report import outcome_of, report, table
from tests.clients.rows import ROWS
from tests.support.apache_kafka import NotAvailableError
from tests.support.cluster import ProcessCluster

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "var" / "reports" / "clients.json"
LOGS = ROOT / "var" / "clients"
LIFETIME_MS = 5_000
"""Of a login: short, so that clients log in again while we look, and long enough for one that a busy machine delays."""
SETTINGS = {
    "connections_max_reauth_ms": LIFETIME_MS,
    "offsets_topic_num_partitions": 4,
    "group_min_session_timeout_ms": 1_000,
    "group_initial_rebalance_delay_ms": 0,
}
_VERSIONS = {client.name: client.version for client in CLIENTS.values()}
SESSION_MS = 18_000
"""Of brokers in ZooKeeper, as Kafka's: a busy machine is not a broker's death."""


def main() -> int:
    """The exit status."""
    arguments = _arguments()
    began = time.monotonic()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    problems: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="sluice-clients-") as folder,
        ProcessCluster(Path(folder), SETTINGS, session_timeout_ms=SESSION_MS) as cluster,
    ):
        cluster.make_coordinators()
        cells = _run_all(arguments, Served(cluster.tenant, Path(folder) / "certificates"), say, problems)
        problems += _complaints(cluster)
    _tell(cells, problems)
    if not arguments.check:
        _write(cells, problems)
    print(f"{time.monotonic() - began:.0f} s; figures: {REPORT.relative_to(ROOT)}, logs: {LOGS.relative_to(ROOT)}")
    return 1 if problems or any(cell.is_failure for cell in cells) else 0


def _run_all(
    arguments: argparse.Namespace, served: Served, say: Callable[[str], None], problems: list[str]
) -> list[Cell]:
    cells: list[Cell] = []
    for client in (CLIENTS[name] for name in arguments.client or CLIENTS):
        try:
            client.command()
        except NotAvailableError as error:
            problems.append(f"{client.name}: not run: {error}")
            continue
        for row in ROWS:
            if arguments.row not in row.name:
                continue
            log = LOGS / f"{client.name}-{row.name.replace(' ', '-')}.log"
            wanted = tuple(arguments.check or CHECKS)
            cell = run_cell(client, row, served, lifetime_ms=LIFETIME_MS, log=log, wanted=wanted)
            cells.append(cell)
            say(f"{client.name:<14}{row.name:<30}{outcome_of(cell)}")
            for problem in (problem for finding in cell.findings for problem in finding.problems):
                print(f"{'':11}{problem}", flush=True)
    return cells


def _complaints(cluster: ProcessCluster) -> list[str]:
    """What is wrong with the brokers, whatever clients say. Their logs go with the cluster's folder: they are kept."""
    found = []
    for broker in cluster.brokers.values():
        shutil.copy(broker.log, LOGS)
        if not broker.is_running:
            found.append(f"{broker.name} is gone:\n{broker.tail()}")
        if count := broker.log.read_text(errors="replace").count("Traceback (most recent"):
            found.append(f"{broker.name} has logged {count} tracebacks: {LOGS.relative_to(ROOT)}/{broker.log.name}")
    return found


def _tell(cells: list[Cell], problems: list[str]) -> None:
    print(table(cells, [row.name for row in ROWS], _VERSIONS))
    for problem in problems:
        print(problem)


def _write(cells: list[Cell], problems: list[str]) -> None:
    """The report, together with what it says of cells that were not run this time."""
    before = json.loads(REPORT.read_text()) if REPORT.exists() else {}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({**report(cells, before, _VERSIONS), "problems": problems}, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients")
    parser.add_argument("--client", action="append", choices=tuple(CLIENTS))
    parser.add_argument("--row", default="", help="rows with this in their names")
    parser.add_argument(
        "--check", action="append", choices=CHECKS, help="of a cell's checks only these; the report stays as it is"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
