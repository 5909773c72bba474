"""Bytes from an offset on: exact where headers are in memory, estimated within a segment where they are not, never waited for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.doors import NotInMemoryError
from dataplane.storage.log import LogConfig, reading, removing
from tests.dataplane.storage.support import append, new_files, open_log

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def log_of(sizes):
    """A batch of one record for each size; and the bytes of each batch."""
    log, written = open_log(new_files(), config=SMALL), []
    for size in sizes:
        before = log.size_bytes
        append(log, "x" * size)
        written.append(log.size_bytes - before)
    return log, written


@pytest.fixture
def forgetful(monkeypatch):
    """Nothing is in memory."""

    def cold(*_):
        raise NotInMemoryError(SimpleNamespace(path="x"), 0, 1)

    monkeypatch.setattr(reading, "bytes_between", cold)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=30), st.data())
def test_what_is_in_memory_is_exact(sizes, data):
    log, written = log_of(sizes)
    offset = data.draw(st.integers(-1, len(sizes) + 1))
    end = data.draw(st.integers(0, len(sizes)))
    assert reading.backlog_bytes(log, offset, end) == sum(written[max(offset, 0) : end])


def test_what_was_deleted_is_not_left():
    log, written = log_of([10] * 8)
    removing.set_start_offset(log, 5)
    assert reading.backlog_bytes(log, 0, 8) == sum(written[5:])


def test_where_batches_are_alike_an_estimate_is_exact_too(forgetful):
    log, written = log_of([50] * 30)
    assert len(log.segments) > 3
    for offset in (0, 7, 29, 30):
        assert reading.backlog_bytes(log, offset, 30) == pytest.approx(sum(written[offset:]), abs=2)


def test_an_estimate_is_wrong_by_a_part_of_two_segments_at_most(forgetful):
    log, written = log_of([150, 0, 0, 0, 120, 0, 200, 0] * 4)
    for offset in range(33):
        found = reading.backlog_bytes(log, offset, 32)
        assert abs(found - sum(written[offset:32])) <= 2 * max(segment.size for segment in log.segments)
    assert reading.backlog_bytes(log, 0, 32) == log.size_bytes
