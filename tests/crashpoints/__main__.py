"""``python -m tests.crashpoints [--seeds 40] [--steps 80] [--every 1]``: stop the writer everywhere, open what it left.

Each seed is a workload of its own. After every call that changes the disk (and in the middle of every write) the disk is
opened as after a kill, as after several power cuts, and with a wrong index or checkpoint file; what was promised has to
be there, nothing else, and the log has to go on. Writes var/reports/crash.json; exit status 1 where anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from tests.crashpoints.points import ENDS, Outcome, Run

REPORT = Path("var/reports/crash.json")
_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crashpoints")
    parser.add_argument("--seeds", type=int, default=24, help="workloads")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=80, help="things done in each")
    parser.add_argument("--every", type=int, default=1, help="look at every n-th point only")
    parser.add_argument("--chances", type=int, default=2, help="random power cuts at each point")
    options = parser.parse_args()
    outcome, began = Outcome(), time.monotonic()
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        Run(seed, outcome, steps=options.steps, chances=options.chances, every=options.every).run()
        _progress(seed + 1 - options.first_seed, options.seeds, outcome, began)
    _table(outcome)
    _write(outcome, vars(options), time.monotonic() - began)
    return 1 if outcome.failures else 0


def _progress(done: int, seeds: int, outcome: Outcome, began: float) -> None:
    passed = time.monotonic() - began
    left = passed / done * (seeds - done)
    print(
        f"{done}/{seeds} workloads, {outcome.points} crash points, {sum(outcome.opened.values())} times opened, "
        f"{len(outcome.failures)} broken promises; {passed:.0f} s, about {left:.0f} s left",
        flush=True,
    )


def _table(outcome: Outcome) -> None:
    failed = {end: sum(failure.end == end for failure in outcome.failures) for end in ENDS}
    print(f"\n{'what ended the writer':24}{'opened':>10}{'recovered':>12}")
    for end in ENDS:
        print(f"{end:24}{outcome.opened[end]:>10}{outcome.opened[end] - failed[end]:>12}")
    print(f"\n{'stopped after':24}{'points':>10}")
    for call, count in outcome.by_call.most_common():
        print(f"{call:24}{count:>10}")
    for failure in outcome.failures[:_SHOWN]:
        print(
            f"\nseed {failure.seed}, point {failure.point} ({failure.step}; {failure.call}; {failure.end})\n"
            f"    {failure.problem}"
        )


def _write(outcome: Outcome, options: dict[str, object], seconds: float) -> None:
    opened = sum(outcome.opened.values())
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(
        json.dumps(
            {
                "options": options,
                "seconds": round(seconds, 1),
                "crash_points": outcome.points,
                "opened": opened,
                "recovered": opened - len(outcome.failures),
                "by_end": dict(outcome.opened),
                "by_call": dict(outcome.by_call.most_common()),
                "by_step": dict(outcome.by_step.most_common()),
                "failures": [asdict(failure) for failure in outcome.failures],
            },
            indent=2,
        )
        + "\n"
    )
    print(
        f"\n{outcome.points} crash points, {opened} times opened, {opened - len(outcome.failures)} recovered: {REPORT}"
    )


if __name__ == "__main__":
    sys.exit(main())
