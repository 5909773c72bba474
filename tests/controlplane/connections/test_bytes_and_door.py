"""What brokers are asked and answer about connections, and how long they are waited for."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import connection_bytes as wire
from controlplane.kafka import connection_door
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages import connections as messages

TEXTS = st.text(max_size=20)
NUMBERS = st.integers(0, 2**62)


def rows(made, texts, numbers):
    return st.lists(st.builds(made, *[TEXTS] * texts, *[NUMBERS] * numbers), max_size=3).map(tuple)


RESTS = st.builds(messages.FlowOfTheRest, *[NUMBERS] * 4)
REFUSED = st.lists(
    st.builds(messages.RefusedConnectionRow, *[TEXTS] * 3, *[NUMBERS] * 2, *[TEXTS] * 2), max_size=3
).map(tuple)
ANSWERS = st.builds(
    messages.DescribeConnectionsResponse,
    st.sampled_from([0, 91]),
    rows(messages.ConnectionRow, 6, 5),
    RESTS,
    REFUSED,
    NUMBERS,
    rows(messages.TalkerRow, 3, 3),
    RESTS,
)


def fields(row):
    return tuple(getattr(row, name) for name in row.__dataclass_fields__)


def joined(data):
    return b"".join(map(bytes, data)) if isinstance(data, list) else bytes(data)


@given(ANSWERS)
def test_an_answer_is_read_as_a_broker_writes_it(answer):
    error, read = wire.answer(joined(encode(answer, 0)))
    assert error == answer.error_code
    assert [tuple(row) for row in read.connections] == [fields(row) for row in answer.connections]
    assert [tuple(row) for row in read.refused] == [fields(row) for row in answer.refused]
    assert [tuple(row) for row in read.talkers] == [fields(row) for row in answer.talkers]
    assert tuple(read.other_connections) == fields(answer.other_connections)
    assert (read.other_refused, tuple(read.other_talkers)) == (answer.other_refused, fields(answer.other_talkers))


@given(st.text(max_size=20), st.none() | st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_a_broker_reads_the_request_as_it_is_meant(instance_id, topic, most_connections, most_talkers):
    data = wire.request(instance_id, topic, most_connections, most_talkers)
    read = decode(messages.DescribeConnectionsRequest, 0, data)
    assert fields(read) == (instance_id, topic, most_connections, most_talkers)


@given(ANSWERS, st.data())
def test_an_answer_that_ends_early_is_none(answer, data):
    whole = joined(encode(answer, 0))
    cut = whole[: data.draw(st.integers(0, len(whole) - 2))]
    with pytest.raises((struct.error, IndexError)):
        wire.answer(cut)


def written(**said):
    return joined(encode(messages.DescribeConnectionsResponse(**said), 0))


@pytest.fixture
def door(monkeypatch):
    """By address what that broker answers: bytes, or an error."""
    answers = {}

    def ask(_self, address, _request, _timeout_s):
        answer = answers[address[1]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(connection_door.KafkaConnections, "_ask", ask)
    monkeypatch.setattr(
        connection_door.KafkaConnections, "_brokers", lambda _self: {port: ("127.0.0.1", port) for port in answers}
    )
    made = connection_door.KafkaConnections(ClusterAddress(0, ""), Identification("s"))
    return made, answers


def test_a_broker_that_is_away_or_cannot_be_understood_hides_no_other(door):
    made, answers = door
    answers |= {1: ClusterUnavailable("away"), 2: written(other_refused=7), 3: b"\0", 4: written(error_code=35)}
    found = made.asked("ins-aaaabbbb", None, 1, 1)
    assert {broker: answer is not None for broker, answer in found.items()} == {1: False, 2: True, 3: False, 4: False}
    assert found[2].other_refused == 7


def test_nobody_is_connected_where_the_instance_is_not_known(door):
    made, answers = door
    answers |= {1: written(error_code=91)}
    assert made.asked("ins-aaaabbbb", None, 1, 1) == {1: wire.NOTHING}


def test_brokers_that_hang_are_waited_for_a_second_each_and_three_in_all(monkeypatch):
    """They are stopped: their systems take connections, and nobody answers."""
    monkeypatch.setattr(connection_door, "BROKER_S", 0.1)
    monkeypatch.setattr(connection_door, "ROUND_S", 0.25)
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
    ports = {number: ("127.0.0.1", one.getsockname()[1]) for number, one in enumerate(listeners)}
    monkeypatch.setattr(connection_door.KafkaConnections, "_brokers", lambda _self: ports)
    waited, ask = [], connection_door.KafkaConnections._ask

    def noted(self, address, request, timeout_s):
        waited.append(timeout_s)
        return ask(self, address, request, timeout_s)

    monkeypatch.setattr(connection_door.KafkaConnections, "_ask", noted)
    made = connection_door.KafkaConnections(ClusterAddress(0, ""), Identification("s"))
    began, threads = time.monotonic(), set(threading.enumerate())
    assert made.asked("ins-aaaabbbb", None, 1, 1) == dict.fromkeys(range(6))
    assert time.monotonic() - began < 10  # nothing but these times bounds it
    assert max(waited) <= 0.1
    assert sum(waited) <= 0.25 + 0.05, "who is asked when the time is nearly over has what is left of it"
    assert set(threading.enumerate()) <= threads
    for one in listeners:
        one.close()
