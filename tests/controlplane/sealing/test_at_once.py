"""Keys are replaced while processes write and read, on databases that know waiting for each other."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

from .at_once import ROWS


@pytest.mark.timeout(180)
def test_nothing_is_lost_overwritten_or_unreadable(tmp_path, database_url):
    found = answer_of("tests.controlplane.sealing.at_once", tmp_path, database_url, within_s=150)
    assert found == {"problems": [], "lost": [], "by": {"new": ROWS, "all": ROWS}, "overwritten": []}
