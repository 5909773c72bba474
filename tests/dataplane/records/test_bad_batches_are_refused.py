"""The check of the produce path: every field a producer could get wrong, and every bit that could flip."""

from contextlib import suppress

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from dataplane.records.batch import (
    CorruptBatchError,
    Record,
    build_batch,
    check_batch,
    read_header,
    read_records,
    split_batches,
)
from dataplane.records.header import HEADER

FIELDS = {name: index for index, name in enumerate(read_header(bytes(61))._fields)}


def batch_of(count: int = 3, **options) -> bytearray:
    return build_batch([Record(b"key", b"value %d" % n) for n in range(count)], now_ms=1_000, **options)


def with_fields(batch: bytearray, **changes: int) -> bytearray:
    """Changed, with a CRC that is right again."""
    values = list(HEADER.unpack_from(batch))
    for name, value in changes.items():
        values[FIELDS[name]] = value
    HEADER.pack_into(batch, 0, *values)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return batch


def checked(batch: bytearray, max_bytes: int = 2**20) -> ErrorCode:
    return check_batch(memoryview(batch), read_header(batch), max_bytes)


def test_a_good_batch_passes():
    assert checked(batch_of()) == ErrorCode.NONE
    assert checked(batch_of(producer_id=7, producer_epoch=0, base_sequence=0)) == ErrorCode.NONE
    assert checked(batch_of(producer_id=7, producer_epoch=0, base_sequence=2**31 - 1, transactional=True)) == 0


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"magic": 1}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"magic": 3}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"batch_length": 10_000}, ErrorCode.INVALID_RECORD),
        ({"batch_length": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 48}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 49}, ErrorCode.INVALID_RECORD),
        ({"count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"count": 2}, ErrorCode.INVALID_RECORD),
        ({"count": 4}, ErrorCode.INVALID_RECORD),
        ({"count": -(2**31), "last_offset_delta": 2**31 - 1}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 5}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x08}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x40}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x80}, ErrorCode.INVALID_RECORD),
        ({"attributes": -0x8000}, ErrorCode.INVALID_RECORD),
        ({"attributes": 5}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x10}, ErrorCode.INVALID_RECORD),
        ({"producer_id": -2}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 7, "producer_epoch": 0}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 7, "base_sequence": 0}, ErrorCode.INVALID_RECORD),
    ],
)
def test_each_wrong_field_has_its_error(changes, code):
    assert checked(with_fields(batch_of(), **changes)) == code


@pytest.mark.parametrize("codec", sorted(compression.NAMES))
def test_a_batch_larger_than_allowed_is_too_large_as_it_is_sent(codec):
    batch = build_batch([Record(None, b"v" * 100)], now_ms=1, codec=codec)
    assert checked(batch, len(batch)) == ErrorCode.NONE
    assert checked(batch, len(batch) - 1) == ErrorCode.MESSAGE_TOO_LARGE


def test_two_batches_at_once_are_refused():
    assert checked(batch_of() + batch_of()) == ErrorCode.INVALID_RECORD


def test_every_flipped_bit_behind_the_crc_is_found():
    good = batch_of()
    for position in range(17, len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[position] ^= 1 << bit
            assert checked(bad) == ErrorCode.CORRUPT_MESSAGE, (position, bit)


def test_a_batch_that_was_cut_is_invalid_at_every_length():
    """As Kafka says it. A client would send what is called corrupt again and again: it has no other bytes."""
    good = batch_of()
    for size in range(len(good)):
        cut = good[:size]
        if size < 61:
            with pytest.raises(CorruptBatchError) as caught:
                read_header(cut)
            assert caught.value.code == ErrorCode.INVALID_RECORD, size
        else:
            assert checked(cut) == ErrorCode.INVALID_RECORD, size


@pytest.mark.parametrize("size", [26, 40, 60])
def test_a_batch_that_is_whole_and_smaller_than_any_can_be_is_corrupt(size):
    small = batch_of()[:size]
    small[8:12] = (size - 12).to_bytes(4)
    with pytest.raises(CorruptBatchError) as caught:
        read_header(small)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_short_message_of_an_old_format_is_called_that():
    message = bytes(16) + b"\x01" + bytes(20)
    with pytest.raises(CorruptBatchError) as caught:
        read_header(message)
    assert caught.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_splitting_leaves_a_partial_batch_out():
    one, two = batch_of(1), batch_of(2, base_offset=1)
    for cut in range(len(two)):
        assert [bytes(view) for _, view in split_batches(one + two[:cut])] == [bytes(one)]
    assert [header.base_offset for header, _ in split_batches(one + two)] == [0, 1]


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_splitting_refuses_a_length_that_cannot_be(length):
    batch = batch_of()
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptBatchError):
        split_batches(batch)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.integers(-(2**31), 2**31 - 1), st.integers(0, 7))
def test_reading_records_never_fails_but_with_its_own_error(body, count, codec):
    batch = bytearray(61) + body
    HEADER.pack_into(batch, 0, 0, len(batch) - 12, 0, 2, 0, codec, 0, 0, 0, -1, -1, -1, count)
    with suppress(CorruptBatchError):
        assert len(read_records(batch)) == max(count, 0)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_changed_byte_in_the_records_never_fails_but_with_its_own_error(data):
    batch = batch_of(5)
    batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CorruptBatchError):
        assert len(read_records(batch)) == 5


@pytest.mark.parametrize("count", [4, 2**31 - 1])
def test_a_batch_claims_no_more_records_than_it_has_room_for(count):
    claims = build_batch([Record(None, b"")] * 3, now_ms=1_000)
    assert checked(claims) == ErrorCode.NONE
    lying = with_fields(claims, count=count, last_offset_delta=count - 1)
    assert checked(lying) == ErrorCode.INVALID_RECORD


def test_a_compressed_batch_claims_no_fantastic_number():
    compressed = batch_of(codec=1)
    lying = with_fields(compressed, count=2**31 - 1, last_offset_delta=2**31 - 2)
    assert checked(lying) == ErrorCode.INVALID_RECORD
