"""What the matrix says: a table of rows by clients, everything that did not pass with the client's words, and a document.

A run of some cells leaves what the document says of the others, as long as they were of the same version of the client.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tests.clients.cells import Cell
from tests.clients.checks import REAUTHENTICATION, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH = 16


def outcome_of(cell: Cell) -> str:
    """A word or two: pass, FAIL and in which checks, what is not supported."""
    failed = [finding.check for finding in cell.findings if finding.outcome == "fail"]
    missing = [finding.check for finding in cell.findings if finding.outcome == "not supported"]
    if failed:
        return "FAIL " + ", ".join(failed)
    if len(missing) == len(cell.findings):
        return "not supported"
    return "pass, but " + ", ".join(missing) if missing else "pass"


def table(cells: Sequence[Cell], rows: Sequence[str], clients: Mapping[str, str]) -> str:
    """`rows`: their names in order; `clients`: versions by name. A cell that was not run is empty."""
    found = {(cell.client, cell.row): cell for cell in cells}
    shown = [name for name in clients if any(client == name for client, _ in found)]
    lines = ["", f"{'':<30}" + "".join(f"{name:<{_WIDTH}}" for name in shown)]
    lines.append(f"{'':<30}" + "".join(f"{clients[name].split(' ')[0]:<{_WIDTH}}" for name in shown))
    for row in rows:
        if any((name, row) in found for name in shown):
            marks = [_mark(found.get((name, row))) for name in shown]
            lines.append(f"{row:<30}" + "".join(f"{mark:<{_WIDTH}}" for mark in marks).rstrip())
    return "\n".join([*lines, "", *_details(cells)])


def _mark(cell: Cell | None) -> str:
    if cell is None:
        return ""
    said = outcome_of(cell)
    if said.startswith("FAIL"):
        return "FAIL"
    return "pass, no reauth" if said == f"pass, but {REAUTHENTICATION}" else said


def _details(cells: Sequence[Cell]) -> list[str]:
    """A line for each thing that failed, and one for each reason why something is not supported."""
    lines = [
        f"{cell.client}, {cell.row}, {finding.check}: FAIL: {problem}"
        for cell in cells
        for finding in cell.findings
        if finding.outcome == "fail"
        for problem in finding.problems
    ]
    reasons = {
        f"{cell.client}, {finding.check}: not supported: {problem}": None
        for cell in cells
        for finding in cell.findings
        if finding.outcome == "not supported"
        for problem in finding.problems
    }
    return [*lines, *reasons]


def report(cells: Sequence[Cell], before: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, Any]:
    """The document of var/reports/clients.json, together with what an earlier one says of cells that were not run again."""
    again = {(cell.client, cell.row) for cell in cells}
    kept = [
        cell
        for cell in _cells_of(before)
        if (cell.client, cell.row) not in again and versions.get(cell.client) == cell.version
    ]
    merged = [*kept, *cells]
    return {
        "clients": dict(versions),
        "outcomes": {f"{cell.client}, {cell.row}": outcome_of(cell) for cell in merged},
        "cells": [asdict(cell) for cell in merged],
    }


def _cells_of(document: Mapping[str, Any]) -> list[Cell]:
    return [
        Cell(**{**cell, "findings": [Finding(**finding) for finding in cell["findings"]]})
        for cell in document.get("cells", ())
    ]
