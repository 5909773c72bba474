"""The measured broker's word on its turns is read as it was written."""

import time

from tests.stalls.observed import Turn, WrittenDown, turns_since


def turns(path, monkeypatch):
    monkeypatch.setattr(WrittenDown, "path", path)
    return WrittenDown(lambda _: None)


def test_what_ran_and_what_stood_still_are_told_apart(tmp_path, monkeypatch):
    path = tmp_path / "broker.turns"
    noted = turns(path, monkeypatch)
    until = time.thread_time() + 0.02
    while time.thread_time() < until:
        pass
    noted.ended(100.0, 0.03, None)
    noted.ended(101.0, 0.5, None)
    ran, stood = turns_since(path, 0.0)
    assert ran.ended_s == 100.0
    assert ran.took_ms == 30.0
    assert ran.ran_ms >= 20
    assert stood.took_ms == 500.0
    assert stood.ran_ms < 15


def test_short_turns_are_not_written_and_old_ones_not_read(tmp_path, monkeypatch):
    path = tmp_path / "broker.turns"
    assert turns_since(path, 0.0) == []
    noted = turns(path, monkeypatch)
    noted.ended(100.0, 0.001, None)
    assert not path.exists()
    for at in (100.0, 110.0):
        noted.ended(at, 0.01, None)
    assert [turn.ended_s for turn in turns_since(path, 105.0)] == [110.0]
    assert noted.take().turns == 3  # the loop counts as it does without


def test_a_line_says_whose_turn_it_was():
    assert Turn.parse("1.500000\t20.000\t12.500\tabcd1234\n") == Turn(1.5, 20.0, 12.5, "abcd1234")
    assert Turn.parse("1.500000\t20.000\t12.500\t\n").account == ""
