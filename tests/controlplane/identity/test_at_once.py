"""Of many workers one answers whoever signs up, and of many who use a link one has the account."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

from .at_once import WORKERS


@pytest.mark.timeout(180)
def test_one_mail_and_one_account(tmp_path, database_url):
    found = answer_of("tests.controlplane.identity.at_once", tmp_path, database_url, within_s=110)
    assert found == {
        "answered": [""] * WORKERS,
        "mails": 1,
        "used": ["", *["not_found"] * (WORKERS - 1)],
        "accounts": 1,
        "organisations": 1,
    }
