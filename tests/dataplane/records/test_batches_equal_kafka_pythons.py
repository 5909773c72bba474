"""kafka-python's encoder and decoder are the oracle: what it builds we read, what we build it reads."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.batch import Record, build_batch, check_batch, read_header, read_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its own, of importlib
    from kafka.errors import UnsupportedCodecError
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords

blobs = st.none() | st.binary(max_size=60)
headers = st.lists(st.tuples(st.text(max_size=8), blobs), max_size=3).map(tuple)
records = st.lists(
    st.builds(Record, blobs, blobs, headers, st.integers(0, 2**41)),
    min_size=1,
    max_size=12,
)


def theirs(items: list[Record], codec: int, **producer) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=producer.get("producer_id", -1),
        producer_epoch=producer.get("producer_epoch", -1),
        base_sequence=producer.get("base_sequence", -1),
        batch_size=2**20,
    )
    for offset, record in enumerate(items):
        builder.append(offset, record.timestamp, record.key, record.value, list(record.headers))
    return bytearray(builder.build())


def usable(codec: int) -> bool:
    """kafka-python compresses only with the codecs whose optional packages are installed."""
    try:
        theirs([Record(None, b"x" * 1000, timestamp=1)], codec)
    except UnsupportedCodecError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(records)
def test_what_it_builds_passes_the_check_and_reads_back(items):
    batch = theirs(items, compression.NONE)
    header = read_header(batch)
    assert check_batch(memoryview(batch), header, 2**20) == ErrorCode.NONE
    assert header.size == len(batch)
    assert header.max_timestamp == max(record.timestamp for record in items)
    read = read_records(batch)
    assert [(r.key, r.value, r.headers, r.timestamp) for r in read] == [
        (r.key, r.value, r.headers, r.timestamp) for r in items
    ]
    assert [r.offset for r in read] == list(range(len(items)))


@settings(max_examples=60, deadline=None)
@given(records)
def test_without_compression_both_build_the_same_bytes(items):
    ours = build_batch(items, now_ms=7, leader_epoch=0, producer_id=9, producer_epoch=1, base_sequence=5)
    assert ours == theirs(items, compression.NONE, producer_id=9, producer_epoch=1, base_sequence=5)


@pytest.mark.parametrize("codec", [codec for codec in compression.NAMES if usable(codec)])
def test_it_reads_what_we_build(codec):
    items = [Record(b"k%d" % n, b"v" * 50 * n, (("h", None),), 1000 + n) for n in range(20)]
    batch = build_batch(items, now_ms=1, base_offset=40, codec=codec)
    [theirs] = MemoryRecords(bytes(batch))
    assert theirs.validate_crc()
    assert theirs.compression_type == codec
    assert [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in theirs] == [
        (40 + n, r.timestamp, r.key, r.value, r.headers) for n, r in enumerate(items)
    ]


@pytest.mark.parametrize("codec", [codec for codec in compression.NAMES if usable(codec)])
def test_we_read_what_it_compresses(codec):
    items = [Record(b"k", b"v" * 500, (), 1000 + n) for n in range(20)]
    batch = theirs(items, codec)
    assert read_header(batch).compression == codec
    assert [(r.value, r.timestamp) for r in read_records(batch)] == [(r.value, r.timestamp) for r in items]
