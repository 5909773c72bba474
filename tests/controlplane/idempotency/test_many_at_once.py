"""The same call many times at once, on a real database: one is carried out, the others are told its answer, or to wait."""

from __future__ import annotations

import pytest

from tests.support.django_process import answer_of

from .at_once import KEYS, THREADS


@pytest.mark.timeout(120)
def test_of_many_at_once_one_is_carried_out(tmp_path):
    found = answer_of(
        "tests.controlplane.idempotency.at_once", tmp_path, f"sqlite:///{tmp_path}/db.sqlite3", within_s=110
    )
    assert found["instances"] == KEYS
    for answers in found["answers"].values():
        assert len(answers) == THREADS
        assert {status for status, _ in answers} <= {202, 409}
        assert len({what for status, what in answers if status == 202}) == 1
        assert {what for status, what in answers if status == 409} <= {"idempotency_in_progress"}
