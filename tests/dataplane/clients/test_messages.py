"""Messages as bytes: each broker gets the format that it takes, in batches of a size, and no byte that is wrong is believed."""

from __future__ import annotations

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from dataplane.clients.errors import CorruptMessageError, UnsupportedError
from dataplane.clients.messages import Message, codec_of, portions, read_entries, write_entries
from dataplane.protocol.messages.fetch import AbortedTransaction
from dataplane.records.batch import Record, build_batch, read_header
from dataplane.records.control import Marker, build_marker
from dataplane.records.header import CHECKED_FROM, CRC_AT, HEADER_SIZE, MAGIC_AT
from dataplane.records.legacy import read_shallow

MESSAGES = [Message(b"v%d" % number * 20, b"k", (), 100 + number) for number in range(5)]


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (9, 2)])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_each_version_of_produce_has_its_format_and_the_codec_is_used(version, magic, codec):
    data = write_entries(MESSAGES, version, codec, 7)
    assert data[MAGIC_AT] == magic
    if magic == 2:
        assert read_header(data).compression == codec
    else:
        assert {one.codec for one in read_shallow(data)} == {codec}
    found = [one.message for one in read_entries(data, 0).messages]
    times = [-1] * 5 if magic == 0 else [100, 101, 102, 103, 104]
    assert found == [Message(one.value, one.key, (), time) for one, time in zip(MESSAGES, times, strict=True)]


@pytest.mark.parametrize("version", [2, 3])
def test_a_message_without_a_time_gets_that_of_sending(version):
    (found,) = read_entries(write_entries([Message(b"v")], version, 0, 77), 0).messages
    assert found.message.timestamp == 77


def test_headers_travel_where_there_is_room():
    message = Message(b"v", None, (("h", b"1"), ("h", None)), 5)
    (found,) = read_entries(write_entries([message], 3, 0, 7), 0).messages
    assert found.message == message
    with pytest.raises(UnsupportedError, match="headers"):
        write_entries([message], 2, 0, 7)


@pytest.mark.parametrize("version", [2, 3, 6])
def test_zstd_is_for_brokers_that_know_it(version):
    with pytest.raises(UnsupportedError, match="zstd"):
        write_entries(MESSAGES, version, 4, 7)
    assert read_header(write_entries(MESSAGES, 7, 4, 7)).compression == 4


def test_codecs_have_names_and_numbers():
    assert [codec_of(name) for name in ("none", "GZIP", "2", "lz4", "zstd")] == [0, 1, 2, 3, 4]
    for name in ("rar", "5", ""):
        with pytest.raises(KeyError):
            codec_of(name)


@given(st.lists(st.integers(0, 300)), st.integers(1, 1000))
def test_portions_are_in_order_as_large_as_they_may_be_and_never_empty(sizes, limit):
    messages = [Message(b"x" * size) for size in sizes]
    found = list(portions(messages, limit))
    assert [one for some in found for one in some] == messages
    assert all(found)
    totals = [sum(one.size for one in some) for some in found]
    assert all(total <= limit or len(some) == 1 for total, some in zip(totals, found, strict=True))
    for total, following in zip(totals, found[1:], strict=False):
        assert total + following[0].size > limit  # it would not have fitted in


@pytest.mark.parametrize("version", [0, 2, 3])
def test_a_message_never_takes_more_than_it_is_counted_for(version):
    for message in (Message(None), *MESSAGES, Message(b"x" * 10_000, b"y" * 300)):
        assert len(write_entries([message], version, 0, 7)) <= message.size


@pytest.mark.parametrize("length", [-1, 0, 4, -(2**31)])
def test_a_length_that_cannot_be_one_is_refused(length):
    data = bytearray(build_batch([Record(None, b"v")], now_ms=1))
    data[8:12] = length.to_bytes(4, signed=True)
    with pytest.raises(CorruptMessageError):
        read_entries(bytes(data), 0)


def test_a_marker_that_a_cleaner_has_emptied_is_passed_over():
    """Kafka keeps the last batch of a producer, without its records, in compacted topics: a marker, too."""
    marker = build_marker(Marker.COMMIT, producer_id=7, producer_epoch=0, coordinator_epoch=0, now_ms=1)
    emptied = bytearray(marker[:HEADER_SIZE])
    emptied[8:12] = (HEADER_SIZE - 12).to_bytes(4)
    emptied[HEADER_SIZE - 4 :] = bytes(4)
    emptied[CRC_AT:CHECKED_FROM] = crc32c(bytes(emptied[CHECKED_FROM:])).to_bytes(4)
    after = build_batch([Record(None, b"v")], now_ms=1, base_offset=1)
    found = read_entries(bytes(emptied + after), 0, [])
    assert [one.message.value for one in found.messages] == [b"v"]


def test_two_transactions_that_were_aborted_are_both_passed_over():
    def batch(at, producer):
        record = [Record(None, b"%d" % producer)]
        return bytes(
            build_batch(
                record,
                now_ms=1,
                base_offset=at,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
        )

    data = batch(0, 7) + batch(1, 8) + batch(2, 9)
    for aborted in (
        [AbortedTransaction(8, 1), AbortedTransaction(7, 0)],
        [AbortedTransaction(7, 0), AbortedTransaction(8, 0)],
    ):
        assert [one.message.value for one in read_entries(data, 0, aborted).messages] == [b"9"]
    later = [AbortedTransaction(7, 1)]  # what it wrote before is of a transaction that was committed
    assert len(read_entries(data, 0, later).messages) == 3
