"""A producer's batch begins at offset 0: the broker gives the offsets, and one that comes with others is a mistake."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch, check_batch, read_header


@pytest.mark.parametrize(
    ("base", "error"), [(0, ErrorCode.NONE), (5, ErrorCode.INVALID_RECORD), (-1, ErrorCode.INVALID_RECORD)]
)
def test_only_a_batch_that_begins_at_0_is_taken(base, error):
    batch = memoryview(build_batch([Record(b"k", b"v")], now_ms=1_000, base_offset=base))
    assert check_batch(batch, read_header(batch), 10_000) is error
