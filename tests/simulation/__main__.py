"""`make simulate SEEDS=1000`: campaigns on whole simulated clusters, a seed each, on as many processes as there are cores.

    python -m tests.simulation --seeds 1000 [--first 0] [--rounds 6] [--jobs 2]
    python -m tests.simulation --seed 4711            one run, with what happened, twice: the traces must be equal
    python -m tests.simulation --calibrate 200        every planted bug, until a seed catches it or so many have not

Progress while it runs, a table at the end, figures in var/reports/simulation.json. Exit code 1 when something was found,
or when a planted bug was not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.simulation import bugs
from tests.simulation.campaign import ROUNDS, Outcome, run
from tests.simulation.faults import KINDS

_SAY_EVERY_S = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="make simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="faults in a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="only this one, in full")
    parser.add_argument("--calibrate", type=int, metavar="SEEDS", help="look for the planted bugs")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        return _one(options.seed, options.rounds)
    if options.calibrate is not None:
        return _calibrate(options)
    return _many(options)


def _one(seed: int, rounds: int) -> int:
    first, again = run(seed, rounds=rounds), run(seed, rounds=rounds)
    for when, what in first.trace[1]:
        if not what.startswith("acknowledged"):
            print(f"{when:9.3f}  {what}")
    print(f"seed {seed}: {first.violation or 'nothing found'}; {first.acknowledged} records acknowledged")
    print("a second run had " + ("the same trace" if first.trace == again.trace else "ANOTHER TRACE"))
    return int(first.violation is not None or first.trace != again.trace)


def _many(options: argparse.Namespace) -> int:
    began = said = time.monotonic()
    faults: Counter[str] = Counter()
    acknowledged = virtual_s = 0.0
    found: list[dict[str, Any]] = []
    for done, outcome in enumerate(_outcomes(options, None), 1):
        faults.update(outcome.faults)
        acknowledged += outcome.acknowledged
        virtual_s += outcome.virtual_s
        if outcome.violation is not None:
            found.append({"seed": outcome.seed, "violation": outcome.violation})
            print(f"seed {outcome.seed}: {outcome.violation}", flush=True)
        if time.monotonic() - said > _SAY_EVERY_S:
            said = time.monotonic()
            print(f"{said - began:7.1f} s  {done} of {options.seeds} seeds, {len(found)} with violations", flush=True)
    seconds = time.monotonic() - began
    for kind in KINDS:
        print(f"  {kind:<12}{faults[kind]:>8}")
    print(f"{len(found)} violations in {options.seeds} seeds; {acknowledged:.0f} records acknowledged")
    print(f"{options.seeds / seconds:.2f} seeds a second, {virtual_s / seconds:.0f} virtual seconds in one")
    _write(
        {
            "seeds": [options.first, options.first + options.seeds],
            "seconds": round(seconds, 1),
            "violations": found,
            "faults": dict(faults),
            "acknowledged": int(acknowledged),
        }
    )
    return int(bool(found))


def _calibrate(options: argparse.Namespace) -> int:
    rows = []
    for name in bugs.BUGS:
        options.seeds, began = options.calibrate, time.monotonic()
        caught = next((outcome for outcome in _outcomes(options, name) if outcome.violation is not None), None)
        row = {
            "bug": name,
            "seed": None if caught is None else caught.seed,
            "violation": None if caught is None else caught.violation,
        }
        rows.append(row)
        verdict = "NOT CAUGHT" if caught is None else f"seed {caught.seed}: {caught.violation}"
        print(f"{name:<34}{time.monotonic() - began:6.1f} s  {verdict}", flush=True)
    missed = sum(row["seed"] is None for row in rows)
    print(f"{len(rows) - missed} of {len(rows)} planted bugs were caught")
    _write({"calibration": rows, "seeds_at_most": options.calibrate})
    return int(missed > 0)


def _outcomes(options: argparse.Namespace, bug: str | None) -> Iterator[Outcome]:
    seeds = range(options.first, options.first + options.seeds)
    work = partial(bugs.run_with, bug, rounds=options.rounds)  # a worker imports no `__main__`
    if options.jobs == 1:
        yield from map(work, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        yield from pool.imap_unordered(work, seeds, chunksize=1)


def _write(figures: dict[str, Any]) -> None:
    file = Path("var/reports/simulation.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**kept, **figures}, indent=1))
    print(f"figures: {file}")


if __name__ == "__main__":
    sys.exit(main())
