"""``python -m tests.crashpoints [--seeds 24] [--every 1]``: stop the writer everywhere, open what it left.

Each seed is a workload of its own. After every call that changes the disk (and in the middle of every write) the disk is
opened as after a kill, as after several power cuts, and with a wrong index or checkpoint file; what was promised has to
be there, nothing else, and the log has to go on. Writes var/reports/crash.json; exit status 1 where anything was wrong.

    --shard 1/2          every second workload, for two processes side by side; then
    --merge              adds up what they wrote
    --seeds 1 --first-seed 8 --point 816     what a longer run has found, once more
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.crashpoints.points import Outcome, Run
from tests.crashpoints.report import merged, path_of, report_of, show, write
from tests.support.shard import WHOLE, IncompleteError, Shard, shard


def main() -> int:
    options = _parsed()
    part, merge = options.pop("shard"), options.pop("merge")
    if merge:
        try:
            report = merged()
        except IncompleteError as error:
            print(f"not merged: {error}", file=sys.stderr)
            return 2
    else:
        report = _run(options, part)
        write(report, path_of(part))
    show(report)
    return 1 if report["failures"] else 0


def _parsed() -> dict:
    parser = argparse.ArgumentParser(prog="python -m tests.crashpoints")
    parser.add_argument("--seeds", type=int, default=24, help="workloads")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=80, help="things done in each")
    parser.add_argument("--every", type=int, default=1, help="look at every n-th point only")
    parser.add_argument("--chances", type=int, default=2, help="random power cuts at each point")
    parser.add_argument("--point", type=int, action="append", default=[], help="look at this point only")
    parser.add_argument("--shard", type=shard, default=WHOLE, help="which part of how many: 1/2")
    parser.add_argument("--merge", action="store_true", help="add up the parts that were run")
    return vars(parser.parse_args())


def _run(options: dict, part: Shard) -> dict:
    outcome, began = Outcome(), time.monotonic()
    first = options["first_seed"]
    seeds = range(first, first + options["seeds"])[part[0] - 1 :: part[1]]
    for done, seed in enumerate(seeds, start=1):
        how = {name: options[name] for name in ("steps", "chances", "every")}
        Run(seed, outcome, **how, only=options["point"]).run()
        _progress(done, len(seeds), outcome, began)
    return report_of(outcome, options, time.monotonic() - began)


def _progress(done: int, seeds: int, outcome: Outcome, began: float) -> None:
    passed = time.monotonic() - began
    left = passed / done * (seeds - done)
    print(
        f"{done}/{seeds} workloads, {outcome.points} crash points, {sum(outcome.opened.values())} times opened, "
        f"{len(outcome.failures)} broken promises; {passed:.0f} s, about {left:.0f} s left",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
