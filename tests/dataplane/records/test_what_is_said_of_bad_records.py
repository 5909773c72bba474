"""The words that come with a refusal: a producer of ours reads them in its log."""

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch
from dataplane.records.header import CorruptBatchError
from dataplane.records.legacy import read_message_set
from dataplane.records.preparation import RefusedRecordsError
from dataplane.records.scan import find_time


def test_a_batch_among_messages():
    with pytest.raises(CorruptBatchError, match=r"^a batch among messages$") as caught:
        read_message_set(build_batch([Record(None, b"x")], now_ms=1))
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_a_record_that_cannot_be_read():
    with pytest.raises(CorruptBatchError, match=r"^a record cannot be read: a record of 0 bytes$"):
        find_time(b"\0", 0, 1, 0, 0)


def test_records_that_are_refused_one_by_one():
    error = RefusedRecordsError(ErrorCode.INVALID_RECORD, "2 records", [(0, "no key"), (3, "no key")])
    assert (str(error), error.code, error.rows) == (
        "2 records",
        ErrorCode.INVALID_RECORD,
        [(0, "no key"), (3, "no key")],
    )
