"""Where one byte of a number becomes two, a step is full, or an answer just fits: nothing changes there but that."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch, check_batch, read_header, read_records
from dataplane.records.compression import GZIP, LZ4, compress
from dataplane.records.down_conversion import Converted, down_convert
from dataplane.records.header import HEADER_SIZE, CorruptBatchError
from dataplane.records.legacy import (
    open_wrapper,
    read_shallow,
    write_message,
)
from dataplane.records.preparation import Rules, prepare_batch
from dataplane.records.steps import RECORDS_PER_STEP, packed, run_through, unpacked

EDGES = [0, 1, 57, 58, 59, 63, 64, 65, 66, 8_191, 8_192, 8_193]
"""A varint takes a second byte from 64 on, a third from 8,192; a record with a value of 58 bytes has 64."""


def checked(batch):
    """It as it is after all its records have been checked, and the pauses of that."""
    view, made = memoryview(bytearray(batch)), []

    def steps():
        made.append((yield from prepare_batch(view, read_header(view), Rules(full=True), 1)))

    pauses = list(steps())
    return bytes(made[0]), pauses


# --- records ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", EDGES)
@pytest.mark.parametrize("field", ["key", "value", "header", "name", "timestamp", "earlier"])
def test_each_field_of_a_record_may_have_any_length(field, size):
    text = bytes(size)
    first = Record(None, b"", (), 10_000)
    second = {
        "key": Record(text, None, (), 10_000),
        "value": Record(None, text, (), 10_000),
        "header": Record(None, None, (("h", text), ("h", None)), 10_000),
        "name": Record(None, None, (("h" * size, b""),), 10_000),
        "timestamp": Record(None, None, (), 10_000 + size),
        "earlier": Record(None, None, (), 10_000 - size),
    }[field]
    batch = build_batch([first, second, first], now_ms=1)
    assert checked(batch) == (batch, [])
    assert read_records(batch)[1].timestamp == second.timestamp
    assert (read_records(batch)[1].key, read_records(batch)[1].value) == (second.key, second.value)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 100, 128, 129])
def test_any_number_of_records_is_checked_with_a_pause_before_each_step_but_the_first(count):
    batch = build_batch([Record(b"k", b"v")] * count, now_ms=1)
    assert checked(batch) == (batch, [None] * ((count - 1) // RECORDS_PER_STEP))
    codes = {check_batch(memoryview(batch), read_header(batch), len(batch) - less) for less in (0, 1)}
    assert codes == {ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE}


def test_the_smallest_records_are_read_whatever_their_number():
    smallest = build_batch([Record(None, None)] * 3, now_ms=1)
    assert len(smallest) == HEADER_SIZE + 21
    assert [record.offset for record in read_records(smallest)] == [0, 1, 2]


# --- what just fits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_that_just_fit_are_taken_and_those_of_one_byte_more_are_not(magic):
    batch = memoryview(build_batch([Record(b"k", b"value", (), 5)] * 2, now_ms=1))
    size = len(write_message(magic, 0, 5, b"k", b"value"))

    def offsets(limit, *, at_least_one=False):
        converted = Converted(0, limit, at_least_one=at_least_one)
        run_through(down_convert(batch, magic, converted))
        return [message.offset for message in read_shallow(converted.data)], converted.is_full

    assert offsets(2 * size) == ([0, 1], False)
    assert offsets(2 * size - 1) == ([0], True)
    assert offsets(size) == ([0], True)
    assert offsets(size - 1) == ([], True)
    assert offsets(size - 1, at_least_one=True) == ([0], True)


def test_a_pause_is_due_after_every_64_records_however_they_come():
    one_by_one, by_50 = (Converted(0, 10**9, at_least_one=True) for _ in range(2))
    due = [number for number in range(1, 200) if one_by_one.has_worked(1)]
    assert due == [64, 128, 192]
    assert [by_50.has_worked(50) for _ in range(4)] == [False, True, False, True]


@pytest.mark.parametrize("codec", [GZIP, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_in_a_wrapper_count_from_its_first_message_in_format_1(codec, magic):
    batch = memoryview(build_batch([Record(b"k", b"v", (), 5)] * 3, now_ms=1, base_offset=7, codec=codec))
    converted = Converted(0, 10**9, at_least_one=True)
    run_through(down_convert(batch, magic, converted))
    (wrapper,) = read_shallow(converted.data)
    assert (wrapper.offset, wrapper.codec) == (9, codec)
    inside = run_through(open_wrapper(wrapper))
    assert [message.offset for message in read_shallow(inside)] == ([0, 1, 2] if magic else [7, 8, 9])
    if codec == LZ4:
        assert wrapper.value[6] == (0x82 if magic else 0x1A), "the historic checksum is of format 0"


def test_16_kib_are_unpacked_at_once_and_what_is_more_beside_the_loop():
    with pytest.raises(CorruptBatchError):  # there and then
        next(unpacked(GZIP, bytes(16 * 2**10), 10))
    call = next(unpacked(GZIP, bytes(16 * 2**10 + 1), 10))
    assert callable(call)


@pytest.mark.parametrize("limit", [128 * 2**10 - 1, 128 * 2**10])
def test_what_may_not_be_more_than_128_kib_is_not_tried_a_second_time(limit):
    too_much = compress(GZIP, bytes(limit + 1))
    with pytest.raises(CorruptBatchError) as caught:  # there and then
        next(unpacked(GZIP, too_much, limit))
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_32_kib_are_packed_at_once_and_what_is_more_beside_the_loop():
    assert list(packed(bytes, bytes(32 * 2**10))) == []
    assert len(list(packed(bytes, bytes(32 * 2**10 + 1)))) == 1
