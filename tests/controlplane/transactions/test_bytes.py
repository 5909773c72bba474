"""What is sent and read about transactions is what the brokers' own declarations say."""

from __future__ import annotations

import struct

import pytest

from controlplane.kafka import transaction_bytes as wire
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages import produce, transactions

LONG = "x" * 300
"""Whose length takes two bytes."""


def test_a_list_is_asked_for_and_read():
    asked = decode(transactions.ListTransactionsRequest, 1, wire.list_request(["Ongoing"], 5000))
    assert asked == transactions.ListTransactionsRequest(("Ongoing",), (), 5000)
    assert decode(transactions.ListTransactionsRequest, 1, wire.list_request([], None)).duration_filter == -1
    rows = tuple(
        transactions.ListTransactionsResponseTransactionState(name, 7, "Ongoing") for name in ("k.copier", LONG)
    )
    answer = transactions.ListTransactionsResponse(0, 0, ("Foo",), rows)
    assert wire.listed(encode(answer, 1)) == (0, {"k.copier": "Ongoing", LONG: "Ongoing"})
    assert wire.listed(encode(transactions.ListTransactionsResponse(error_code=14), 1)) == (14, {})


def described():
    topic = transactions.DescribeTransactionsResponseTopicData("k.orders", (2, 0))
    state = transactions.DescribeTransactionsResponseTransactionState
    there = state(0, "k.copier", "Ongoing", 60_000, 1_700_000_000_000, 7, 3, (topic,))
    return transactions.DescribeTransactionsResponse(0, (there, state(error_code=105, transactional_id=LONG)))


def test_descriptions_are_asked_for_and_read():
    asked = decode(transactions.DescribeTransactionsRequest, 0, wire.describe_request(["k.copier", LONG]))
    assert asked.transactional_ids == ("k.copier", LONG)
    found = wire.described(encode(described(), 0))
    places = (("k.orders", 0), ("k.orders", 2))
    assert found["k.copier"] == (
        0,
        wire.Transaction("k.copier", "Ongoing", 7, 3, 60_000, 1_700_000_000_000, places),
    )
    assert found[LONG][0] == 105


def test_an_answer_that_ends_early_is_an_error():
    whole = encode(described(), 0)
    for size in range(len(whole) - 1):
        with pytest.raises((struct.error, IndexError)):
            wire.described(whole[:size])


def test_producers_are_asked_for_and_those_with_an_open_transaction_are_read():
    places = [("k.orders", 0), ("k.orders", 1), ("k.other", 0)]
    asked = decode(produce.DescribeProducersRequest, 0, wire.producers_request(places))
    assert [(topic.name, topic.partition_indexes) for topic in asked.topics] == [
        ("k.orders", (0, 1)),
        ("k.other", (0,)),
    ]
    producers = (produce.ProducerState(7, 3, 10, 20, 1, 55), produce.ProducerState(8, 0, 1, 2, 0, -1))
    rows = (produce.PartitionResponse(0, 0, None, producers), produce.PartitionResponse(1, 6, "elsewhere", ()))
    answer = produce.DescribeProducersResponse(0, (produce.TopicResponse("k.orders", rows),))
    assert wire.open_producers(encode(answer, 0)) == {("k.orders", 0): {7: 55}}
    assert wire.producers(encode(answer, 0)) == {("k.orders", 0): (wire.OpenProducer(7, 3, 1, 20, 55),)}


@pytest.mark.parametrize(("known", "said"), [(5, 5), (-1, 0)])
def test_an_abort_is_told_to_one_partition_by_what_its_log_knows(known, said):
    request = wire.abort_request((LONG, 300), wire.OpenProducer(2**40, 3, known, 20, 55))
    (marker,) = decode(transactions.WriteTxnMarkersRequest, 1, request).markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (2**40, 3, False)
    assert marker.coordinator_epoch == said
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [(LONG, (300,))]


def test_what_came_of_an_abort_is_read():
    row = transactions.WritableTxnMarkerPartitionResult(300, 47)
    topic = transactions.WritableTxnMarkerTopicResult(LONG, (row,))
    answer = transactions.WriteTxnMarkersResponse((transactions.WritableTxnMarkerResult(7, (topic,)),))
    assert wire.aborted(encode(answer, 1)) == 47
    with pytest.raises(struct.error):
        wire.aborted(encode(transactions.WriteTxnMarkersResponse(()), 1))


def test_a_producer_is_fenced_by_initialising_its_id():
    asked = decode(produce.InitProducerIdRequest, 1, wire.fence_request("k.copier", 60_000))
    assert (asked.transactional_id, asked.transaction_timeout_ms) == ("k.copier", 60_000)
    assert (
        wire.fenced(encode(produce.InitProducerIdResponse(error_code=51, producer_id=-1, producer_epoch=-1), 1)) == 51
    )
