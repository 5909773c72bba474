"""Setting up what other people's suites need ends in time, and says why where it does not."""

from __future__ import annotations

import time

import pytest

from tests.conformance import fixtures
from tests.support.alone import alone
from tests.support.apache_kafka import NotAvailableError


def test_a_step_that_hangs_is_ended_with_what_it_has_started():
    began = time.monotonic()
    with pytest.raises(NotAvailableError, match=r"not done in 0\.2 s"):
        fixtures.run(["sh", "-c", "sleep 60 & sleep 60"], within_s=0.2)
    assert time.monotonic() - began < 30


def test_a_step_that_fails_says_its_status():
    with pytest.raises(NotAvailableError, match="exit status 3"):
        fixtures.run(["sh", "-c", "exit 3"])


def test_who_waits_for_another_for_too_long_does_without(tmp_path, monkeypatch):
    monkeypatch.setattr(fixtures, "CACHE", tmp_path)
    with alone(tmp_path / "slow.lock", 1), pytest.raises(NotAvailableError, match="was held for 0 s"):
        fixtures._once("slow", lambda _folder: None, wait_s=0)
