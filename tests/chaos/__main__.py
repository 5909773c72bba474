"""`make chaos ROUNDS=200 [SECONDS=30] [SEED=…] [FAULTS=leader,pause]`: real brokers, a real ZooKeeper, real clients, faults.

    python -m tests.chaos --rounds 200 [--seconds 30] [--seed 7] [--faults leader,pause] [--bug "never truncate"]
    python -m tests.chaos --calibrate [--bug …] [--rounds 20]    whether planted bugs are caught, and by what
    python -m tests.chaos --failover 50       how long a partition takes nothing after its leader was killed, or stopped

Progress while it runs, a table by kinds of faults at the end, figures in var/reports/chaos.json (failover.json). Exit code
1 when anything was wrong; then logs, data and clients' reports of that round are under var/chaos/<seed>/. A seed repeats
the schedule, not the moments at which processes are hit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.chaos import failover
from tests.chaos.clients import Client
from tests.chaos.cluster import ChaosCluster
from tests.chaos.faults import KINDS, Faults, SkippedError, schedule
from tests.chaos.round import Outcome, Round

REPORTS = Path("var/reports")
KEPT = Path("var/chaos")
ROLES = (
    ("producer", "p1"),
    ("producer", "p2"),
    ("member", "g1"),
    ("member", "g2"),
    ("assigned", "a1"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=len(KINDS))
    parser.add_argument("--seconds", type=float, default=30.0, help="of load in a round, before everything is read")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--faults", default=",".join(KINDS), help="kinds, with commas between")
    parser.add_argument("--bug", help="one of tests.simulation.bugs, planted into every broker")
    parser.add_argument("--calibrate", action="store_true", help="each of them, until a round catches it")
    parser.add_argument("--failover", type=int, metavar="TRIALS")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))  # everything is stopped and unmounted then too
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # that connections break is what is tested
    if options.failover:
        figures = failover.measure(options.failover, _clock())
        _write("failover", figures)
        return 0
    kinds = tuple(options.faults.split(","))
    if unknown := sorted(set(kinds) - set(KINDS)):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if options.calibrate:
        return _calibrate(options, kinds)
    return Campaign(options.seed, options.seconds, _clock(), options.bug).run(options.rounds, kinds)


def _calibrate(options: argparse.Namespace, kinds: tuple[str, ...]) -> int:
    from tests.simulation import bugs

    rows = []
    for bug in [options.bug] if options.bug else bugs.BUGS:
        campaign = Campaign(options.seed, options.seconds, _clock(), bug)
        campaign.run(options.rounds, kinds, until_wrong=True)
        caught = next((outcome for outcome in campaign.outcomes if outcome.findings), None)
        rows.append(
            {
                "bug": bug,
                "rounds": len(campaign.outcomes),
                "kind": caught and caught.kind,
                "findings": caught and _sentence(caught),
            }
        )
        print(f"{bug}: " + (f"caught by {caught.kind}" if caught else "NOT CAUGHT"), flush=True)
        _write("chaos-calibration", {"seed": options.seed, "seconds": options.seconds, "bugs": rows})
    return int(any(row["kind"] is None for row in rows))


class Campaign:
    """Rounds on one cluster; on a new one after a round in which something was wrong."""

    def __init__(self, seed: int, seconds: float, say: Callable[[str], None], bug: str | None) -> None:
        self._seed, self._seconds, self._say, self._bug = seed, seconds, say, bug
        self.outcomes: list[Outcome] = []
        self.skipped: dict[str, str] = {}

    def run(self, rounds: int, kinds: tuple[str, ...], *, until_wrong: bool = False) -> int:
        """The exit status."""
        self._say(f"seed {self._seed}, {rounds} rounds of {self._seconds:.0f} s and more")
        left = list(enumerate(schedule(self._seed, rounds, kinds), 1))
        try:
            while left and not (until_wrong and any(outcome.findings for outcome in self.outcomes)):
                with _running("disk" in kinds, self._bug) as (cluster, clients, tenant):
                    while left and not self._went_wrong(left.pop(0), cluster, clients, tenant):
                        pass
        except KeyboardInterrupt:
            self._say("interrupted")
        return 0 if until_wrong else self._report()

    def _went_wrong(self, planned: tuple[int, tuple[str, int]], cluster: Any, clients: Any, tenant: Any) -> bool:
        number, (kind, seed) = planned
        if kind in self.skipped:
            return False
        outcome = Outcome(number, kind, seed)
        faults = Faults(cluster, lambda text: self._say(f"  {text}"))
        try:
            Round(cluster, tenant, clients, faults, cluster.folder).whole(outcome, self._seconds)
        except SkippedError as error:
            self.skipped[kind] = str(error)
            self._say(f"round {number}: {kind} is skipped: {error}")
            return True  # the clients are in the middle of it: begin anew
        self.outcomes.append(outcome)
        self._say(
            f"round {number}, {kind} x {outcome.faults}: {outcome.acknowledged} acknowledged, longest gap"
            f" {outcome.longest_gap_s:.1f} s, {outcome.seconds:.0f} s: " + (_sentence(outcome) or "all is well")
        )
        if outcome.findings:
            faults.end()
            self._keep(cluster, outcome)
        return bool(outcome.findings)

    def _keep(self, cluster: ChaosCluster, outcome: Outcome) -> None:
        bug = f"-{self._bug.replace(' ', '-')}" if self._bug else ""
        place = KEPT / f"{self._seed}{bug}" / f"round-{outcome.number}-{outcome.kind}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(cluster.folder, place, ignore=shutil.ignore_patterns("*.index", "*.timeindex", "filler"))
        findings = {"counts": outcome.findings.counts, "examples": outcome.findings.examples}
        (place / "findings.json").write_text(json.dumps(findings, indent=1))
        self._say(f"  kept: {place}")

    def _report(self) -> int:
        kinds = [kind for kind in KINDS if any(outcome.kind == kind for outcome in self.outcomes)]
        rows = {kind: _row([outcome for outcome in self.outcomes if outcome.kind == kind]) for kind in kinds}
        whole = _row(self.outcomes)
        heads = (
            "rounds",
            "faults",
            "acknowledged",
            "lost",
            "doubled",
            "reordered",
            "other",
            "renumbered",
            "longest_gap_s",
        )
        print(f"{'':<16}" + "".join(f"{head:>15}" for head in heads))
        for kind, row in [*rows.items(), ("together", whole)]:
            print(f"{kind:<16}" + "".join(f"{row[head]:>15}" for head in heads))
        for kind, why in self.skipped.items():
            print(f"{kind} was skipped: {why}")
        wrong = [outcome for outcome in self.outcomes if outcome.findings]
        print(
            f"{whole['lost']} lost, {whole['doubled']} doubled, {whole['reordered']} out of order of"
            f" {whole['acknowledged']} acknowledged; {len(wrong)} rounds with findings in {len(self.outcomes)}"
            f" rounds and {whole['faults']} faults; seed {self._seed}"
        )
        found = [{"round": o.number, "kind": o.kind, "findings": _sentence(o)} for o in wrong]
        _write(
            "chaos",
            {
                "seed": self._seed,
                "seconds": self._seconds,
                "bug": self._bug,
                "kinds": rows,
                "together": whole,
                "skipped": self.skipped,
                "wrong": found,
            },
        )
        return int(bool(wrong))


@contextlib.contextmanager
def _running(small_disk: bool, bug: str | None) -> Iterator[tuple[ChaosCluster, list[Client], Any]]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-chaos-"))
    clients: list[Client] = []
    try:
        with ChaosCluster(folder, small_disk=small_disk, bug=bug) as cluster:
            cluster.make_coordinators()
            tenant = cluster.tenant()
            clients += [Client(role, name, tenant.bootstrap, folder / f"{name}.log") for role, name in ROLES]
            try:
                yield cluster, clients, tenant
            finally:
                for client in clients:
                    client.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _row(outcomes: list[Outcome]) -> dict[str, Any]:
    def count(*kinds: str) -> int:
        return sum(outcome.findings.counts.get(kind, 0) for outcome in outcomes for kind in kinds)

    everything = sum(sum(outcome.findings.counts.values()) for outcome in outcomes)
    named = count("lost"), count("duplicate"), count("reordered")
    return {
        "rounds": len(outcomes),
        "faults": sum(outcome.faults for outcome in outcomes),
        "acknowledged": sum(outcome.acknowledged for outcome in outcomes),
        "refused": sum(outcome.refused for outcome in outcomes),
        **dict(zip(("lost", "doubled", "reordered"), named, strict=True)),
        "other": everything - sum(named),
        "renumbered": sum(outcome.findings.renumbered for outcome in outcomes),
        "longest_gap_s": round(max((outcome.longest_gap_s for outcome in outcomes), default=0.0), 1),
    }


def _sentence(outcome: Outcome) -> str:
    findings = outcome.findings
    return "; ".join(f"{count} {kind} ({findings.examples[kind][0]})" for kind, count in findings.counts.items())


def _clock() -> Callable[[str], None]:
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)


def _write(name: str, figures: dict[str, Any]) -> None:
    file = REPORTS / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(figures, indent=1))
    print(f"figures: {file}")


if __name__ == "__main__":
    sys.exit(main())
