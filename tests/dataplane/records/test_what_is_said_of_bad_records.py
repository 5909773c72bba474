"""The words that come with a refusal: a producer of ours reads them in its log, an operator in a broker's."""

import struct
import zlib

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.primitives import write_varint
from dataplane.records import compression
from dataplane.records.batch import Record, build_batch, each_record, read_header, read_records, split_batches
from dataplane.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD, CompressionError, compress, decompress
from dataplane.records.down_conversion import Converted, down_convert
from dataplane.records.header import HEADER_SIZE, CorruptBatchError
from dataplane.records.legacy import Message, read_message_set, write_message, write_message_set
from dataplane.records.preparation import FOREVER, NO_RULES, RefusedRecordsError, Rules, prepare_batch, prepare_messages
from dataplane.records.scan import find_time, read_some
from dataplane.records.steps import run_through

CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
ROOMY = 2**31


def said(work, *arguments):
    """What is said when it is refused, and the code."""
    with pytest.raises(CorruptBatchError) as caught:
        work(*arguments)
    return str(caught.value), caught.value.code


def message(magic, rest, offset=5):
    """A message of an old format with a CRC that is right: `rest` follows the magic."""
    body = bytes([magic]) + rest
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def old(magic, *keys_and_values, offset=0):
    return write_message_set(
        [Message(offset + number, magic, 0, 1, key, value) for number, (key, value) in enumerate(keys_and_values)]
    )


def wrapper(magic, inside, codec=GZIP):
    return write_message(magic, 0, 1, None, None if inside is None else compress(GZIP, inside), codec)


def prepared(message_set, rules=NO_RULES, max_bytes=ROOMY):
    return run_through(prepare_messages(memoryview(message_set), rules, 1_000, max_bytes))


def checked(batch, rules=None):
    view = memoryview(bytearray(batch))
    return run_through(prepare_batch(view, read_header(view), rules or Rules(full=True), 1_000))


# --- records and batches ----------------------------------------------------------------------------------------------


def test_a_record_that_cannot_be_read():
    with pytest.raises(CorruptBatchError, match=r"^a record cannot be read: a record of 0 bytes$"):
        find_time(b"\0", 0, 1, 0, 0)
    assert said(read_some, memoryview(b"\0"), 0, 1) == ("a record cannot be read: a record of 0 bytes", INVALID)


def test_records_that_are_refused_one_by_one():
    error = RefusedRecordsError(ErrorCode.INVALID_RECORD, "2 records", [(0, "no key"), (3, "no key")])
    assert (str(error), error.code, error.rows) == (
        "2 records",
        ErrorCode.INVALID_RECORD,
        [(0, "no key"), (3, "no key")],
    )


def test_records_of_a_batch_that_cannot_be_read_are_told_by_its_offset():
    batch = build_batch([Record(None, None)] * 3, now_ms=1, base_offset=7)
    assert said(read_records, batch[:-1]) == ("records of the batch at offset 7: 3 records in 20 bytes", CORRUPT)
    short = batch[HEADER_SIZE:-1]
    assert said(list, each_record(short, read_header(batch))) == said(read_records, batch[:-1])
    packed = build_batch([Record(None, None)], now_ms=1, base_offset=7, codec=GZIP)[:-9]
    packed[8:12] = (len(packed) - 12).to_bytes(4)
    assert said(read_records, packed) == ("records of the batch at offset 7: gzip: the end is missing", CORRUPT)


def test_a_batch_of_a_length_that_cannot_be():
    batch = build_batch([Record(None, None)], now_ms=1)
    batch[8:12] = (48).to_bytes(4)
    assert said(split_batches, batch) == ("a batch of length 48", CORRUPT)
    batch[8:12] = (49).to_bytes(4)  # a header alone: compaction may leave no more
    assert [len(view) for _, view in split_batches(batch[:61])] == [61]


def test_a_batch_whose_records_are_checked_names_the_record():
    batch = build_batch([Record(None, None)] * 70, now_ms=1)
    batch[-8] = 10  # the size of the last one, whose offset takes two bytes: 5
    assert said(checked, batch) == ("record 69 of the batch: a size of 5", INVALID)
    assert said(checked, build_batch([Record(None, None)], now_ms=1) + b"x") == ("bytes after the last record", INVALID)


def test_more_headers_than_there_is_room_for_are_named_by_their_number():
    """One header, without a name and a value, takes two bytes."""

    def with_headers(claimed):
        record = bytearray(b"\0\0\0\1\1")  # attributes, timestamp, offset, no key, no value
        write_varint(record, claimed)
        record += b"\0\1\0\1"
        body = bytearray()
        write_varint(body, len(record))
        return build_batch([Record(None, None)], now_ms=1)[:HEADER_SIZE] + body + record

    assert checked(with_headers(2)) is not None
    for claimed in (3, 1_000, -1):
        assert said(checked, with_headers(claimed)) == (f"record 0 of the batch: {claimed} headers", INVALID)


# --- codecs -----------------------------------------------------------------------------------------------------------

XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


@pytest.mark.parametrize(
    ("codec", "data", "text"),
    [
        (9, b"", "codec 9 does not exist"),
        (GZIP, compress(GZIP, b"some")[:-1], "gzip: the end is missing"),
        (GZIP, b"no gzip", "gzip: Error -3 while decompressing data: incorrect header check"),
        (GZIP, compress(GZIP, b"") * 101, "gzip: more than 100 members"),
        (GZIP, compress(GZIP, bytes(1_001)), "more than 1000 bytes"),
        (SNAPPY, XERIAL + struct.pack(">i", 5) + b"four", "snappy: a block ends after the data"),
        (SNAPPY, XERIAL + struct.pack(">i", -1), "snappy: a block ends after the data"),
        (SNAPPY, XERIAL + struct.pack(">i", 0), "snappy: snappy: corrupt input (empty)"),
        (SNAPPY, compress(SNAPPY, bytes(1_001)), "more than 1000 bytes"),
        (LZ4, compress(LZ4, bytes(1_001)), "more than 1000 bytes"),
        (ZSTD, compress(ZSTD, bytes(1_001)), "more than 1000 bytes"),
    ],
)
def test_what_a_codec_does_not_unpack(codec, data, text):
    with pytest.raises(CompressionError) as caught:
        decompress(codec, data, 1_000)
    assert str(caught.value) == text


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD], ids=compression.NAMES.get)
def test_what_a_library_says_is_told(codec):
    with pytest.raises(CompressionError) as caught:
        decompress(codec, b"\xff" * 30)
    assert str(caught.value.__cause__) in str(caught.value)
    assert str(caught.value).startswith("snappy: " if codec == SNAPPY else str(caught.value.__cause__))


def test_what_there_is_no_codec_for_is_not_packed():
    with pytest.raises(CompressionError, match=r"^codec 9 does not exist$"):
        compress(9, b"some")


def test_as_many_members_as_may_be_are_unpacked():
    assert decompress(GZIP, compress(GZIP, b"a") * 100) == b"a" * 100


# --- old formats ------------------------------------------------------------------------------------------------------


def test_a_batch_among_messages():
    with pytest.raises(CorruptBatchError, match=r"^a batch among messages$") as caught:
        read_message_set(build_batch([Record(None, b"x")], now_ms=1))
    assert caught.value.code == ErrorCode.INVALID_RECORD


NULL = b"\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (message(0, b"\0" + NULL + NULL)[:8] + struct.pack(">i", 13) + bytes(13), "a message of 13 bytes"),
        (message(0, b"\0" + NULL + NULL)[:-1] + b"x", "CRC of the message at offset 5 is wrong"),
        (message(3, b"\0" + NULL + NULL), "a message of format 3 and 26 bytes"),
        (message(1, b"\0" + bytes(8) + NULL + b"abc"), "a message of format 1 and 33 bytes"),
        (message(0, b"\0\0\0\0\4four"), "a message ends before its value"),
        (message(0, b"\0\0\0\0\4four\0\0\0"), "a message ends before its value"),
        (message(0, b"\0\0\0\0\5four"), "a field ends after its message"),
        (message(0, b"\0" + NULL + b"\0\0\0\5four"), "a field ends after its message"),
        (message(0, b"\0" + NULL + NULL + b"x"), "bytes after the value of the message at offset 5"),
    ],
)
def test_a_message_that_is_none(data, text):
    assert said(read_message_set, data) == (text, CORRUPT)
    before = write_message(1, 4, 1, None, b"good")
    assert said(read_message_set, before + data) == (text, CORRUPT)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (wrapper(1, old(1, (None, b"")), codec=4), "codec 4 in format 1"),
        (wrapper(0, None), "a compressed message without a value"),
        (wrapper(1, old(0, (None, b""))), "a message of format 0 inside one of format 1"),
        (wrapper(1, wrapper(1, old(1, (None, b"")))), "a compressed message inside a compressed message"),
        (wrapper(1, b""), "a compressed message with none inside"),
    ],
)
def test_a_wrapper_that_is_none(data, text):
    assert said(read_message_set, data) == (text, INVALID)
    assert said(prepared, data) == (text, INVALID)


def test_a_wrapper_that_holds_more_than_may_be_read():
    data = wrapper(1, old(1, (None, bytes(1_000))))
    assert len(read_message_set(data, 1_034)) == 1
    assert said(read_message_set, data, 1_033) == ("more than 1033 bytes", INVALID)


ONE, IN_WRAPPER = old(1, (b"k", b"v")), wrapper(1, old(1, (b"k", b"v")))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (ONE + old(0, (b"k", b"v")), "messages of two formats"),
        (ONE + IN_WRAPPER, "a compressed message among others"),
        (IN_WRAPPER + ONE, "a compressed message among others"),
        (IN_WRAPPER + IN_WRAPPER, "a compressed message among others"),
    ],
)
def test_messages_that_are_not_for_one_batch(data, text):
    assert said(prepared, data) == (text, INVALID)


def test_a_message_that_is_too_large():
    just = old(0, (bytes(400), bytes(600)))
    assert prepared(just, max_bytes=1_000) is not None
    assert said(prepared, just, NO_RULES, 999) == ("a message of 1000 bytes", ErrorCode.MESSAGE_TOO_LARGE)


def test_zstd_where_the_old_formats_are_wanted():
    batch = memoryview(build_batch([Record(None, b"")], now_ms=1, codec=ZSTD))
    assert said(run_through, down_convert(batch, 1, Converted(0, ROOMY, at_least_one=True))) == (
        "zstd in an old format",
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    )


# --- records that a topic does not take -------------------------------------------------------------------------------

MANY = 150
"""More than are named."""


def as_batch(key, time):
    return lambda rules: checked(build_batch([Record(key, b"", (), time)] * MANY, now_ms=1), rules)


def as_messages(key, time):
    messages = [Message(n, 1, 0, time, key, b"") for n in range(MANY)]
    return lambda rules: prepared(write_message_set(messages, NONE), rules)


@pytest.mark.parametrize("of", [as_batch, as_messages])
def test_the_first_hundred_records_that_are_out_of_time_are_named(of):
    with pytest.raises(RefusedRecordsError) as caught:
        of(b"k", 899)(Rules(before_max_ms=100))
    assert str(caught.value) == "One or more records have been rejected due to invalid timestamp"
    assert caught.value.code == ErrorCode.INVALID_TIMESTAMP
    text = "the timestamp is further from the broker's clock than the topic allows"
    assert caught.value.rows == [(index, text) for index in range(100)]
    of(b"k", 900)(Rules(before_max_ms=100))
    of(b"k", 1_100)(Rules(after_max_ms=100))
    with pytest.raises(RefusedRecordsError):
        of(b"k", 1_101)(Rules(after_max_ms=100))
    of(b"k", 899)(Rules(before_max_ms=100, stamps=True))  # the broker's own time is never far from its clock


@pytest.mark.parametrize("of", [as_batch, as_messages])
def test_the_first_hundred_records_without_a_key_are_named(of):
    with pytest.raises(RefusedRecordsError) as caught:
        of(None, 1)(Rules(needs_keys=True))
    text = "a compacted topic takes no record without a key"
    assert str(caught.value) == f"100 records have been rejected, among them [0, 1, 2]: {text}"
    assert caught.value.code == ErrorCode.INVALID_RECORD
    assert caught.value.rows == [(index, text) for index in range(100)]
    of(b"", 1)(Rules(needs_keys=True))  # an empty key is one


@pytest.mark.parametrize(
    ("base", "time", "is_good"),
    [(-FOREVER, 0, True), (-FOREVER - 1, 0, False), (FOREVER - 1, 1, True), (FOREVER, 0, True), (FOREVER, 1, False)],
)
def test_timestamps_are_of_64_bits(base, time, is_good):
    batch = build_batch([Record(None, b"", (), 0), Record(None, b"", (), time)], now_ms=1)
    batch[27:35] = base.to_bytes(8, signed=True)
    if is_good:
        assert read_header(checked(batch)).max_timestamp == base + time
    else:
        assert said(checked, batch) == ("timestamps beyond 64 bits", INVALID)
