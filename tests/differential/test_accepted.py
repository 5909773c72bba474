"""The list of accepted differences is narrow: it names fields and values, so another difference beside them is seen."""

from __future__ import annotations

import pytest

from tests.differential import accepted
from tests.differential.accepted import reason_for, rows

LISTS = [accepted.FILE, accepted.FILE.parent / "denials" / "accepted.tsv"]


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.parent.name)
def test_every_row_names_a_field_and_gives_a_reason(file):
    for row in rows(file):
        assert len(row) == 7, row
        assert row[-1], row
        assert row[3].strip("*."), f"whole answers are accepted by {row}"


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.parent.name)
def test_a_step_is_left_open_only_where_both_values_are_said(file):
    for row in rows(file):
        assert row[2] != "*" or "*" not in row[4:6], row


def test_another_value_version_or_field_is_another_difference(monkeypatch):
    row = ("FETCH v3-5", "fetch", "a step", "responses[*].error_code", "0", "-1", "meant")
    monkeypatch.setattr(accepted, "rows", lambda _: [row])
    said = ("fetch", "a step", "responses[t].error_code", "0", "-1")
    assert reason_for("FETCH", 3, *said) == reason_for("FETCH", 5, *said) == "meant"
    assert reason_for("FETCH", 6, *said) == ""
    assert reason_for("PRODUCE", 3, *said) == ""
    for number, other in enumerate(("produce", "another", "responses[t].offset", "1", "0")):
        assert reason_for("FETCH", 3, *said[:number], other, *said[number + 1 :]) == ""
