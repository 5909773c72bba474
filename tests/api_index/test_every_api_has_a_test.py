"""No API without a test that asks for it: the index of `tests.api_index` has no empty row."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataplane.handlers.table import HANDLERS
from tests import api_index

INDEX = {row.key: row for row in api_index.rows()}


def test_every_api_that_a_broker_answers_has_a_row():
    assert list(INDEX) == sorted(HANDLERS)


@pytest.mark.parametrize("row", INDEX.values(), ids=lambda row: row.name)
def test_every_api_has_a_test(row):
    assert row.tests, f"no test names the request of {row.name}, nor {row.handler}"


def test_a_row_names_the_handler_where_it_stands():
    assert INDEX[43].handler == "internal.elections.handle_elect_leaders"
    assert INDEX[18].handler == "api_versions.handle_api_versions"  # behind a lambda


def test_a_file_counts_by_what_it_names_and_not_by_what_it_says(tmp_path: Path):
    (tmp_path / "test_a.py").write_text("from x import ElectLeadersRequest")
    (tmp_path / "test_b.py").write_text("messages.ElectLeadersRequest()")
    (tmp_path / "test_c.py").write_text("'ElectLeadersRequest'  # ElectLeadersRequest")
    names = {name: "ElectLeadersRequest" in api_index._names(tmp_path / f"test_{name}.py") for name in "abc"}
    assert names == {"a": True, "b": True, "c": False}


def test_an_empty_row_is_seen_by_people_too():
    assert "(none)" in api_index.text([api_index.Row(1, "FETCH", "records.fetch.handle_fetch", ())])
