"""Two short rounds with real brokers: a schedule is repeated by its seed, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.chaos import __main__ as chaos
from tests.chaos.faults import KINDS, schedule


def test_a_seed_repeats_the_schedule_and_every_kind_comes_before_any_comes_again():
    planned = schedule(7, 40, KINDS)
    assert planned == schedule(7, 40, KINDS) != schedule(8, 40, KINDS)
    assert {kind for kind, _ in planned[: len(KINDS)]} == set(KINDS)


@pytest.mark.integration
@pytest.mark.timeout(180)
def test_two_rounds_lose_double_and_reorder_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(chaos, "REPORTS", tmp_path)
    monkeypatch.setattr(chaos, "KEPT", tmp_path / "kept")
    status = chaos.main(["--rounds", "2", "--seconds", "5", "--seed", "1", "--faults", "bounce,leader"])
    assert status == 0
    assert "0 rounds in which records were lost, doubled or reordered" in capsys.readouterr().out
