"""A few bytes that unpack to gigabytes end in an error, not in memory."""

import gzip
import struct
import tracemalloc
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.records.batch import HEADER_SIZE, CorruptBatchError, Record, build_batch, read_header, read_records
from dataplane.records.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, CompressionError, compress, decompress
from dataplane.records.control import Marker, build_marker, read_marker

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
names = pytest.mark.parametrize("codec", CODECS, ids=NAMES.get)


@names
@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=500) | st.integers(0, 200_000).map(bytes))
def test_what_was_compressed_comes_back(codec, data):
    assert bytes(decompress(codec, compress(codec, data))) == data


@names
def test_the_limit_is_exact(codec):
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, 100_000)) == 100_000
    with pytest.raises(CompressionError):
        decompress(codec, packed, 99_999)


@names
def test_a_bomb_allocates_no_more_than_the_limit_and_a_little(codec):
    bomb = compress(codec, bytes(64 * 2**20))
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError):
            decompress(codec, bomb, 2**20)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_members_of_one_stream_share_the_limit():
    limit = 4 * 2**20
    bomb = compress(GZIP, bytes(limit)) + compress(GZIP, bytes(16 * limit))
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError):
            decompress(GZIP, bomb, limit)
        assert tracemalloc.get_traced_memory()[1] < 4 * limit
    finally:
        tracemalloc.stop()


def test_records_are_unpacked_up_to_the_limit_of_who_reads_them():
    batch = build_batch([Record(None, bytes(1_000))], now_ms=1, codec=GZIP)
    size = len(decompress(GZIP, batch[HEADER_SIZE:]))
    assert len(read_records(batch, size)) == 1
    with pytest.raises(CorruptBatchError, match=f"more than {size - 1} bytes$"):
        read_records(batch, size - 1)


@names
@settings(max_examples=60, deadline=None)
@given(data=st.binary(min_size=1, max_size=100))
def test_garbage_is_an_error_or_data(codec, data):
    with suppress(CompressionError):
        assert len(decompress(codec, data, 10_000)) <= 10_000


def test_several_members_and_frames_are_one_text():
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"
    for codec, module in ((LZ4, cramjam.lz4), (ZSTD, cramjam.zstd)):
        assert bytes(decompress(codec, bytes(module.compress(b"one ")) + bytes(module.compress(b"two")))) == b"one two"


def test_javas_framing_of_snappy_is_read():
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in (b"first " * 100, b"second")]
    framed = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    assert decompress(SNAPPY, framed) == b"first " * 100 + b"second"
    with pytest.raises(CompressionError):
        decompress(SNAPPY, framed, 600)


def test_no_codec_is_no_copy():
    data = b"as it is"
    assert decompress(NONE, data) is data


@pytest.mark.parametrize("marker", list(Marker))
def test_a_marker_comes_back(marker):
    batch = build_marker(marker, producer_id=5, producer_epoch=2, coordinator_epoch=9, now_ms=1)
    assert read_marker(batch) == (marker, 9)
    assert read_header(batch).is_control
    assert read_header(batch).is_transactional
    assert read_header(batch).base_sequence == -1
