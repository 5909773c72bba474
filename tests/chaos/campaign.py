"""Many rounds, one after the other, and what has become of them: kept after each, so that a campaign can be resumed.

Rounds run on one cluster; on a new one after a round in which something was wrong, and where a kind needs another. Each
outcome is a line of `rounds.jsonl` in the campaign's folder. A campaign of the same seed and plan begins where that ends;
with more rounds than before it is continued, since a longer schedule begins with the shorter one.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.chaos.clients import Client
from tests.chaos.cluster import ChaosCluster
from tests.chaos.faults import OF_THREE_KEEPERS, Faults, SkippedError, schedule
from tests.chaos.report import sentence, summary
from tests.chaos.round import Outcome, Round, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROLES = (
    ("producer", "p1"),
    ("producer", "p2"),
    ("member", "g1"),
    ("member", "g2"),
    ("assigned", "a1"),
)


ROUNDS = "rounds.jsonl"
PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """What makes two runs the same campaign."""

    seed: int
    seconds: float
    kinds: tuple[str, ...]
    bug: str | None = None
    outage_s: float = 300.0

    def folder(self, kept: Path) -> Path:
        """Where its rounds and findings are kept."""
        return kept / (f"{self.seed}-{self.bug.replace(' ', '-')}" if self.bug else str(self.seed))


class Campaign:
    """Runs a plan's rounds; `kept` is the folder of all campaigns, None for one that leaves nothing behind."""

    def __init__(self, plan: Plan, say: Callable[[str], None], kept: Path | None) -> None:
        self.plan, self._say = plan, say
        self._folder = None if kept is None else plan.folder(kept)
        self.outcomes: list[Outcome] = []
        self.skipped: dict[str, str] = {}

    def run(self, rounds: int, tell: Callable[[dict[str, Any]], None], *, until_wrong: bool = False) -> None:
        """Those rounds that are not done yet. `tell` gets the summary after each."""
        self._resume(rounds)
        self._say(
            f"seed {self.plan.seed}, {rounds} rounds of {self.plan.seconds:.0f} s and more, {len(self.outcomes)} done"
        )
        done = {outcome.number for outcome in self.outcomes}
        left = [
            planned
            for planned in enumerate(schedule(self.plan.seed, rounds, self.plan.kinds), 1)
            if planned[0] not in done
        ]
        try:
            while left and not (until_wrong and any(outcome.findings for outcome in self.outcomes)):
                self._on_one_cluster(left, tell)
        except KeyboardInterrupt:
            self._say("interrupted; the same command goes on from here")

    def _on_one_cluster(self, left: list[tuple[int, tuple[str, int]]], tell: Callable[[dict[str, Any]], None]) -> None:
        three_keepers = left[0][1][0] in OF_THREE_KEEPERS
        with _running(self.plan, three_keepers=three_keepers) as (cluster, clients, tenant):
            while left and (left[0][1][0] in OF_THREE_KEEPERS) == three_keepers:
                number, (kind, seed) = left.pop(0)
                if kind in self.skipped:
                    continue
                faults = Faults(cluster, lambda text: self._say(f"  {text}"), self.plan.outage_s)
                outcome = Outcome(number, kind, seed)
                try:
                    Round(cluster, tenant, clients, faults, cluster.folder).whole(outcome, self.plan.seconds)
                except SkippedError as error:
                    self.skipped[kind] = str(error)
                    self._say(f"round {number}: {kind} is skipped: {error}")
                    return  # the clients are in the middle of it: begin anew
                self._note(outcome)
                tell(summary(self.outcomes) | {"skipped": self.skipped})
                if outcome.findings:
                    faults.end()
                    self._keep(cluster, outcome)
                    return

    def _note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._say(
            f"round {outcome.number}, {outcome.kind} x {outcome.faults}: {outcome.acknowledged} acknowledged, longest gap"
            f" {outcome.longest_gap_s:.1f} s, {outcome.seconds:.0f} s: " + (sentence(outcome) or "all is well")
        )
        if self._folder is not None:
            with (self._folder / ROUNDS).open("a") as opened:
                opened.write(json.dumps(asdict(outcome)) + "\n")

    def _resume(self, rounds: int) -> None:
        """Take over what an earlier run of this plan has done; what a run of another plan has done is put aside."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        plan, lines = self._folder / PLAN, self._folder / ROUNDS
        said = json.dumps(asdict(self.plan))
        if plan.exists() and plan.read_text() == said and lines.exists():
            found = [outcome_of(json.loads(line)) for line in lines.read_text().splitlines()]
            self.outcomes += [outcome for outcome in found if outcome.number <= rounds]
        else:
            plan.write_text(said)
            lines.unlink(missing_ok=True)

    def _keep(self, cluster: ChaosCluster, outcome: Outcome) -> None:
        if self._folder is None:
            return
        place = self._folder / f"round-{outcome.number}-{outcome.kind}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(cluster.folder, place, ignore=shutil.ignore_patterns("*.index", "*.timeindex", "filler"))
        (place / "findings.json").write_text(json.dumps(asdict(outcome.findings), indent=1))
        self._say(f"  kept: {place}")


@contextlib.contextmanager
def _running(plan: Plan, *, three_keepers: bool) -> Iterator[tuple[ChaosCluster, list[Client], Any]]:
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
