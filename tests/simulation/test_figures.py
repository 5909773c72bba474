"""A run over many seeds that was stopped goes on where it was, and its parts are added up when all are complete."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.campaign import Outcome
from tests.simulation.figures import Figures, Kept, keep, merged
from tests.support.shard import IncompleteError


def outcome(seed, violation=None):
    return Outcome(seed, violation, 10, {"kill": 1, "pause": 2}, 40.0, 0.5, (0, ()))


def asked(seeds=5, rounds=6):
    return Figures(100, seeds, rounds)


def ran(part, count):
    for seed in part.left[:count]:
        part.figures.add(outcome(seed, "lost" if seed == 103 else None))
    part.save()


def test_a_stopped_run_goes_on_with_the_seed_after_the_last_one_saved(tmp_path):
    ran(Kept(asked(), (1, 1), tmp_path), 2)
    again = Kept(asked(), (1, 1), tmp_path)
    assert list(again.left) == [102, 103, 104]
    assert again.figures.faults == {"kill": 2, "pause": 4}


@pytest.mark.parametrize(
    "other", [Figures(100, 6, 6), Figures(100, 5, 7), Figures(99, 5, 6), Figures(100, 5, 6, transfers=True)]
)
def test_a_run_of_something_else_begins_anew(other, tmp_path):
    ran(Kept(asked(), (1, 1), tmp_path), 2)
    assert len(Kept(other, (1, 1), tmp_path).left) == other.seeds


def test_what_was_kept_before_every_seed_could_have_transactions_goes_on(tmp_path):
    ran(Kept(asked(), (1, 1), tmp_path), 2)
    path = tmp_path / "simulation.1-of-1.json"
    kept = json.loads(path.read_text())
    del kept["transfers"]
    path.write_text(json.dumps(kept))
    assert list(Kept(asked(), (1, 1), tmp_path).left) == [102, 103, 104]


def test_a_run_that_was_complete_begins_anew(tmp_path):
    ran(Kept(asked(), (1, 2), tmp_path), 3)
    assert list(Kept(asked(), (1, 2), tmp_path).left) == [100, 102, 104]


def test_parts_share_the_seeds_and_are_added_up(tmp_path):
    keep({"calibration": []}, tmp_path)
    ran(Kept(asked(), (1, 2), tmp_path), 3)
    ran(Kept(asked(), (2, 2), tmp_path), 2)
    whole = merged(tmp_path)
    assert (whole.done, whole.acknowledged, whole.seconds) == (5, 50, 2.5)
    assert whole.faults == {"kill": 5, "pause": 10}
    assert whole.violations == [{"seed": 103, "violation": "lost"}]
    assert [path.name for path in tmp_path.iterdir()] == ["simulation.json"]
    written = json.loads((tmp_path / "simulation.json").read_text())
    assert (written["seeds"], written["calibration"]) == (5, [])


def test_what_is_not_complete_is_not_added_up(tmp_path):
    with pytest.raises(IncompleteError, match="no parts"):
        merged(tmp_path)
    ran(Kept(asked(), (1, 2), tmp_path), 3)
    with pytest.raises(IncompleteError, match="1-of-2"):
        merged(tmp_path)
    ran(Kept(asked(), (2, 2), tmp_path), 1)
    with pytest.raises(IncompleteError, match="4 of 5 seeds"):
        merged(tmp_path)


def test_parts_of_different_runs_are_not_added_up(tmp_path):
    ran(Kept(asked(), (1, 2), tmp_path), 3)
    ran(Kept(asked(rounds=7), (2, 2), tmp_path), 2)
    with pytest.raises(IncompleteError, match="different"):
        merged(tmp_path)


@pytest.mark.parametrize("asked_for", [[], pytest.param(["--transfers"], marks=pytest.mark.long)])
def test_processes_side_by_side_run_all_seeds(asked_for, tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.simulation", "--seeds", "3", "--rounds", "1", "--jobs", "2", *asked_for]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / "var/reports/simulation.json").read_text())
    assert (written["seeds"], written["transfers"]) == (3, bool(asked_for))
