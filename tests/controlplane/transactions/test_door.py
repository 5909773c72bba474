"""What brokers answer about transactions, and what is made of it."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import client, transaction_door
from controlplane.kafka import transaction_bytes as wire
from controlplane.kafka.transaction_door import CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, NOT_FOUND
from dataplane.protocol.codec import encode
from dataplane.protocol.messages.produce import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from dataplane.protocol.messages.transactions import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponse,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
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


# --- transactions that hang -------------------------------------------------------------------------------------------

OPEN = wire.OpenProducer(7, 3, 1, 20, 55)
HERE = ("k.orders", 0)


def producing(code=0):
    rows = (ProducerState(7, 3, 10, 20, 1, 55), ProducerState(8, 0, 1, 2, 0, -1))
    return encode(
        DescribeProducersResponse(0, (TopicResponse("k.orders", (PartitionResponse(0, code, None, rows),)),)), 0
    )


def ended(code):
    topic = WritableTxnMarkerTopicResult("k.orders", (WritableTxnMarkerPartitionResult(0, code),))
    return encode(WriteTxnMarkersResponse((WritableTxnMarkerResult(7, (topic,)),)), 1)


@pytest.fixture
def led(monkeypatch):
    """Which broker leads each partition; brokers that are not in the cluster do not answer."""
    leaders = {HERE: 2, ("k.orders", 1): 9}
    monkeypatch.setattr(
        transaction_door.KafkaTransactions,
        "_by_leader",
        lambda self, places: {
            self._brokers()[leaders[place]]: [place] for place in places if leaders[place] in self._brokers()
        },
    )


def test_leaders_say_who_has_a_transaction_open(door, answers, led):
    answers[TWO] = [producing()]
    assert door.producers([HERE, ("k.orders", 1)]) == {HERE: (OPEN,)}
    answers[TWO] = [None]
    assert door.producers([HERE]) == {}, "which is not: nobody has"
    answers[TWO] = [producing(6)]
    assert door.producers([HERE]) == {}


def test_an_abort_goes_to_the_leader(door, answers, led):
    answers[TWO] = [ended(0)]
    door.abort(HERE, OPEN)
    assert answers[TWO] == []


@pytest.mark.parametrize(("code", "said"), [(6, "leads the partition"), (47, "meanwhile"), (52, "meanwhile")])
def test_an_abort_that_comes_too_late_or_to_somebody_else_is_tried_again(door, answers, led, code, said):
    answers[TWO] = [ended(code)]
    with pytest.raises(client.ClusterChanging, match=said):
        door.abort(HERE, OPEN)


def test_an_abort_that_is_refused_is_said(door, answers, led):
    answers[TWO] = [ended(31)]
    with pytest.raises(ClusterUnavailable, match="31"):
        door.abort(HERE, OPEN)


def test_a_partition_without_a_leader_is_told_nothing(door, answers, led):
    with pytest.raises(client.ClusterChanging, match="leads the partition"):
        door.abort(("k.orders", 1), OPEN)


@pytest.mark.parametrize(("leaders", "known"), [((1, 2, 1), True), ((1, None), False), ((1, 9), False), ((), True)])
def test_every_partition_of_ids_has_a_coordinator_or_it_is_said(door, answers, monkeypatch, leaders, known):
    rows = tuple(client.Partition(number, leader, (1, 2), (1,)) for number, leader in enumerate(leaders))
    layout = client.Layout("__transaction_state", rows) if rows else None
    monkeypatch.setattr(client, "admin", lambda _cluster: SimpleNamespace(layout=lambda _name: layout))
    if known:
        assert door.coordinators() == leaders
    else:
        with pytest.raises(client.ClusterChanging, match="coordinates"):
            door.coordinators()
