"""Tests that are marked `long`, as many of them as a night has time for: `python -m tests.nightly.long_tests`.

    python -m tests.nightly.long_tests [--seed 7] [--of-each 20] [path …]

A test that is made of hundreds (each message and version, each address of REST) is run for so many of them, drawn by the seed: in
a few weeks of nights all have had their turn. What may take longer than LONGEST_S by its own limit is left to releases.
`pytest -m long` runs all of it.

Exit status 0, 1 when a test has failed, 2 when not all could be run. var/reports/long.json::

    {"seed": 7, "passed": 51, "skipped": 0, "failed": ["tests/…"], "left_out": 1225, "seconds": 1260.5,
     "slowest": [["tests/…", 240.1], …]}
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

REPORT = Path("var/reports/long.json")
LONGEST_S = 3600
_SLOWEST = 20


@dataclass(eq=False)  # pytest keeps plugins in sets
class Chosen:
    """A plugin of pytest: chooses, and remembers what became of what it has chosen."""

    seed: int
    of_each: int
    left_out: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    outcomes: dict[str, str] = field(default_factory=dict)  # by test; the worst of its phases

    @pytest.hookimpl(trylast=True)  # after `-m long`
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leaves out what the night has no time for."""
        chosen = chosen_of([_name(item) for item in items if not _takes_hours(item)], self.seed, self.of_each)
        others = [item for item in items if _name(item) not in chosen]
        items[:] = [item for item in items if _name(item) in chosen]
        self.left_out = len(others)
        config.hook.pytest_deselected(items=others)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and tear-down of each."""
        name = _name(report)
        self.seconds[name] += report.duration
        if report.when == "call" or report.outcome != "passed":
            before = self.outcomes.get(name)
            self.outcomes[name] = "failed" if "failed" in (before, report.outcome) else report.outcome

    def document(self, took_s: float) -> dict[str, Any]:
        """The report."""
        outcomes = list(self.outcomes.values())
        slowest = sorted(self.seconds.items(), key=lambda pair: -pair[1])[:_SLOWEST]
        return {
            "seed": self.seed,
            "passed": outcomes.count("passed"),
            "skipped": outcomes.count("skipped"),
            "failed": sorted(name for name, outcome in self.outcomes.items() if outcome == "failed"),
            "left_out": self.left_out,
            "seconds": round(took_s, 1),
            "slowest": [[name, round(seconds, 1)] for name, seconds in slowest],
        }


def chosen_of(names: Sequence[str], seed: int, of_each: int) -> set[str]:
    """Of each function's tests so many, whatever order they come in."""
    by_function = defaultdict(list)
    for name in sorted(names):
        by_function[name.partition("[")[0]].append(name)
    return {
        name
        for function, found in by_function.items()
        for name in random.Random(f"{seed} {function}").sample(found, min(of_each, len(found)))
    }


def _name(test: pytest.Item | pytest.TestReport) -> str:
    """Its file and what it is called there: Schemathesis's tests of all addresses have one node id."""
    return f"{test.nodeid.partition('::')[0]}::{test.location[2]}"


def _takes_hours(item: pytest.Item) -> bool:
    limit = item.get_closest_marker("timeout")
    return limit is not None and limit.args[0] > LONGEST_S


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.nightly.long_tests", description="Tests marked long.")
    parser.add_argument("--seed", type=int, default=0, help="which of those that are many")
    parser.add_argument("--of-each", type=int, default=20, help="how many of those")
    parser.add_argument("paths", nargs="*", help="of tests; default: all")
    options = parser.parse_args(arguments)
    chosen, began = Chosen(options.seed, options.of_each), time.monotonic()
    status = pytest.main(["-m", "long", "-p", "no:cacheprovider", "-v", *options.paths], plugins=[chosen])
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(chosen.document(time.monotonic() - began), indent=1) + "\n")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
