"""Many who write into one audit trail at once make one chain of it, and nobody waits for ever."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

from .at_once import ENTRIES, WRITERS


@pytest.mark.timeout(180)
def test_chains_do_not_fork(tmp_path, database_url):
    found = answer_of("tests.controlplane.audit.at_once", tmp_path, database_url, within_s=110)
    whole = {"checked": 1 + WRITERS * ENTRIES * 2 // 3, "waiting": 0, "broken": None, "numbers": True}
    assert found == {"first": whole, "second": whole, "failed": []}
