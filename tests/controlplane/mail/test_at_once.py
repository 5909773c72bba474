"""Owners are told once of what many workers see at once."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of


@pytest.mark.timeout(180)
def test_of_eight_workers_one_writes_the_mail(tmp_path, database_url):
    found = answer_of("tests.controlplane.mail.at_once", tmp_path, database_url, within_s=110)
    assert found == {
        "made": [8, 1, 0],
        "told": [8, 1, 1],
        "refused": [8, 0, 1],
        "isolated": [8, 0, 1],
        "foretold": [8, 1, 1],
    }
