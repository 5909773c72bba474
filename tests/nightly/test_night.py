"""A night runs its parts, remembers what is finished on a commit, and says what it found. With parts that take no time."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from tests.nightly import code
from tests.nightly.__main__ import USUAL_MINUTES
from tests.nightly.night import FILE, Night
from tests.nightly.parts import Part, parts

PROGRAM = """
import json, pathlib, sys, time
name, status, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open("runs", "a") as runs:
    runs.write(f"begin {name}\\n")
time.sleep(seconds)
with open("runs", "a") as runs:
    runs.write(f"end {name}\\n")
print("about to end", flush=True)
pathlib.Path("reports").mkdir(exist_ok=True)
pathlib.Path(f"reports/{name}.json").write_text(json.dumps({"broken": status}))
sys.exit(status)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "apart.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def part(name, status=0, seconds=0.0, minutes=1.0, *, alone=False):
    return Part(name, ("apart", name, str(status), str(seconds)), minutes, name, dict, alone=alone)


def night(folder, *those, commit="c1"):
    return Night(commit, those, folder / "reports", folder / "logs", lambda _: None)


def runs(folder):
    return (folder / "runs").read_text().split("\n")[:-1]


def written(folder):
    return json.loads((folder / "reports" / FILE).read_text())


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_it_passes_when_all_parts_do_and_the_report_says_what_they_say(folder):
    found = night(folder, part("a"), part("b"))
    found.run()
    assert found.has_passed
    document = written(folder)
    assert (document["commit"], document["passed"]) == ("c1", True)
    assert {name: (row["verdict"], row["figures"]) for name, row in document["parts"].items()} == {
        "a": ("passed", {"broken": 0}),
        "b": ("passed", {"broken": 0}),
    }


@pytest.mark.parametrize(("status", "verdict"), [(1, "FINDINGS"), (2, "INCOMPLETE"), (3, "BROKEN (3)")])
def test_one_part_that_does_not_pass_fails_the_night_and_stops_no_other(folder, status, verdict):
    found = night(folder, part("a", status), part("b"))
    found.run()
    assert not found.has_passed
    assert [row["verdict"] for row in written(folder)["parts"].values()] == [verdict, "passed"]
    assert verdict in found.table()


def test_a_part_that_takes_too_long_is_stopped_and_named(folder):
    found = night(folder, part("a", seconds=60, minutes=0.5 / 60))
    began = time.monotonic()
    found.run()
    assert time.monotonic() - began < 20
    assert written(folder)["parts"]["a"]["verdict"] == "OUT OF TIME"
    assert runs(folder) == ["begin a"]


def test_a_part_without_figures_is_broken_and_figures_of_an_earlier_run_are_none(folder):
    night(folder, part("another")).run()
    report = folder / "reports" / "another.json"
    os.utime(report, (0, 0))
    lost = Part("a", ("apart", "a", "1", "0"), 1.0, "another", dict)
    night(folder, lost).run()
    assert written(folder)["parts"]["a"]["verdict"].startswith("BROKEN")
    assert written(folder)["parts"]["a"]["figures"] == {}


def test_what_an_incomplete_part_has_found_is_told(folder):
    night(folder, part("a", 2)).run()
    assert written(folder)["parts"]["a"]["figures"] == {"broken": 2}


# --- what is run ------------------------------------------------------------------------------------------------------


def test_a_finished_part_is_not_run_again_on_the_same_commit_whatever_it_found(folder):
    for _ in range(2):
        found = night(folder, part("a"), part("b", 1))
        found.run()
    assert sorted(runs(folder)) == ["begin a", "begin b", "end a", "end b"]
    assert not found.has_passed


def test_it_is_on_another_or_with_other_arguments_or_when_asked_for(folder):
    night(folder, part("a")).run()
    night(folder, part("a"), commit="c2").run()
    assert len(runs(folder)) == 4
    night(folder, part("a", seconds=0.01), commit="c2").run()
    assert len(runs(folder)) == 6
    night(folder, part("a", seconds=0.01), commit="c2").run(["a"])
    assert len(runs(folder)) == 8


def test_one_that_did_not_get_to_its_end_is_run_again(folder):
    night(folder, part("a", 2)).run()
    night(folder, part("a", 2)).run()
    assert len(runs(folder)) == 4


def test_parts_run_two_at_a_time_and_real_brokers_alone(folder):
    those = [part("c", seconds=0.5, alone=True), part("a", seconds=0.5), part("b", seconds=0.5), part("d", alone=True)]
    night(folder, *those).run()
    assert set(runs(folder)[:2]) == {"begin a", "begin b"}
    assert runs(folder)[4:] == ["begin c", "end c", "begin d", "end d"]


def test_only_some_are_chosen_and_the_others_keep_what_they_have(folder):
    night(folder, part("a"), part("b")).run()
    night(folder, part("a", seconds=0.01)).run()
    assert set(written(folder)["parts"]) == {"a", "b"}


# --- the real ones ----------------------------------------------------------------------------------------------------


def test_another_commit_begins_with_other_seeds():
    assert code.number_of("c1") == code.number_of("c1") != code.number_of("c2")
    assert {p.name: p.arguments for p in parts(7, 1)} != {p.name: p.arguments for p in parts(8, 1)}


def test_a_short_night_has_less_of_everything_that_can_be_less():
    usual, short = ({p.name: p for p in parts(7, scale)} for scale in (1, 0.1))
    assert "200" in usual["simulation"].arguments
    assert "20" in short["simulation"].arguments
    assert short["kills"].arguments[1:3] == ("--rounds", "2")
    assert short["conformance"].arguments == usual["conformance"].arguments
    assert all(short[name].minutes <= usual[name].minutes for name in usual)


def test_no_night_takes_longer_than_its_bounds():
    beside = sum(p.minutes for p in parts(7, 1) if not p.alone) / 2
    alone = sum(p.minutes for p in parts(7, 1) if p.alone)
    assert USUAL_MINUTES < beside + alone < 2 * USUAL_MINUTES


# --- the state of the code --------------------------------------------------------------------------------------------


def test_a_state_is_the_commit_and_what_was_changed_since(tmp_path):
    def git(*arguments):
        about = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *about, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-qm", "one")
    clean = code.state(tmp_path)
    assert "+" not in clean
    (tmp_path / "file").write_text("2")
    changed = code.state(tmp_path)
    (tmp_path / "new").write_text("3")
    states = [clean, changed, code.state(tmp_path)]
    assert len(set(states)) == 3
    assert all(state.startswith(clean) for state in states)
    (tmp_path / "new").unlink()
    (tmp_path / "file").write_text("1")
    assert code.state(tmp_path) == clean
