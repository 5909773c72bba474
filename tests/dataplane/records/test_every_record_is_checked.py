"""Full validation: what we and Kafka build passes, whatever it holds; hostile bytes end in one kind of error."""

from contextlib import suppress

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.primitives import write_varint
from dataplane.records.batch import Record, build_batch, read_header, read_records
from dataplane.records.compression import NAMES, NONE
from dataplane.records.header import HEADER_SIZE, CorruptBatchError, check_batch
from dataplane.records.preparation import FOREVER, RefusedRecordsError, Rules, prepare_batch
from dataplane.records.scan import read_some
from dataplane.records.steps import RECORDS_PER_STEP, run_through
from dataplane.records.varints import varint

texts = st.none() | st.binary(max_size=200)
records = st.builds(
    Record,
    key=texts,
    value=texts,
    headers=st.lists(st.tuples(st.text(max_size=70), texts), max_size=3).map(tuple),
    timestamp=st.integers(0, 2**45),
)
FULL = Rules(full=True)
ROOMY = 2**31


def prepared(batch, rules=FULL, now_ms=1):
    batch = memoryview(bytearray(batch))
    return run_through(prepare_batch(batch, read_header(batch), rules, now_ms))


@pytest.mark.parametrize("codec", NAMES)
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(records, min_size=1, max_size=30))
def test_good_batches_pass_as_they_are(codec, rows):
    batch = build_batch(rows, now_ms=1, codec=codec)
    assert prepared(batch) == batch


@settings(max_examples=300, deadline=None)
@given(rows=st.lists(records, min_size=1, max_size=3), data=st.data())
def test_flipped_bytes_pass_only_if_they_can_be_read(rows, data):
    batch = build_batch(rows, now_ms=1)
    at = data.draw(st.integers(HEADER_SIZE, len(batch) - 1))
    batch[at] = data.draw(st.integers(0, 255))
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4)
    try:
        made = prepared(batch)
    except CorruptBatchError:
        return
    with suppress(CorruptBatchError):  # a header's name need not be UTF-8
        read = read_records(made)
        assert [record.offset for record in read] == list(range(len(rows)))
        assert max(record.timestamp for record in read) == read_header(made).max_timestamp
    assert check_batch(made, read_header(made), ROOMY) == 0


@settings(max_examples=200, deadline=None)
@given(body=st.binary(max_size=100), count=st.integers(1, 10), codec=st.sampled_from(list(NAMES)))
def test_hostile_bytes_are_one_kind_of_error(body, count, codec):
    batch = build_batch([Record(None, None)] * count, now_ms=1)[:HEADER_SIZE] + body
    batch[22] = codec
    with suppress(CorruptBatchError):
        prepared(batch)
    with suppress(CorruptBatchError):
        read_some(memoryview(body), 0, count)


@settings(max_examples=50, deadline=None)
@given(
    times=st.lists(st.integers(0, 3000), min_size=1, max_size=20),
    before=st.integers(0, 1500) | st.just(FOREVER),
    after=st.integers(0, 1500) | st.just(FOREVER),
)
def test_bounds_of_timestamps(times, before, after):
    batch = build_batch([Record(None, b"", (), time) for time in times], now_ms=1)
    bad = [n for n, time in enumerate(times) if 1500 - time > before or time - 1500 > after]
    rules = Rules(before_max_ms=before, after_max_ms=after)
    if not bad:
        assert prepared(batch, rules, 1500) == batch
    else:
        with pytest.raises(RefusedRecordsError) as refused:
            prepared(batch, rules, 1500)
        assert [index for index, _ in refused.value.rows] == bad


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(records, min_size=1, max_size=20))
def test_rows_are_what_objects_are(rows):
    batch = build_batch(rows, now_ms=1)
    read, end = read_some(memoryview(batch)[HEADER_SIZE:], 0, len(rows))
    assert end == len(batch) - HEADER_SIZE
    assert [(row[1], row[2], row[3]) for row in read] == [(r.offset, r.key, r.value) for r in read_records(batch)]


@given(value=st.integers(-(2**63), 2**63 - 1) | st.integers(0, 10_000))
def test_varints_from_the_table_are_those_of_the_protocol(value):
    out = bytearray()
    write_varint(out, value)
    assert varint(value) == out


@pytest.mark.parametrize("value", [-1, 0, 1, 63, 64, 8_191, 8_192, 8_193, -(2**63), 2**63 - 1])
def test_they_are_where_the_table_ends(value):
    out = bytearray()
    write_varint(out, value)
    assert varint(value) == out


def test_many_records_are_checked_in_steps():
    batch = memoryview(build_batch([Record(None, None)] * (4 * RECORDS_PER_STEP), now_ms=1, codec=NONE))
    assert list(prepare_batch(batch, read_header(batch), FULL, 1)) == [None] * 3
