"""Two workers do everything at once, on a real SQLite and a real PostgreSQL: what comes of it is what all samples come to."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of


@pytest.mark.timeout(180)
def test_two_workers_come_to_what_one_would(tmp_path, database_url):
    found = answer_of("tests.controlplane.history.two_workers", tmp_path, database_url)
    assert found["errors"] == []
    assert (found["minutes"], found["hours"]) == (True, True)
    assert 0 < found["samples"] < 3 * 3 * 360  # some have expired, and were removed
    assert found["shown"] == [3, 1]
    assert found["average"][0] == found["average"][1]
    told, *added_up = found["requests"]
    assert added_up == [told] * 4
