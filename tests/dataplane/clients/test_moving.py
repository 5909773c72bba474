"""Records that are moved from batch to batch: they are what they were, wherever they came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.clients.messages import read_entries, read_raw
from dataplane.clients.moving import build_moved, read_moved
from dataplane.protocol.messages.fetch import AbortedTransaction
from dataplane.records import compression
from dataplane.records.batch import CorruptBatchError, Record, build_batch, check_stored, read_header, read_records
from dataplane.records.control import Marker, build_marker
from dataplane.records.header import HEADER, LOG_APPEND_TIME
from dataplane.records.legacy import Message as OldMessage
from dataplane.records.legacy import write_message_set

LIMIT = 2**20
BYTES = st.none() | st.binary(max_size=40)
RECORDS = st.lists(
    st.builds(
        Record,
        key=BYTES,
        value=BYTES,
        headers=st.lists(st.tuples(st.text(max_size=8), BYTES), max_size=3).map(tuple),
        timestamp=st.integers(0, 2**42),
    ),
    min_size=1,
    max_size=12,
)
CODECS = st.sampled_from(sorted(compression.NAMES))


def moved(batch, **more):
    return read_moved(batch, read_header(batch), LIMIT, **more)


def built(records, codec=compression.NONE, **more):
    options = {"now_ms": 9, "producer_id": 7, "producer_epoch": 1, "base_sequence": 3, "transactional": True}
    return build_moved(records, **(options | more), codec=codec)


def content(record):
    return record.key, record.value, record.headers, record.timestamp


@given(RECORDS, st.integers(0, 2**40), CODECS, CODECS)
def test_they_are_what_they_were(records, base, before, after):
    found = moved(build_batch(records, now_ms=5, base_offset=base, codec=before))
    assert [(one.offset, one.timestamp) for one in found] == [
        (base + number, record.timestamp) for number, record in enumerate(records)
    ]
    batch = built(found, after)
    header = read_header(batch)
    check_stored(batch, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 3)
    assert (header.is_transactional, header.is_control, header.compression) == (True, False, after)
    assert (header.count, header.last_offset_delta) == (len(records), len(records) - 1)
    assert header.max_timestamp == max(record.timestamp for record in records)
    assert [content(record) for record in read_records(batch)] == [content(record) for record in records]


@given(RECORDS, st.integers(0, 11))
def test_a_size_is_enough(records, at):
    found = moved(build_batch(records, now_ms=5))
    one = found[at % len(found)]
    assert len(built([one])) - HEADER.size <= one.size


def test_gaps_are_closed():
    records = [Record(None, b"%d" % number, timestamp=number) for number in range(6)]
    batch = built(moved(build_batch(records, now_ms=5, base_offset=100))[1::2])
    assert [(one.offset, one.value, one.timestamp) for one in read_records(batch)] == [
        (0, b"1", 1),
        (1, b"3", 3),
        (2, b"5", 5),
    ]


def test_times_are_those_that_readers_see():
    batch = build_batch([Record(None, b"a", timestamp=3), Record(None, b"b", timestamp=8)], now_ms=5)
    batch[22] |= LOG_APPEND_TIME
    assert [one.timestamp for one in moved(batch)] == [8, 8]
    without = build_batch([Record(None, b"a")], now_ms=-1)
    assert [one.timestamp for one in moved(without)] == [-1]
    assert [one.timestamp for one in read_records(built(moved(without)))] == [9]


@pytest.mark.parametrize("codec", sorted(compression.NAMES))
@pytest.mark.parametrize(
    "record",
    [Record(b"a needle", b""), Record(None, b"needles"), Record(None, b"", (("needle", None),))],
    ids=["key", "value", "header"],
)
def test_what_somebody_has_to_look_at_is_not_moved(record, codec):
    batch = build_batch([Record(None, b"hay" * 50), record], now_ms=5, codec=codec)
    assert moved(batch, unless=b"needle") is None
    assert len(moved(batch, unless=b"pin")) == 2


def test_what_is_no_batch_is_refused():
    batch = build_batch([Record(b"k", b"v" * 20), Record(None, b"w")], now_ms=5)
    header = read_header(batch)
    for data, said in (
        (batch[:-1], header),
        (batch + b"\0", header._replace(batch_length=header.batch_length + 1)),
        (batch, header._replace(count=1)),
        (batch, header._replace(count=3)),
        (batch, header._replace(count=1_000_000)),
        (batch, header._replace(attributes=compression.GZIP)),
    ):
        with pytest.raises(CorruptBatchError):
            read_moved(data, said, LIMIT)


def test_what_a_fetch_brings_is_the_same_taken_apart_or_not():
    plain = build_batch([Record(None, b"%d" % number, timestamp=number) for number in range(3)], now_ms=5)
    aborted = build_batch(
        [Record(None, b"x"), Record(None, b"y")],
        now_ms=5, base_offset=3, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True,
    )  # fmt: skip
    marker = build_marker(Marker.ABORT, producer_id=5, producer_epoch=0, coordinator_epoch=0, now_ms=5)
    marker[:8] = (5).to_bytes(8)
    last = build_batch([Record(b"k", b"z")], now_ms=5, base_offset=6)
    whole = bytes(plain + aborted + marker + last)
    transactions = [AbortedTransaction(5, 3)]
    for buffer in (whole, whole[:-1], bytes(plain[:-1]), b""):
        for offset in range(8):
            taken = read_entries(buffer, offset, transactions)
            raw = read_raw(buffer, offset, transactions)
            assert (raw.next_offset, raw.is_cut) == (taken.next_offset, taken.is_cut)
            assert [(one.offset, one.timestamp) for one in raw.records] == [
                (one.offset, one.message.timestamp) for one in taken.messages
            ]


def test_old_formats_are_taken_apart():
    assert read_raw(write_message_set([OldMessage(0, 1, 0, 5, b"k", b"v")], compression.NONE), 0) is None
    batch = bytes(build_batch([Record(None, b"needle")], now_ms=5))
    assert read_raw(batch, 0, unless=b"needle") is None
