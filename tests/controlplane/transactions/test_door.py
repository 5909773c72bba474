"""What brokers answer about transactions, and what is made of it."""

from __future__ import annotations

import struct

import pytest

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import client, transaction_door
from controlplane.kafka import transaction_bytes as wire
from controlplane.kafka.transaction_door import CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, NOT_FOUND
from dataplane.protocol.codec import encode
from dataplane.protocol.messages.transactions import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponse,
)

ONE, TWO = ("127.0.0.1", 1), ("127.0.0.1", 2)


@pytest.fixture
def answers(monkeypatch):
    """By address: what that broker answers, one after the other; None: it is away."""
    found = {}

    def ask(_self, address, *_asked, **_named):
        answer = found[address].pop(0)
        if answer is None:
            raise client.ClusterChanging(client.NO_ANSWER)
        return answer

    monkeypatch.setattr(transaction_door.KafkaTransactions, "_ask", ask)
    monkeypatch.setattr(transaction_door.KafkaTransactions, "_brokers", lambda _self: {1: ONE, 2: TWO})
    monkeypatch.setattr(transaction_door.KafkaTransactions, "_has_coordinators", lambda _self: True)
    monkeypatch.setattr(transaction_door, "FENCE_EVERY_S", 0.0)
    return found


@pytest.fixture
def door():
    return transaction_door.KafkaTransactions(ClusterAddress(0, ""), Identification("s"))


def described(code, name="k.copier"):
    state = DescribeTransactionsResponseTransactionState(error_code=code, transactional_id=name)
    return encode(DescribeTransactionsResponse(transaction_states=(state,)), 0)


def fenced(code):
    return struct.pack(">ihqh", 0, code, 1, 1)


def test_the_broker_that_coordinates_an_id_is_found_among_all(door, answers):
    answers |= {ONE: [described(NOT_COORDINATOR)], TWO: [described(0)]}
    assert door.described(["k.copier"])["k.copier"].coordinator == TWO


def test_a_broker_that_is_away_hides_nothing_that_another_coordinates(door, answers):
    answers |= {ONE: [None], TWO: [described(0)]}
    assert list(door.described(["k.copier"])) == ["k.copier"]


def test_where_there_has_never_been_a_transaction_no_id_is_there(door, answers, monkeypatch):
    monkeypatch.setattr(transaction_door.KafkaTransactions, "_has_coordinators", lambda _self: False)
    answers |= {ONE: [described(NOT_COORDINATOR)], TWO: [described(NOT_COORDINATOR)]}
    assert door.described(["k.copier"]) == {}


def test_a_broker_that_is_away_may_know_an_id_that_no_other_coordinates(door, answers, monkeypatch):
    monkeypatch.setattr(transaction_door.KafkaTransactions, "_has_coordinators", lambda _self: False)
    answers |= {ONE: [None], TWO: [described(NOT_COORDINATOR)]}
    with pytest.raises(client.ClusterChanging):
        door.described(["k.copier"])


def test_an_id_that_its_coordinator_does_not_know_is_not_there(door, answers):
    answers |= {ONE: [described(NOT_FOUND)]}
    assert door.described(["k.copier"]) == {}


@pytest.mark.parametrize("first", [None, described(NOT_COORDINATOR), described(14)])
def test_an_id_that_nobody_speaks_for_is_not_taken_for_missing(door, answers, first):
    answers |= {ONE: [first], TWO: [described(NOT_COORDINATOR)]}
    with pytest.raises(client.ClusterChanging):
        door.described(["k.copier"])


def test_a_list_lacks_no_broker_silently(door, answers):
    nothing = encode(ListTransactionsResponse(), 1)
    for away in (None, encode(ListTransactionsResponse(error_code=14), 1)):
        answers |= {ONE: [nothing], TWO: [away]}
        with pytest.raises(client.ClusterChanging):
            door.listed(lambda _name: True, [], None)


def found():
    return transaction_door.Coordinated(wire.Transaction("k.copier", "Ongoing", 1, 0, 60_000, 1, ()), ONE)


def test_a_producer_is_fenced_when_its_transaction_is_aborted_everywhere(door, answers):
    answers |= {ONE: [fenced(CONCURRENT_TRANSACTIONS), fenced(CONCURRENT_TRANSACTIONS), fenced(0), fenced(0)]}
    door.fence(found())
    assert answers[ONE] == [fenced(0)]


def test_an_end_that_takes_long_is_said_to_go_on(door, answers, monkeypatch):
    monkeypatch.setattr(transaction_door, "FENCED_WITHIN_S", 0.0)
    answers |= {ONE: [fenced(CONCURRENT_TRANSACTIONS)]}
    with pytest.raises(client.ClusterChanging, match="is being ended"):
        door.fence(found())


def test_bytes_that_are_no_answer_are_a_broker_that_cannot_be_read(door, answers):
    answers |= {ONE: [b"\0"], TWO: [b"\0"]}
    with pytest.raises(ClusterUnavailable, match="cannot be read"):
        door.described(["k.copier"])
