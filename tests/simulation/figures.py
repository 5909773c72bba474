"""What a run over many seeds has shown so far, kept in a file while it goes on: who is stopped goes on where it was.

A part of a run (`--shard 1/2`) keeps `simulation.1-of-2.json`, a whole one is a part 1 of 1. When all parts are complete
they are added up in `simulation.json`, beside what calibration has left there, and removed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.shard import IncompleteError, all_parts

if TYPE_CHECKING:
    from tests.simulation.campaign import Outcome

DIRECTORY = Path("var/reports")
WHOLE = "simulation.json"


@dataclass
class Figures:
    """Of the seeds first, first + 1, … of which a part is run in order. `seconds`: of processes, not of the clock."""

    first: int
    seeds: int
    rounds: int
    transfers: bool = False
    done: int = 0
    seconds: float = 0.0
    virtual_s: float = 0.0
    acknowledged: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    violations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def what(self) -> tuple[int, int, int, bool]:
        """What was asked for."""
        return self.first, self.seeds, self.rounds, self.transfers

    def add(self, outcome: Outcome) -> None:
        """One seed more."""
        self.done += 1
        self.seconds += outcome.cpu_s
        self.virtual_s += outcome.virtual_s
        self.acknowledged += outcome.acknowledged
        self.faults = dict(Counter(self.faults) + Counter(outcome.faults))
        if outcome.violation is not None:
            self.violations.append({"seed": outcome.seed, "violation": outcome.violation})


class Kept:
    """The figures of one part, and the file they are in."""

    def __init__(self, what: Figures, shard: tuple[int, int], directory: Path = DIRECTORY) -> None:
        """Those of a run that asked for the same and was not finished; else `what`, in which nothing is done."""
        number, count = shard
        self.seeds = range(what.first, what.first + what.seeds)[number - 1 :: count]
        self._path = directory / f"simulation.{number}-of-{count}.json"
        before = _read(self._path) if self._path.exists() else what
        goes_on = before.what == what.what and before.done < len(self.seeds)
        self.figures = before if goes_on else what

    @property
    def left(self) -> range:
        """The seeds to be run."""
        return self.seeds[self.figures.done :]

    def save(self) -> None:
        """All of it or what was there before, whenever the process is killed."""
        _write(self._path, asdict(self.figures))


def merged(directory: Path = DIRECTORY) -> Figures:
    """Of all parts there are, which are removed: what they say is in simulation.json. Raises IncompleteError."""
    found = all_parts(directory, "simulation")
    whole = added_up([_read(path) for path in found])
    keep(asdict(whole), directory)
    for path in found:
        path.unlink()
    return whole


def added_up(parts: Sequence[Figures]) -> Figures:
    """One of those of several processes. Raises IncompleteError where one is not finished, or ran something else."""
    whole = Figures(*parts[0].what)
    for part in parts:
        if part.what != whole.what:
            raise IncompleteError("the parts were run with different options")
        for name in ("done", "seconds", "virtual_s", "acknowledged"):
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
        whole.faults = dict(Counter(whole.faults) + Counter(part.faults))
        whole.violations += part.violations
    if whole.done != whole.seeds:
        raise IncompleteError(f"{whole.done} of {whole.seeds} seeds are done")
    return whole


def keep(more: dict[str, Any], directory: Path = DIRECTORY) -> None:
    """Something else that is told in simulation.json."""
    path = directory / WHOLE
    _write(path, {**(json.loads(path.read_text()) if path.exists() else {}), **more})


def _read(path: Path) -> Figures:
    kept = json.loads(path.read_text())
    kept.setdefault("transfers", False)  # it may be older than the option
    return Figures(**{each.name: kept[each.name] for each in fields(Figures)})


def _write(path: Path, figures: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(figures, indent=1) + "\n")
    beside.replace(path)
