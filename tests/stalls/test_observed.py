"""The measured broker's word on its turns is read as it was written."""

import mmap
import os
import resource
import time

import pytest

from tests.stalls.observed import Turn, WrittenDown, pauses_of, turns_since


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


def test_a_turn_that_slept_gave_way_and_nothing_was_taken_from_it(tmp_path, monkeypatch):
    path = tmp_path / "broker.turns"
    noted = turns(path, monkeypatch)
    began = time.monotonic()
    noted.ended(began, 0.0, None)
    time.sleep(0.01)
    noted.ended(now := time.monotonic(), now - began, None)
    (turn,) = turns_since(path, 0.0)
    assert turn.gave_way >= 1
    assert turn.taken_ms == 0.0


def test_a_turn_that_waits_for_memory_to_be_read_in_did_not_give_way(tmp_path, monkeypatch):
    """A machine may push a program's code out of memory: logs are in memory here, so it is nothing else."""
    content = tmp_path / "content"
    content.write_bytes(bytes(2**20))
    with content.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        os.fsync(file.fileno())
        mapped.madvise(mmap.MADV_RANDOM)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        noted = turns(tmp_path / "broker.turns", monkeypatch)
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
        mapped[2**19]
        if resource.getrusage(resource.RUSAGE_THREAD).ru_majflt == before:
            pytest.skip("this file system is in memory")
        noted.ended(time.monotonic(), 0.5, None)
    (turn,) = turns_since(tmp_path / "broker.turns", 0.0)
    assert turn.gave_way == 0
    assert turn.taken_ms > 450


def test_the_sleep_before_a_turn_is_none_of_its_own(tmp_path, monkeypatch):
    path = tmp_path / "broker.turns"
    noted = turns(path, monkeypatch)
    time.sleep(0.01)  # as the loop does that waits for events
    began = time.monotonic()
    noted.ended(began + 0.5, 0.5, None)
    (turn,) = turns_since(path, 0.0)
    assert turn.gave_way == 0
    assert turn.taken_ms > 450


def test_short_turns_are_not_written_and_old_ones_not_read(tmp_path, monkeypatch):
    path = tmp_path / "broker.turns"
    assert turns_since(path, 0.0) == []
    noted = turns(path, monkeypatch)
    noted.ended(100.0, 0.0002, None)
    assert not path.exists()
    for at in (100.0, 110.0):
        noted.ended(at, 0.01, None)
    assert [turn.ended_s for turn in turns_since(path, 105.0)] == [110.0]
    assert noted.take().turns == 3  # the loop counts as it does without


def test_a_line_that_is_being_written_is_not_read(tmp_path):
    path = tmp_path / "broker.turns"
    path.write_text("100.000000\t5.000\t4.000\t0\t\n101.000000\t5.0")
    assert [turn.ended_s for turn in turns_since(path, 0.0)] == [100.0]


def test_a_line_says_whose_turn_it_was():
    assert Turn.parse("1.500000\t20.000\t12.500\t2\tabcd1234\n") == Turn(1.5, 20.0, 12.5, 2, "abcd1234")
    assert Turn.parse("1.500000\t20.000\t12.500\t0\t\n").account == ""


def test_only_turns_in_which_the_loop_was_kept_from_running_are_pauses():
    turns = [Turn(10.0, 20.0, 5.0, 0, ""), Turn(11.0, 20.0, 5.0, 1, "gave way"), Turn(12.0, 20.0, 20.5, 0, "ran")]
    (pause,) = pauses_of(turns).within(0.0, 20.0)
    assert pause == pytest.approx((9.98, 10.0, 15.0))
