"""The parts of a night: what is run, how much of it, how long it may take, and where it says what it found.

Seeds follow from the commit, so that each night tries others and a night that was stopped goes on with its own. Parts that
want one core run two at a time, real brokers alone: what they show depends on nobody else having the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.nightly import figures

REPORTS = Path("var/reports")
KILLS = "leader,any,bounce,controller,twice,all"
"""Kinds of chaos that kill brokers and nothing else."""


@dataclass(frozen=True)
class Part:
    """`arguments` of `python -m`; `member`: where its report is in the file, if that has several."""

    name: str
    arguments: tuple[str, ...]
    minutes: float
    """How long it may take; half of that, or less, is what it takes on two cores."""
    report: str
    figures: Callable[[dict[str, Any]], dict[str, Any]]
    alone: bool = False
    member: str | None = None

    def read(self, directory: Path, since: float) -> dict[str, Any]:
        """The few numbers of what it wrote. Raises LookupError: it has written nothing `since` then, on the wall clock."""
        path = directory / f"{self.report}.json"
        if not path.exists() or path.stat().st_mtime < since:
            raise LookupError(f"{path} was not written")
        report = json.loads(path.read_text())
        return self.figures(report[self.member] if self.member else report)


def parts(number: int, scale: float) -> list[Part]:
    """All of them, those that want one core first, the longest before the others. `scale`: of the usual amounts."""

    def some(usual: float) -> str:
        return str(max(1, round(usual * scale)))

    def fuzz(target: str) -> Part:
        minutes = 7.5 * scale
        command = ("tests.fuzz", target, "--minutes", f"{minutes:g}")
        return Part(f"fuzz {target}", command, minutes + 3, "fuzz", figures.fuzz, member=target)

    minutes = 12 * scale
    mutation = ("tests.mutation", "--sample", some(800), "--seed", str(number), "--minutes", f"{minutes:g}")
    return [
        Part("mutation", mutation, minutes + 3, "mutation", figures.mutation),
        fuzz("decoders"),
        fuzz("connection"),
        fuzz("proxy"),
        Part(
            "crash points",
            ("tests.crashpoints", "--first-seed", str(number), "--seeds", some(24), "--every", "4"),
            30 * max(1.0, scale),
            "crash",
            figures.crash,
        ),
        Part(
            "simulation",
            ("tests.simulation", "--first", str(number), "--seeds", some(200), "--jobs", "1"),
            25 * max(1.0, scale),
            "simulation",
            figures.simulation,
        ),
        Part(
            "kills",
            ("tests.chaos", "--rounds", some(20), "--seconds", "10", "--seed", str(number), "--faults", KILLS),
            20 * max(1.0, scale),
            "chaos",
            figures.chaos,
            alone=True,
        ),
        Part(
            "metering",
            ("tests.killed", "--rounds", some(6), "--seed", str(number)),
            20 * max(1.0, scale),
            "killed",
            figures.killed,
            alone=True,
        ),
        Part(
            "long tests",
            ("tests.nightly.long_tests", "--seed", str(number), "--of-each", some(20)),
            70 * max(1.0, scale),
            "long",
            figures.long,
            alone=True,
        ),
        Part("differential", ("tests.differential",), 10, "differential", figures.differential, alone=True),
        Part("leaks", ("tests.leaks",), 10, "leaks", figures.leaks, alone=True),
        Part("conformance", ("tests.conformance",), 35, "conformance", figures.conformance, alone=True),
    ]
