"""`make simulate SEEDS=1000`: campaigns on whole simulated clusters, a seed each, on as many processes as there are cores.

    python -m tests.simulation --seeds 1000 [--first 0] [--rounds 6] [--jobs 2]      again after it was stopped: goes on
    python -m tests.simulation --seeds 1000 --jobs 1 --shard 1/2      every second seed, for two processes side by side
    python -m tests.simulation --merge                adds up what they have left
    python -m tests.simulation --seeds 1000 --transfers      every seed has transactions, and faults that lie in wait for them
    python -m tests.simulation --seed 4711            one run, with what happened, twice: the traces must be equal
    python -m tests.simulation --calibrate 200        every planted bug, until a seed catches it or so many have not;
                                                      with --transfers those of transactions

Progress while it runs, a table at the end, figures in var/reports/simulation.json (`figures.py`). Exit code 1 when
something was found, or when a planted bug was not.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial

from tests.simulation import bugs
from tests.simulation.bugs_of_transactions import BUGS_OF_TRANSACTIONS
from tests.simulation.campaign import ROUNDS, Outcome, prepare
from tests.simulation.faults import KINDS, OF_TRANSACTIONS
from tests.simulation.figures import DIRECTORY, WHOLE, Figures, Kept, keep, merged
from tests.support.shard import WHOLE as EVERYTHING
from tests.support.shard import IncompleteError, shard

_SAY_EVERY_S = 5.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="make simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="faults in a run")
    parser.add_argument("--transfers", action="store_true", help="transactions in every run, not in every fifth")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="only this one, in full")
    parser.add_argument("--calibrate", type=int, metavar="SEEDS", help="look for the planted bugs")
    parser.add_argument("--shard", type=shard, default=EVERYTHING, help="which part of how many: 1/2")
    parser.add_argument("--merge", action="store_true", help="add up the parts that were run")
    options = parser.parse_args(arguments)
    prepare()
    if options.seed is not None:
        return _one(options)
    if options.calibrate is not None:
        return _calibrate(options)
    return _merge() if options.merge else _many(options)


def _one(options: argparse.Namespace) -> int:
    seed = options.seed
    first, again = (bugs.run_with(None, seed, rounds=options.rounds, transfers=options.transfers) for _ in range(2))
    for when, what in first.trace[1]:
        if not what.startswith("acknowledged"):
            print(f"{when:9.3f}  {what}")
    print(f"seed {seed}: {first.violation or 'nothing found'}; {first.acknowledged} records acknowledged")
    print("a second run had " + ("the same trace" if first.trace == again.trace else "ANOTHER TRACE"))
    return int(first.violation is not None or first.trace != again.trace)


def _many(options: argparse.Namespace) -> int:
    """The seeds of a part that are left; what they show is saved as it goes, and told when all parts are complete."""
    kept = Kept(Figures(options.first, options.seeds, options.rounds, options.transfers), options.shard)
    figures, began, said = kept.figures, time.monotonic(), 0.0
    try:
        for outcome in _outcomes(options, None, kept.left):
            figures.add(outcome)
            if outcome.violation is not None:
                print(f"seed {outcome.seed}: {outcome.violation}", flush=True)
            passed = time.monotonic() - began
            if passed - said > _SAY_EVERY_S:
                said = passed
                kept.save()
                found = len(figures.violations)
                print(
                    f"{passed:7.1f} s  {figures.done} of {len(kept.seeds)} seeds, {found} with violations", flush=True
                )
    finally:
        kept.save()
    return _merge() if options.shard[1] == 1 else int(bool(figures.violations))


def _merge() -> int:
    try:
        whole = merged()
    except IncompleteError as error:
        print(f"not merged: {error}", file=sys.stderr)
        return 2
    for kind in (*KINDS, *(OF_TRANSACTIONS if whole.transfers else ())):
        print(f"  {kind:<12}{whole.faults.get(kind, 0):>8}")
    print(f"{len(whole.violations)} violations in {whole.seeds} seeds; {whole.acknowledged} records acknowledged")
    rate, virtual = whole.seeds / whole.seconds, whole.virtual_s / whole.seconds
    print(
        f"{rate:.2f} seeds in a second of one core, {virtual:.0f} virtual seconds in one; figures: {DIRECTORY / WHOLE}"
    )
    return int(bool(whole.violations))


def _calibrate(options: argparse.Namespace) -> int:
    rows = []
    for name in BUGS_OF_TRANSACTIONS if options.transfers else bugs.BUGS:
        began = time.monotonic()
        seeds = range(options.first, options.first + options.calibrate)
        caught = next((outcome for outcome in _outcomes(options, name, seeds) if outcome.violation is not None), None)
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
    keep({"calibration": rows, "seeds_at_most": options.calibrate})
    return int(missed > 0)


def _outcomes(options: argparse.Namespace, bug: str | None, seeds: range) -> Iterator[Outcome]:
    """In order, however many processes there are."""
    work = partial(
        bugs.run_with, bug, rounds=options.rounds, transfers=options.transfers
    )  # a worker imports no `__main__`
    if options.jobs == 1:
        yield from map(work, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(options.jobs, initializer=prepare) as pool:
        yield from pool.imap(work, seeds)


if __name__ == "__main__":
    sys.exit(main())
