"""Many rounds, one after the other, on one cluster: a new one after a round in which something was wrong, and where a
kind needs another. What has become of each is in the campaign's record.

A campaign of the same seed and plan begins where the record ends; with more rounds than before it is continued, since a
longer schedule begins with the shorter one. Parts of a campaign run side by side: each takes its share of the schedule.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kazoo.handlers.threading import KazooTimeoutError

from tests.chaos.clients import Client
from tests.chaos.cluster import ChaosCluster
from tests.chaos.faults import OF_THREE_KEEPERS, Faults, SkippedError, schedule
from tests.chaos.record import CampaignPlan, Record
from tests.chaos.report import sentence, summary
from tests.chaos.round import Outcome, Round
from tests.support.shard import WHOLE, Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROLES = (
    ("producer", "p1"),
    ("producer", "p2"),
    ("member", "g1"),
    ("member", "g2"),
    ("assigned", "a1"),
)
_ATTEMPTS = 5
"""To bring a cluster up, on a machine under load; a campaign of hours does not end with one that did not."""

Planned = tuple[int, tuple[str, int]]
"""A round's number, its kind and its seed."""


class Campaign:
    """Runs a plan's rounds, or its part of them, and keeps what they show in `folder`."""

    def __init__(
        self,
        plan: CampaignPlan,
        say: Callable[[str], None],
        folder: Path,
        part: Shard = WHOLE,
        *,
        keeps_findings: bool = True,
    ) -> None:
        self._plan, self._say, self._folder, self._part = plan, say, folder, part
        self._keeps_findings = keeps_findings
        self._record = Record(plan, folder)
        self.skipped: dict[str, str] = {}

    def run(self, rounds: int, tell: Callable[[dict[str, Any]], None], *, until_wrong: bool = False) -> None:
        """Those rounds of our part that are not done yet. `tell` gets the summary of all parts after each."""
        done = {outcome.number for outcome in self.outcomes(rounds)}
        planned = enumerate(schedule(self._plan.seed, rounds, self._plan.kinds), 1)
        left = [each for each in _share(list(planned), self._part) if each[0] not in done]
        self._say(
            f"seed {self._plan.seed}, {rounds} rounds of {self._plan.seconds:.0f} s and more: {len(done)} done,"
            f" {len(left)} to do here"
        )
        attempts = _ATTEMPTS
        try:
            while left and not (until_wrong and any(outcome.findings for outcome in self.outcomes(rounds))):
                try:
                    self._on_one_cluster(left, tell)
                    attempts = _ATTEMPTS
                except (AssertionError, KazooTimeoutError) as error:
                    attempts -= 1
                    self._say(f"no cluster: {error}")
                    if not attempts:
                        raise
        except KeyboardInterrupt:
            self._say("interrupted; the same command goes on from here")

    def outcomes(self, rounds: int) -> list[Outcome]:
        """What is known of so many rounds, whoever has run them."""
        return [outcome for outcome in self._record.outcomes() if outcome.number <= rounds]

    def _on_one_cluster(self, left: list[Planned], tell: Callable[[dict[str, Any]], None]) -> None:
        three_keepers = left[0][1][0] in OF_THREE_KEEPERS
        began = time.monotonic()
        with _running(self._plan, three_keepers=three_keepers) as (cluster, clients, tenant):
            self._say(f"a cluster is up after {time.monotonic() - began:.0f} s")
            while left and (left[0][1][0] in OF_THREE_KEEPERS) == three_keepers:
                number, (kind, seed) = left.pop(0)
                if kind in self.skipped:
                    continue
                faults = Faults(cluster, lambda text: self._say(f"  {text}"), self._plan.outage_s)
                outcome = Outcome(number, kind, seed)
                try:
                    Round(cluster, tenant, clients, faults, cluster.folder).whole(outcome, self._plan.seconds)
                except SkippedError as error:
                    self.skipped[kind] = str(error)
                    self._say(f"round {number}: {kind} is skipped: {error}")
                    return  # the clients are in the middle of it: begin anew
                self._note(outcome, tell)
                if outcome.findings:
                    faults.end()
                    if self._keeps_findings:
                        self._keep(cluster, outcome)
                    return

    def _note(self, outcome: Outcome, tell: Callable[[dict[str, Any]], None]) -> None:
        took = ", ".join(f"{step} {seconds:.1f}" for step, seconds in outcome.steps.items())
        self._say(
            f"round {outcome.number}, {outcome.kind} x {outcome.faults}: {outcome.acknowledged} acknowledged, longest gap"
            f" {outcome.longest_gap_s:.1f} s, {outcome.seconds:.0f} s ({took}): " + (sentence(outcome) or "all is well")
        )
        self._record.add(outcome, lambda outcomes: tell(summary(outcomes) | {"skipped": self.skipped}))

    def _keep(self, cluster: ChaosCluster, outcome: Outcome) -> None:
        place = self._folder / f"round-{outcome.number}-{outcome.kind}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(cluster.folder, place, ignore=shutil.ignore_patterns("*.index", "*.timeindex", "filler"))
        (place / "findings.json").write_text(json.dumps(asdict(outcome.findings), indent=1))
        self._say(f"  kept: {place}")


def _share(planned: Sequence[Planned], part: Shard) -> list[Planned]:
    """A part's rounds: pairs in turn, as the two kinds that need three ZooKeepers come one after the other."""
    number, count = part
    return [each for place, each in enumerate(planned) if place // 2 % count == number - 1]


@contextlib.contextmanager
def _running(plan: CampaignPlan, *, three_keepers: bool) -> Iterator[tuple[ChaosCluster, list[Client], Any]]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-chaos-"))
    clients: list[Client] = []
    try:
        with ChaosCluster(
            folder, small_disk="disk" in plan.kinds, bug=plan.bug, three_keepers=three_keepers
        ) as cluster:
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
