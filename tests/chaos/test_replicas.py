"""Copies of a log are compared byte for byte, and a copy with holes or damage is said to be one."""

from __future__ import annotations

import pytest

from dataplane.records.batch import Record, build_batch
from tests.chaos.replicas import differences, read_replica


def batch(base: int, value: bytes, epoch: int = 0) -> bytes:
    return bytes(build_batch([Record(None, value)], now_ms=1, base_offset=base, leader_epoch=epoch))


@pytest.fixture
def copies(tmp_path):
    def write(*logs: bytes):
        for broker, log in enumerate(logs, 1):
            (tmp_path / str(broker)).mkdir(exist_ok=True)
            (tmp_path / str(broker) / f"{0:020d}.log").write_bytes(log)
        return [
            read_replica(broker, tmp_path / str(broker), whole=True, values=True) for broker in range(1, len(logs) + 1)
        ]

    return write


def test_equal_copies_do_not_differ(copies):
    log = batch(0, b"a") + batch(1, b"b")
    replicas = copies(log, log, log)
    assert replicas[0].values == {0: b"a", 1: b"b"}
    assert differences("t-0", replicas, at_rest=True) == []


def test_a_copy_that_ends_sooner_differs_only_at_rest(copies):
    replicas = copies(batch(0, b"a") + batch(1, b"b"), batch(0, b"a"))
    assert differences("t-0", replicas, at_rest=False) == []
    assert differences("t-0", replicas, at_rest=True) == ["t-0: replicas end at {1: 2, 2: 1}"]


def test_another_record_or_another_epoch_is_a_difference(copies):
    first = batch(0, b"a")
    assert differences("t-0", copies(first + batch(1, b"b"), first + batch(1, b"c")), at_rest=True)
    assert differences("t-0", copies(first, batch(0, b"a", epoch=1)), at_rest=True)


def test_a_hole_and_a_damaged_byte_are_found(copies):
    assert "offset 2 follows 0" in differences("t-0", copies(batch(0, b"a") + batch(2, b"b")), at_rest=True)[0]
    damaged = bytearray(batch(0, b"aaaa"))
    damaged[-3] ^= 1
    assert "CorruptBatchError" in differences("t-0", copies(bytes(damaged)), at_rest=True)[0]
