"""What has become of a campaign's rounds, kept on disk after each: a campaign can be stopped, resumed, and shared.

Each outcome is a line of `rounds.jsonl` in the campaign's folder. Processes that run parts of one campaign side by side
write the same file, under a lock, so each of them can say at any time what all of them have found. Nothing is merged at
the end, and a campaign may go on in another number of parts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tests.chaos.round import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

ROUNDS = "rounds.jsonl"
PLAN = "plan.json"
LOCK = "lock"


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """What makes two runs the same campaign."""

    seed: int
    seconds: float
    kinds: tuple[str, ...]
    bug: str | None = None
    outage_s: float = 300.0

    def folder(self, kept: Path) -> Path:
        """Where its rounds and findings are kept."""
        return kept / (f"{self.seed}-{self.bug.replace(' ', '-')}" if self.bug else str(self.seed))


class Record:
    """The outcomes of a plan's rounds, by whichever process they were found."""

    def __init__(self, plan: CampaignPlan, folder: Path) -> None:
        """Take over what was done of this plan; what was done of another is put aside."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        said = json.dumps(asdict(plan))
        with self._locked():
            if not (self._plan.exists() and self._plan.read_text() == said):
                self._plan.write_text(said)
                self._rounds.unlink(missing_ok=True)

    def outcomes(self) -> list[Outcome]:
        """Of all rounds that are done, in the order of their numbers."""
        with self._locked():
            return self._read()

    def add(self, outcome: Outcome, tell: Callable[[Sequence[Outcome]], None]) -> None:
        """One more. `tell` gets all there are, and nobody else adds any meanwhile."""
        with self._locked():
            with self._rounds.open("a") as opened:
                opened.write(json.dumps(asdict(outcome)) + "\n")
            tell(self._read())

    def _read(self) -> list[Outcome]:
        lines = self._rounds.read_text().splitlines() if self._rounds.exists() else []
        return sorted((outcome_of(json.loads(line)) for line in lines), key=lambda outcome: outcome.number)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._folder / LOCK).open("w") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            yield

    @property
    def _rounds(self) -> Path:
        return self._folder / ROUNDS

    @property
    def _plan(self) -> Path:
        return self._folder / PLAN
