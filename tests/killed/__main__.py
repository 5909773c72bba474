"""`make killed`: the stream from `__usage` to bills, with everything killed under it, compared to the byte and to the cent.

    python -m tests.killed [--rounds 30] [--first 1] [--seed 1] [--only driver,leader] [--databases sqlite] [--bug "counts again"]

Three brokers (factor 3), tenants that produce and consume, the job `usage` on SQLite and on PostgreSQL, in one JVM or on a Spark
cluster of a master and two workers. In each round SIGKILL hits two of `plan.KINDS`: the driver at an exact point of a batch or at
any moment, an executor, a worker, a broker, the leader of a partition of `__usage`. What is killed is started again, and at the
end of the round everything is compared (`comparing`).

Progress on standard error, a table at the end, figures in var/reports/killed.json after every round. Exit status 1 where anything
differs, 2 where there was no time for all rounds; logs and data of what differs stay in var/killed. A seed repeats the plan, not
the moments.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.killed.campaign import Campaign, Outcome
from tests.killed.plan import BUGS, DATABASES, KINDS, POSTGRESQL, Round, planned
from tests.support import postgresql

REPORT = Path("var/reports/killed.json")
KEPT = Path("var/killed")
MINUTES_A_ROUND = 4.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    options = _options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # everything is stopped then too
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # that connections break is what is tested
    say = _clock()
    plan = planned(options.rounds, options.seed, options.only, options.databases)[options.first - 1 :]
    folder = KEPT.resolve() / f"{options.seed}-{os.getpid()}"
    folder.mkdir(parents=True)
    outcomes: list[Outcome] = []
    until = time.monotonic() + 60 * (options.minutes or MINUTES_A_ROUND * options.rounds)
    try:
        with Campaign(folder, options.databases, options.seed, say, options.bug) as campaign:
            for each in plan:
                if time.monotonic() > until:
                    break
                say(f"round {each.number} of {options.rounds}: {_words(each)}")
                outcomes.append(campaign.run(each))
                _say_outcome(say, outcomes[-1])
                _keep(options, outcomes)
    except KeyboardInterrupt:
        say("stopped")
    is_wrong = any(outcome.differences for outcome in outcomes)
    if is_wrong:
        say(f"logs and data: {folder}")
    else:
        shutil.rmtree(folder)
    print(table(outcomes))
    print(f"figures: {REPORT}")
    return 1 if is_wrong else 2 if len(outcomes) < len(plan) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make killed ARGS=", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--first", type=int, default=1, help="the round to begin with, of the same plan")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=_some_of(KINDS), default=KINDS, help=f"kinds of kills: {', '.join(KINDS)}")
    parser.add_argument("--databases", type=_some_of(DATABASES), default=DATABASES, help="sqlite or postgresql alone")
    parser.add_argument("--bug", choices=BUGS, default="", help="planted into the job: something has to differ then")
    parser.add_argument("--minutes", type=float, help="after so many no round begins; usually 4 for each round")
    options = parser.parse_args(arguments)
    if POSTGRESQL in options.databases and not postgresql.is_installed():
        parser.error("PostgreSQL is not installed; without it: --databases sqlite")
    return options


def _some_of(names: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    def chosen(text: str) -> tuple[str, ...]:
        words = tuple(text.split(","))
        if unknown := sorted(set(words) - set(names)):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
        return words

    return chosen


def _clock() -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)


def _words(each: Round) -> str:
    where = "Spark cluster" if each.on_a_cluster else "one JVM"
    return f"{each.database}, {where}: {', '.join(fault.kind for fault in each.faults)}"


def _say_outcome(say: Callable[[str], None], outcome: Outcome) -> None:
    said = "equal" if not outcome.differences else "DIFFERENT"
    say(f"round {outcome.round.number}: {said} after {outcome.seconds:.0f} s, {outcome.figures}")
    for difference in outcome.differences:
        say(f"  {difference}")


def _keep(options: argparse.Namespace, outcomes: Sequence[Outcome]) -> None:
    """Whole, whenever it is read."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    new = REPORT.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(report(outcomes, vars(options)), indent=1) + "\n")
    new.replace(REPORT)


def report(outcomes: Sequence[Outcome], options: dict[str, Any]) -> dict[str, Any]:
    """All that there is to say."""
    return {
        "options": options,
        "together": {
            "rounds": len(outcomes),
            "kills": sum(len(outcome.kills) for outcome in outcomes),
            "records": max((outcome.figures.get("records", 0) for outcome in outcomes), default=0),
            "different": sum(bool(outcome.differences) for outcome in outcomes),
        },
        "kinds": _kinds(outcomes),
        "rounds": [outcome.document() for outcome in outcomes],
    }


def _kinds(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """By kind and database, how often it was killed so."""
    count = Counter(
        (fault.kind, outcome.round.database)
        for outcome in outcomes
        for fault, _ in zip(outcome.round.faults, outcome.kills, strict=False)
    )
    return {kind: {database: count[kind, database] for database in DATABASES} for kind in KINDS}


def table(outcomes: Sequence[Outcome]) -> str:
    """For the terminal."""
    lines = [
        f"{'':>3} {'database':<11}{'spark':<9}{'s':>6}{'records':>10}{'keys':>7}{'MB':>8}  {'compared':<10} killed"
    ]
    for outcome in outcomes:
        each, figures = outcome.round, outcome.figures
        lines.append(
            f"{each.number:>3} {each.database:<11}{'cluster' if each.on_a_cluster else 'one JVM':<9}{outcome.seconds:>6.0f}"
            f"{figures.get('records', 0):>10,}{figures.get('keys', 0):>7,}{figures.get('produced_bytes', 0) / 1e6:>8.1f}"
            f"  {'DIFFERENT' if outcome.differences else 'equal':<10} {'; '.join(outcome.kills)}"
        )
    lines += ["", f"{'kills':<24}{DATABASES[0]:>11}{DATABASES[1]:>12}"]
    lines += [f"{kind:<24}" + "".join(f"{n:>11}" for n in found.values()) for kind, found in _kinds(outcomes).items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
