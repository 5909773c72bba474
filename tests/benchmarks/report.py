"""Figures by name and server, from several rounds; the table at the end and the JSON."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.targets import PROTOTYPE, TARGETS

OURS, FULL, SECURED, APACHE = "sluice", "sluice-full", "sluice-tls", "apache"
_ROWS_OF_THEIR_OWN = {FULL: "full", SECURED: "TLS"}
_VERDICTS = {True: "met", False: "MISSED", None: "not judged without Apache Kafka"}


Say = Callable[[str], None]


def progress() -> Say:
    """Prints lines with the seconds since now."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    return say


def keep(path: Path, figures: Mapping[str, Any]) -> None:
    """Write a report, and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"figures: {path}")


class Figures:
    """Values of each round."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, list[float]]] = {}

    def add(self, figure: str, server: str, value: float) -> None:
        """One round's. Ours with every record checked, or with TLS within, has rows of its own below the others."""
        if server in _ROWS_OF_THEIR_OWN:
            figure, server = f"{figure} ({_ROWS_OF_THEIR_OWN[server]})", OURS
        self._values.setdefault(figure, {}).setdefault(server, []).append(value)

    def last(self, figure: str, server: str) -> float:
        """The value added last."""
        return self._values[figure][server][-1]

    def rows(self) -> list[dict[str, Any]]:
        """Medians, spreads, and what they should be."""
        rows = []
        for figure, by_server in sorted(self._values.items()):
            row: dict[str, Any] = {"figure": figure}
            for server, values in by_server.items():
                spread = [_rounded(min(values)), _rounded(max(values))]
                row[server] = {"median": _rounded(statistics.median(values)), "spread": spread, "rounds": len(values)}
            target, ours = TARGETS.get(figure), by_server.get(OURS)
            if target is not None and ours is not None:
                theirs = by_server.get(APACHE)
                apache = statistics.median(theirs) if theirs else None
                row["target"] = str(target)
                row["met"] = target.is_met(statistics.median(ours), apache)
            prototype = _prototype(figure)
            if prototype is not None and ours is not None:
                row["prototype"] = prototype
                row["to_prototype"] = _rounded(statistics.median(ours) / prototype)
            rows.append(row)
        return rows


def table(rows: list[dict[str, Any]]) -> str:
    """For the terminal."""
    width = max((len(row["figure"]) for row in rows), default=0) + 2
    lines = [f"{'':<{width}}{'sluice':>10}{'spread':>18}{'apache':>10}{'ratio':>8}{'to proto':>10}  target"]
    for row in rows:
        ours, apache = row.get(OURS), row.get(APACHE)
        line = f"{row['figure']:<{width}}" + (_cell(ours) if ours else " " * 28)
        line += f"{apache['median']:>10g}" if apache else " " * 10
        line += f"{ours['median'] / apache['median']:>8.2f}" if ours and apache else " " * 8
        line += f"{row['to_prototype']:>10.2f}" if "to_prototype" in row else " " * 10
        if "target" in row:
            line += f"  {row['target']}: {_VERDICTS[row['met']]}"
        lines.append(line)
    return "\n".join(lines)


def _cell(values: dict[str, Any]) -> str:
    low, high = values["spread"]
    return f"{values['median']:>10g}{f'{low:g} - {high:g}':>18}"


def _prototype(figure: str) -> float | None:
    what, _, unit = figure.partition(", ")
    if what not in PROTOTYPE:
        return None
    return PROTOTYPE[what][0 if unit.startswith("MB/s") else 1]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
