"""Of many who join by one invitation one is in, and a key that a connection has made rotates none while the connection ends."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

from .at_once import WORKERS


@pytest.mark.timeout(180)
def test_one_joins_and_nothing_is_rotated_by_what_has_ended(tmp_path, database_url):
    found = answer_of("tests.controlplane.sso.at_once", tmp_path, database_url, within_s=110)
    assert found == {
        "joined": ["", *["not_found"] * (WORKERS - 1)],
        "people": 1,
        "members": 1,
        "links": 1,
        "rotated": ["unauthenticated"],
        "has_another_secret": False,
    }
