"""Which of the long tests a night runs, and what it says of them. With tests that take no time."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from controlplane.env import ROOT
from tests.nightly.long_tests import REPORT, chosen_of

TESTS = """
import pytest

pytestmark = pytest.mark.long

@pytest.mark.parametrize("number", range(50))
def test_many(number):
    pass

def test_one():
    pass

@pytest.mark.timeout(4000)
def test_that_takes_hours():
    pass

@pytest.mark.skip(reason="not here")
def test_of_another_system():
    pass
"""
ADDRESSES = """
import pytest

@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_address(number):
    pass
"""
OF_ONE_NAME = """
def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("test_address"):
            item._nodeid = item.nodeid.partition("[")[0]  # as Schemathesis does it
"""
BROKEN = """
@pytest.fixture
def broken():
    yield
    assert False

def test_that_does_not_tidy_up(broken):
    pass
"""


@pytest.fixture
def run(tmp_path):
    def run_(text, *words):
        (tmp_path / "test_some.py").write_text(text)
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long: of tests\n")
        (tmp_path / "below").mkdir()
        (tmp_path / "below" / "test_other.py").write_text(ADDRESSES)
        (tmp_path / "below" / "conftest.py").write_text(OF_ONE_NAME)
        command = [sys.executable, "-m", "tests.nightly.long_tests", *words, "test_some.py", "below"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, json.loads((tmp_path / REPORT).read_text())

    return run_


def test_of_a_test_that_is_many_some_are_run_and_what_takes_hours_is_left_to_releases(run):
    status, report = run(TESTS, "--of-each", "3")
    assert (status, report["passed"], report["skipped"], report["failed"]) == (0, 3 + 1 + 3, 1, [])
    assert report["left_out"] == 47 + 1 + 17
    assert "test_some.py::test_one" in [name for name, _ in report["slowest"]]


def test_one_that_fails_when_it_is_over_has_failed(run):
    status, report = run(TESTS + BROKEN, "--of-each", "1")
    assert (status, report["failed"]) == (1, ["test_some.py::test_that_does_not_tidy_up"])


def test_what_cannot_be_collected_is_no_finding(run):
    assert run("import nothing_of_this_name")[0] == 2


def test_another_seed_draws_others_and_the_same_one_the_same_in_any_order():
    names = [f"test_a.py::test[{number}]" for number in range(100)]
    first, again, other = (chosen_of(each, seed, 5) for each, seed in ((names, 1), (names[::-1], 1), (names, 2)))
    assert first == again != other
    assert len(first) == 5
