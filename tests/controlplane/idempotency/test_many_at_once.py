"""The same call many times at once, on a real database: one is carried out, the others are told its answer, or to wait."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from controlplane.env import ROOT

from .at_once import KEYS, THREADS


@pytest.mark.timeout(120)
def test_of_many_at_once_one_is_carried_out(tmp_path):
    program = [sys.executable, "-m", "tests.controlplane.idempotency.at_once", str(tmp_path)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["instances"] == KEYS
    for answers in found["answers"].values():
        assert len(answers) == THREADS
        assert {status for status, _ in answers} <= {202, 409}
        assert len({what for status, what in answers if status == 202}) == 1
        assert {what for status, what in answers if status == 409} <= {"idempotency_in_progress"}
