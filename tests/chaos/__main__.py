"""`make chaos ROUNDS=200 [SECONDS=30] [SEED=…] [FAULTS=leader,pause]`: real brokers, a real ZooKeeper, real clients, faults.

    python -m tests.chaos --rounds 200 [--seconds 30] [--seed 7] [--faults leader,pause] [--bug "never truncate"]
    python -m tests.chaos --rounds 200 --seed 7 --background     returns at once; the log is var/reports/chaos.log
    python -m tests.chaos --rounds 200 --seed 7 --shard 1/2      every second pair of rounds, beside another with 2/2
    python -m tests.chaos --calibrate [--bug …] [--rounds 20]    whether planted bugs are caught, and by what
    python -m tests.chaos --failover 50       how long a partition takes nothing after its leader was killed, or stopped
    python -m tests.chaos --copy 1000000 --rounds 20     a topic is copied by transactions: each record once (`copying.py`)
    python -m tests.chaos --copy 4000 --rounds 2 --plant "idle copiers"     which has to be found: exit code 1
    python -m tests.chaos --members 50       clients of three kinds in one group, killed (`members`)

Progress while it runs, a table by kinds of faults at the end, figures in var/reports/chaos.json, written
after every round; of parts side by side it has the rounds of all. The same seed and plan again, in as many parts as you
like: what was done before is not done again. Exit code 1 when anything was
wrong; then logs, data and clients' reports of that round are under var/chaos/<seed>/. A seed repeats the schedule, not the
moments at which processes are hit.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.chaos import copying, failover
from tests.chaos.calibration import AIMED, Caught, calibrate
from tests.chaos.campaign import Campaign
from tests.chaos.faults import KINDS
from tests.chaos.members import rounds
from tests.chaos.record import CampaignPlan
from tests.chaos.report import sentence, summary, table
from tests.support.shard import WHOLE, Shard, shard, suffix

REPORTS = Path("var/reports")
KEPT = Path("var/chaos")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    options, plan = _parse(arguments)
    if options.background:
        return _leave_running(plan.seed, options.shard, list(sys.argv[1:] if arguments is None else arguments))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # everything is stopped and unmounted then too
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # that connections break is what is tested
    say = _clock()
    if options.failover:
        figures = failover.measure(options.failover, say)
        print(failover.table(figures))
        _write("failover", figures)
        return 0
    if options.copy:
        figures = copying.run(options.copy, options.rounds, plan.seed, say, options.plant)
        print(copying.table(figures))
        if options.plant is None:
            _write("exactly-once", {"seed": plan.seed} | figures)
        return int(bool(figures["wrong"]))
    if options.members:
        figures = rounds.run(options.members, plan.seed, say)
        print(rounds.table(figures))
        _write("members", {"seed": plan.seed} | figures)
        return int(bool(figures["wrong"]))
    if options.calibrate:
        return _calibrate(options, plan, say)
    campaign = Campaign(plan, say, plan.folder(KEPT), options.shard)
    about = {"seed": plan.seed, "seconds": plan.seconds, "bug": plan.bug}
    campaign.run(options.rounds, lambda figures: _write("chaos", about | figures))
    outcomes = campaign.outcomes(options.rounds)
    print(table(summary(outcomes)))
    for kind, why in campaign.skipped.items():
        print(f"{kind} was skipped: {why}")
    print(f"seed {plan.seed}; figures: {REPORTS / 'chaos.json'}")
    return int(any(outcome.findings for outcome in outcomes))


def _parse(arguments: Sequence[str] | None) -> tuple[argparse.Namespace, CampaignPlan]:
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=len(KINDS))
    parser.add_argument("--seconds", type=float, default=30.0, help="of load in a round, before everything is read")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--faults", help="kinds, with commas between; all, where none are named")
    parser.add_argument(
        "--outage", type=float, default=300.0, metavar="S", help="how long ZooKeeper is away in `outage`"
    )
    parser.add_argument("--bug", help="one of tests.simulation.bugs, planted into every broker")
    parser.add_argument("--shard", type=shard, default=WHOLE, help="which part of how many: 1/2, beside 2/2")
    parser.add_argument("--background", action="store_true", help="go on without this terminal")
    parser.add_argument("--calibrate", action="store_true", help="each of them, until a round aimed at it catches it")
    parser.add_argument("--failover", type=int, metavar="TRIALS")
    parser.add_argument(
        "--copy", type=int, metavar="RECORDS", help="by transactions, while brokers and copiers are killed"
    )
    parser.add_argument("--plant", choices=copying.PLANTS, help="with --copy: something that it has to find")
    parser.add_argument("--members", type=int, metavar="ROUNDS", help="of one group, by three kinds of clients")
    options = parser.parse_args(arguments)
    kinds = tuple(options.faults.split(",")) if options.faults else KINDS
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    return options, CampaignPlan(options.seed, options.seconds, kinds, options.bug, options.outage)


def _leave_running(seed: int, part: Shard, arguments: list[str]) -> int:
    """The same once more, as a process that outlives this one."""
    again = [argument for argument in arguments if argument != "--background"]
    if "--seed" not in again:
        again += ["--seed", str(seed)]
    log = REPORTS / f"chaos{suffix(part)}.log"
    REPORTS.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as opened:
        command = [sys.executable, "-m", "tests.chaos", *again]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=opened, stderr=opened, start_new_session=True
        )
    print(f"process {process.pid} (SIGTERM ends it), log {log}; to go on after an end: --seed {seed} and the same plan")
    return 0


def _calibrate(options: argparse.Namespace, plan: CampaignPlan, say: Callable[[str], None]) -> int:
    def hunt(bug: str, kinds: tuple[str, ...]) -> Caught:
        with tempfile.TemporaryDirectory(prefix="sluice-chaos-") as folder:
            campaign = Campaign(replace(plan, kinds=kinds, bug=bug), say, Path(folder), keeps_findings=False)
            campaign.run(options.rounds, lambda _: None, until_wrong=True)
            outcomes = campaign.outcomes(options.rounds)
        caught = next((outcome for outcome in outcomes if outcome.findings), None)
        return len(outcomes), caught and caught.kind, sentence(caught) if caught else ""

    bugs = [options.bug] if options.bug else list(AIMED)
    rows = calibrate(bugs, hunt, plan.kinds if options.faults else None)
    _write("chaos-calibration", {"seed": plan.seed, "seconds": plan.seconds, "bugs": rows})
    return int(any(row["kind"] is None for row in rows))


def _clock() -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)


def _write(name: str, figures: dict[str, Any]) -> None:
    file = REPORTS / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(figures, indent=1))
    new.replace(file)  # whole, whenever it is read and whatever ends us


if __name__ == "__main__":
    sys.exit(main())
