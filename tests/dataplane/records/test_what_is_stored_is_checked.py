"""Batches of a log or a leader, markers, and records looked for by time: what is whole passes, and each fault is named."""

import struct

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import HEADER_SIZE, Record, build_batch, read_header, read_records
from dataplane.records.compression import GZIP, LZ4
from dataplane.records.control import Marker, build_marker, read_marker
from dataplane.records.header import CorruptBatchError, check_stored, claimed_size, codec_of, magic_of, too_short
from dataplane.records.legacy import write_message
from dataplane.records.scan import find_time, read_some

TIMES = (1_000, 1_050, 1_020, 1_050)


def stored(times=TIMES):
    return build_batch([Record(None, b"value", timestamp=time) for time in times], now_ms=1_000)


def problem(batch, **changes):
    """What is said of a batch whose header was read as it is but for some fields; None: it is whole."""
    try:
        check_stored(batch, read_header(batch)._replace(**changes))
    except CorruptBatchError as error:
        return str(error), error.code
    return None


# --- stored batches ---------------------------------------------------------------------------------------------------


def test_a_whole_batch_passes_wherever_it_lies_and_whatever_compaction_left_of_it():
    assert problem(stored()) is None
    assert problem(stored(), base_offset=0) is None
    assert problem(stored(), base_offset=1) is None
    assert problem(stored(), last_offset_delta=0) is None
    assert problem(stored(), last_offset_delta=99) is None


@pytest.mark.parametrize("changes", [{"magic": 1}, {"magic": 3}, {"batch_length": 7}])
def test_another_format_or_length_is_named(changes):
    batch = stored()
    header = read_header(batch)._replace(**changes)
    said = f"batch of format {header.magic} and size {header.size} in {len(batch)} bytes"
    assert problem(batch, **changes) == (said, ErrorCode.CORRUPT_MESSAGE)


def test_a_byte_that_is_another_is_a_wrong_crc():
    batch = stored()
    batch[-1] ^= 1
    assert problem(batch, base_offset=42) == ("CRC of the batch at offset 42 is wrong", ErrorCode.CORRUPT_MESSAGE)


@pytest.mark.parametrize("changes", [{"base_offset": -1}, {"last_offset_delta": -1}])
def test_negative_offsets_are_refused(changes):
    offset = changes.get("base_offset", 0)
    assert problem(stored(), **changes) == (f"offsets of the batch at {offset} are negative", ErrorCode.CORRUPT_MESSAGE)


# --- headers, and what is shorter than one ----------------------------------------------------------------------------


def header_bytes(magic, size, at=0):
    return bytes(at) + bytes(16) + bytes([magic]) + bytes(size - 17)


@pytest.mark.parametrize("at", [0, 5])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_of_an_old_format_is_called_one(magic, at):
    error = too_short(header_bytes(magic, 17, at), at)
    assert (str(error), error.code) == ("a message of format 0 or 1", ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)


@pytest.mark.parametrize("at", [0, 5])
def test_anything_else_has_too_few_bytes(at):
    assert str(too_short(header_bytes(2, 40, at), at)) == "40 bytes are less than a batch header"
    assert str(too_short(bytes(at + 16), at)) == "16 bytes are less than a batch header"
    assert str(too_short(b"")) == "0 bytes are less than a batch header"


@pytest.mark.parametrize("at", [0, 5])
def test_a_batch_that_was_cut_is_no_record_and_one_that_is_whole_and_too_short_is_corrupt(at):
    def code(size, length):
        whole = bytes(at + 8) + length.to_bytes(4, "big") + bytes(4) + b"\2" + bytes(44)
        return too_short(whole[: at + size], at).code

    assert code(11, 0) == code(12, 1) == code(40, 29) == ErrorCode.INVALID_RECORD
    assert code(12, 0) == code(40, 28) == code(40, 5) == ErrorCode.CORRUPT_MESSAGE


def test_the_header_is_read_where_it_is_said_to_be():
    with pytest.raises(CorruptBatchError, match=r"^40 bytes are less than a batch header$"):
        read_header(header_bytes(2, 40, at=5), 5)


def test_of_several_headers_the_one_at_the_position_is_read():
    one, two = (build_batch([Record(None, b"v")], now_ms=1, base_offset=base) for base in (3, 4))
    assert read_header(one + two) == read_header(one)
    assert read_header(one + two, len(one)) == read_header(two)


def test_the_first_bytes_say_size_format_and_codec():
    batch = build_batch([Record(None, b"v")], now_ms=1, codec=LZ4)
    message = write_message(1, 7, 1, None, b"v", GZIP)
    assert claimed_size(batch + message) == claimed_size(batch[:12]) == len(batch)
    assert claimed_size(message + batch) == claimed_size(message[:12]) == len(message)
    assert [magic_of(batch[:size]) for size in (0, 16, 17)] == [None, None, 2]
    assert magic_of(message) == 1
    assert [codec_of(batch[:size]) for size in (0, 22, 23)] == [None, None, LZ4]
    stamped = bytearray(batch)
    stamped[22] |= 0x38  # bits that are no codec's
    assert codec_of(stamped) == LZ4


# --- markers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", Marker)
def test_a_marker_has_kafkas_bytes(marker):
    batch = build_marker(marker, producer_id=7, producer_epoch=3, coordinator_epoch=5, now_ms=1_000)
    (record,) = read_records(batch)
    assert record.key == struct.pack(">hh", 0, marker)
    assert record.value == struct.pack(">hi", 0, 5)
    header = read_header(batch)
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, -1)
    assert (header.base_timestamp, header.count) == (1_000, 1)
    assert read_marker(batch) == (marker, 5)


@pytest.mark.parametrize(
    "record", [Record(None, None), Record(b"\0\0\0\2", b"\0\0\0\0\0\0"), Record(b"\0\0\0\1", b"\0\0")]
)
def test_what_is_no_marker_is_corrupt(record):
    with pytest.raises(CorruptBatchError, match=r"^control batch: "):
        read_marker(build_batch([record], now_ms=1, control=True))


# --- records by time --------------------------------------------------------------------------------------------------


def found(delta, least=0, count=4, body=None):
    return find_time(stored()[HEADER_SIZE:] if body is None else body, 0, count, delta, least)


@pytest.mark.parametrize(
    ("delta", "least", "record"),
    [
        (0, 0, (0, 0)),
        (1, 0, (1, 50)),
        (50, 0, (1, 50)),
        (50, 1, (1, 50)),
        (50, 2, (3, 50)),
        (20, 2, (2, 20)),
        (51, 0, None),
        (0, 4, None),
    ],
)
def test_the_first_record_that_is_young_enough_and_not_below_the_offset_is_found(delta, least, record):
    assert found(delta, least)[0] == record


def test_where_the_record_or_all_of_them_end_is_told():
    size = len(stored()[HEADER_SIZE:])
    _, first_end = found(0)
    assert found(51) == (None, size)
    assert found(50, 2) == ((3, 50), size)
    assert found(0, body=stored()[HEADER_SIZE : HEADER_SIZE + first_end], count=1) == ((0, 0), first_end)
    assert found(50, count=1) == (None, first_end)


@pytest.mark.parametrize(
    "look", [lambda body: find_time(body, 0, 1, 0, 0), lambda body: read_some(memoryview(body), 0, 1)]
)
def test_records_that_are_too_small_or_end_too_late_cannot_be_read(look):
    smallest = stored((0,))[HEADER_SIZE:]
    empty = build_batch([Record(None, b"")], now_ms=1)[HEADER_SIZE:]
    look(smallest)
    look(empty)
    for body in (smallest[:-1], b"\x0a" + bytes(5), b"", b"\x80"):
        with pytest.raises(CorruptBatchError):
            look(body)
