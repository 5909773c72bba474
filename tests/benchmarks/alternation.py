"""``python -m tests.benchmarks.alternation CHECKOUT [--rounds 6]``: what has a change cost? This code beside another checkout's.

    git worktree add ../before v1 && python -m tests.benchmarks.alternation ../before

Brokers of both are alive all the time, and each figure is taken of one and at once of the other, in turns of who is first: so
what the machine does slowly is in both. First one broker of each, then three of each with acks=all.

    ratio       this code's figure over the other's, the median of the rounds; best and worst round behind it

Figures go to `var/reports/alternation.json`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.alternation_side import REPLICATED, SINGLE
from tests.benchmarks.report import Say, keep, progress

REPORT = Path("var/reports/alternation.json")
SIDE = Path(__file__).with_name("alternation_side.py")
HERE, THERE = "this", "other"

Values = dict[str, dict[str, list[float]]]
"""By figure and side, a value of each round."""


class Side:
    """Brokers of one checkout, in a process that works there."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def figures(self, what: str) -> dict[str, float]:
        """Measure; what came of it, by name."""
        return self._asked({"measure": what})

    def ready(self) -> None:
        """Wait until its brokers are up."""
        self._asked({})

    def _asked(self, request: dict[str, str]) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        raise RuntimeError("a side has ended: see above")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.alternation", description="Two checkouts.")
    parser.add_argument("checkout", type=Path, help="of the code to compare with")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args(arguments)
    checkouts = {HERE: Path.cwd(), THERE: options.checkout}
    say = progress()
    values: Values = {}
    for brokers, measures in ((1, SINGLE), (3, REPLICATED)):
        with ExitStack() as stack:
            sides = {name: stack.enter_context(_side(path, brokers)) for name, path in checkouts.items()}
            for name, side in sides.items():
                side.ready()
                say(f"{name}: {brokers} up")
            for number in range(options.rounds):
                _round(sides, measures, number, values, say)
    rows = {figure: _row(sides) for figure, sides in values.items()}
    print(table(rows))
    keep(REPORT, {"commits": {name: _commit(path) for name, path in checkouts.items()}, "rows": rows})
    return 0


def _round(sides: dict[str, Side], measures: Sequence[str], number: int, values: Values, say: Say) -> None:
    for what in measures:
        order = (HERE, THERE) if number % 2 == 0 else (THERE, HERE)
        for name in order:
            for figure, value in sides[name].figures(what).items():
                values.setdefault(figure, {}).setdefault(name, []).append(value)
        say(f"round {number + 1}, {what}")


def _row(values: dict[str, list[float]]) -> dict[str, Any]:
    ratios = [here / there for here, there in zip(values[HERE], values[THERE], strict=True)]
    return {
        **{name: statistics.median(found) for name, found in values.items()},
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
        "rounds": values,
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """For the terminal."""
    lines = [f"{'':<50}{HERE:>12}{THERE:>12}{'ratio':>8}"]
    for figure, row in rows.items():
        lowest, highest = row["spread"]
        lines.append(
            f"{figure:<50}{row[HERE]:>12.4g}{row[THERE]:>12.4g}{row['ratio']:>8.3f}  ({lowest:.2f} to {highest:.2f})"
        )
    return "\n".join(lines)


@contextmanager
def _side(checkout: Path, brokers: int) -> Iterator[Side]:
    command = [sys.executable, "-c", SIDE.read_text(), str(brokers)]  # by its text: the other checkout may not have it
    with subprocess.Popen(
        command, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            yield Side(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # from that it knows
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


def _commit(checkout: Path) -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=checkout, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
