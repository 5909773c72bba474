"""The low-level consumer: each partition's answer is its own, errors are those of the documents, nothing is kept."""

from __future__ import annotations

import pytest

from dataplane.clients.errors import BrokerError, ConnectionLostError, CorruptMessageError, OffsetOutOfRangeError
from dataplane.clients.messages import Message, read_entries
from dataplane.clients.simple_consumer import FetchRequest, SimpleConsumer
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import AbortedTransaction
from dataplane.records.batch import Record, build_batch
from dataplane.records.control import Marker, build_marker
from dataplane.records.legacy import Message as OldMessage
from dataplane.records.legacy import write_message_set
from tests.dataplane.clients.small_broker import SmallBroker


@pytest.fixture
def broker():
    with SmallBroker({"t": 2}) as made:
        made.logs["t", 0] += [Message(b"a"), Message(b"b")]
        made.logs["t", 1] += [Message(b"c")]
        yield made


@pytest.fixture
def consumer(broker):
    with SimpleConsumer(*broker.address) as made:
        yield made


def test_multifetch_answers_each_in_order(consumer):
    wanted = [FetchRequest("t", 1, 0), FetchRequest("t", 0, 1)]
    found = consumer.multifetch(wanted)
    assert [[one.message.value for one in each] for each in found] == [[b"c"], [b"b"]]
    assert [each.next_offset for each in found] == [1, 2]
    assert [each.high_watermark for each in found] == [1, 2]


def test_multifetch_may_want_different_things_of_one_partition(consumer, broker):
    found = consumer.multifetch([FetchRequest("t", 0, 1), FetchRequest("t", 1, 0), FetchRequest("t", 0, 0)])
    assert [[one.message.value for one in each] for each in found] == [[b"b"], [b"c"], [b"a", b"b"]]
    assert broker.count(ApiKey.FETCH) == 2


def test_an_error_of_one_partition_is_raised_by_looking_into_it_only(consumer):
    good, bad = consumer.multifetch([FetchRequest("t", 0, 0), FetchRequest("t", 1, 7)])
    assert len(list(good)) == 2
    assert bad.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(OffsetOutOfRangeError):
        iter(bad)


def test_fetch_raises_at_once(consumer, broker):
    with pytest.raises(OffsetOutOfRangeError):
        consumer.fetch(FetchRequest("t", 0, 3))
    broker.refusals[ApiKey.FETCH] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    with pytest.raises(BrokerError) as refused:
        consumer.fetch(FetchRequest("t", 0, 0))
    assert refused.value.retriable


def test_it_is_stateless(consumer):
    assert [len(consumer.fetch(FetchRequest("t", 0, 0))) for _ in range(3)] == [2, 2, 2]


def test_a_lost_connection_is_made_anew_by_the_next_call(consumer, broker):
    broker.hang_ups.append(ApiKey.FETCH)
    with pytest.raises(ConnectionLostError):
        consumer.fetch(FetchRequest("t", 0, 0))
    assert len(consumer.fetch(FetchRequest("t", 0, 0))) == 2


# --- entries of a log -------------------------------------------------------------------------------------------------


def batch(base, *values, **options):
    return bytes(build_batch([Record(None, value) for value in values], now_ms=1, base_offset=base, **options))


def test_formats_stand_beside_each_other():
    rows = [OldMessage(at, 1, 0, 5, None, b"old") for at in range(3)]
    data = write_message_set(rows, 1) + write_message_set([OldMessage(3, 0, 0, -1, b"k", b"older")]) + batch(4, b"new")
    found = read_entries(data, 1)
    assert [(one.offset, one.message.value) for one in found.messages] == [
        (1, b"old"),
        (2, b"old"),
        (3, b"older"),
        (4, b"new"),
    ]
    assert found.next_offset == 5


def test_a_cut_last_entry_is_left_out_and_nothing_but_one_is_said():
    data = batch(0, b"a", b"b")
    assert read_entries(data + data[:-1], 0).next_offset == 2
    assert not read_entries(data + data[:30], 0).is_cut
    assert read_entries(data[:-1], 0).is_cut
    assert not read_entries(b"", 0).is_cut


@pytest.mark.parametrize("data", [batch(0, b"abc"), write_message_set([OldMessage(0, 0, 0, -1, None, b"abc")])])
def test_a_bit_that_fell_over_is_noticed(data):
    with pytest.raises(CorruptMessageError):
        read_entries(data[:-2] + bytes([data[-2] ^ 1]) + data[-1:], 0)


def test_markers_and_what_was_aborted_are_passed_over():
    def marker(which, at, producer):
        made = build_marker(which, producer_id=producer, producer_epoch=0, coordinator_epoch=0, now_ms=1)
        made[:8] = at.to_bytes(8)
        return bytes(made)

    def mine(at, producer, value):
        return batch(at, value, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)

    data = (
        mine(0, 7, b"aborted")
        + mine(1, 8, b"kept")
        + batch(2, b"plain")
        + marker(Marker.ABORT, 3, 7)
        + mine(4, 7, b"kept as well")
        + marker(Marker.COMMIT, 5, 8)
        + marker(Marker.COMMIT, 6, 7)
    )
    committed = read_entries(data, 0, [AbortedTransaction(7, 0)])
    assert [one.message.value for one in committed.messages] == [b"kept", b"plain", b"kept as well"]
    assert committed.next_offset == 7
    assert len(read_entries(data, 0).messages) == 4
