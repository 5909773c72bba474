"""One record that is wrong in one way, read by each of those who read records: what is said of it."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch, read_header, read_records
from dataplane.records.compression import GZIP
from dataplane.records.header import HEADER_SIZE, CorruptBatchError, check_batch
from dataplane.records.preparation import Rules, prepare_batch
from dataplane.records.scan import find_time, read_some
from dataplane.records.steps import run_through

CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD


def z(*numbers):
    """Zig-zag varints of one byte each, -64 to 63."""
    return bytes(2 * number if number >= 0 else -2 * number - 1 for number in numbers)


def record(*fields, size=None):
    """Attributes, and then what is said; the size is right if it is not said."""
    body = b"\0" + b"".join(fields)
    return z(len(body) if size is None else size) + body


NOTHING = z(0, 0, -1, -1)  # timestamp and offset, no key, no value
GOOD = record(NOTHING, z(0))


def batch_of(*records, base=0):
    batch = build_batch([Record(None, None)] * len(records), now_ms=1)[:HEADER_SIZE] + b"".join(records)
    batch[27:35] = base.to_bytes(8, signed=True)
    batch[8:12] = (len(batch) - 12).to_bytes(4)
    return batch


def checked(batch, rules=None):
    view = memoryview(bytearray(batch))
    return run_through(prepare_batch(view, read_header(view), rules or Rules(full=True), 1))


def said(work, *arguments):
    with pytest.raises(CorruptBatchError) as caught:
        work(*arguments)
    return str(caught.value), caught.value.code


def test_the_good_one_is_good():
    assert read_records(batch_of(GOOD)) == [Record(None, None, (), 0, 0)]
    assert checked(batch_of(GOOD)) is not None
    assert read_some(memoryview(GOOD), 0, 1) == ([(0, 0, None, None)], len(GOOD))


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (record(NOTHING, z(0), size=5), "a size of 5"),
        (record(NOTHING, z(0), size=-1), "a size of -1"),
        (record(z(0, -1, -1, -1, 0)), "an offset delta of -1"),
        (record(z(0, 1, -1, -1, 0)), "an offset delta of 1"),
        (record(z(0, 0, -2, -1, 0)), "a key of -2 bytes"),
        (record(z(0, 0, -1, -2, 0)), "a value of -2 bytes"),
        (record(NOTHING, b"", z(0))[:-1] + b"\x02", "1 headers"),
        (record(z(0, 0, -1, 1), b"v"), "fields that end after it"),
        (record(z(0, 0, -1, 2), b"v"), "fields that end after it"),
        (record(NOTHING, z(-1)), "-1 headers"),
        (record(NOTHING, z(1, -1, -1)), "a header without a name"),
        (record(NOTHING, z(1, 0, -2)), "a header of -2 bytes"),
        (record(NOTHING, z(1, 0, 1)), "a header that ends after it"),
        (record(NOTHING, z(0, 0)), "1 bytes more or less than its fields"),
        (record(NOTHING, z(1, 0, -1, 0)), "1 bytes more or less than its fields"),
    ],
)
def test_where_every_record_is_checked(bad, fault):
    """The first of two, so that the batch does not end where it does."""
    second = record(z(0, 1, -1, -1, 0))
    assert said(checked, batch_of(bad, second)) == (f"record 0 of the batch: {fault}", INVALID)


def test_a_record_that_ends_after_its_batch():
    assert said(checked, batch_of(record(NOTHING, z(0), size=7))) == ("record 0 of the batch: a size of 7", INVALID)


def test_an_offset_that_is_the_next_ones_with_a_minus_is_not_the_next_one():
    second = record(z(0, -1, -1, -1, 0))
    assert said(checked, batch_of(GOOD, second)) == ("record 1 of the batch: an offset delta of -1", INVALID)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (record(NOTHING, z(0), size=0), "a record ends after its batch"),
        (record(NOTHING, z(0), size=-1), "a record ends after its batch"),
        (record(NOTHING, z(0), size=7), "a record ends after its batch"),
        (record(NOTHING, z(-1)), "-1 headers"),
        (record(NOTHING, z(7)), "7 headers"),
        (record(NOTHING, z(6)), "bad varint"),  # of which there could be as many as there are bytes, and is none
        (record(NOTHING, z(1, -1, -1)), "a header without a key"),
        (record(NOTHING, z(0, 0)), "bytes after the last field of a record"),
        (record(z(0, 0, 4, -1, 0)), "a field ends after its record"),
        (record(z(0, 0, -1, 2, 0)), "a field ends after its record"),
        (GOOD + b"\0", "bytes after the last record"),
        (GOOD[:-1], "1 records in 6 bytes"),
    ],
)
def test_where_records_are_read(bad, fault):
    assert said(read_records, batch_of(bad)) == (f"records of the batch at offset 0: {fault}", CORRUPT)


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (record(NOTHING, z(0), size=5), "a record of 5 bytes"),
        (record(NOTHING, z(0), size=7), "a record of 7 bytes"),
        (record(z(0, 0, -1, 1), b"v"), "a field ends after its record"),
        (record(z(0, 0, -1, 2, 0)), "a field ends after its record"),
    ],
)
def test_where_they_are_read_to_be_converted(bad, fault):
    assert said(read_some, memoryview(bad), 0, 1) == (f"a record cannot be read: {fault}", INVALID)


@pytest.mark.parametrize("size", [5, 7, -1])
def test_where_one_is_looked_for_by_its_time(size):
    bad = record(NOTHING, z(0), size=size)
    assert said(find_time, bad, 0, 1, 0, 0) == (f"a record cannot be read: a record of {size} bytes", INVALID)


# --- what is not looked at --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [Rules(), Rules(codec=GZIP)])
def test_what_nobody_asks_to_look_at_is_not_unpacked(rules):
    batch = build_batch([Record(None, None)], now_ms=1, codec=GZIP)[:HEADER_SIZE] + b"no gzip"
    assert list(prepare_batch(memoryview(batch), read_header(batch), rules, 1)) == []
    assert checked(batch, rules) == batch
    assert said(checked, batch, Rules(full=True))[1] == CORRUPT


def test_a_batch_without_a_time_has_records_without_one_and_they_are_in_time():
    rules = Rules(before_max_ms=1, after_max_ms=1)
    assert checked(batch_of(GOOD, base=-1), rules) is not None
    assert said(checked, batch_of(GOOD, base=-2), rules)[1] == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize(("count", "code"), [(1_000_000, ErrorCode.NONE), (1_000_001, INVALID)])
def test_a_compressed_batch_claims_a_million_records_at_most(count, code):
    batch = memoryview(build_batch([Record(None, None)], now_ms=1, codec=GZIP))
    header = read_header(batch)._replace(count=count, last_offset_delta=count - 1)
    assert check_batch(batch, header, 10_000) is code
