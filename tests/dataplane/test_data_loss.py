"""The table of how data could be lost names files and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs/subsystems/data-loss.md").read_text()
ROWS = [line.strip("|").split("|") for line in TABLE.splitlines() if line.startswith("| ")][1:]


@pytest.fixture(scope="module")
def names_of_tests() -> frozenset[str]:
    files = (ROOT / "tests/dataplane").rglob("test_*.py")
    return frozenset(name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))


def test_every_row_names_a_rule_where_it_is_and_how_it_is_tested(names_of_tests):
    assert len(ROWS) > 15
    for _, _, where, tests in ROWS:
        files, wanted = re.findall(r"`([\w/.]+)`", where), re.findall(r"`(test_\w+)`", tests)
        assert files
        assert wanted
        assert [file for file in files if not (ROOT / "dataplane" / file).is_file()] == []
        assert [test for test in wanted if test not in names_of_tests] == []
