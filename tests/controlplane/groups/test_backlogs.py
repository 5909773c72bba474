"""What brokers are asked and answer about bytes that are left to read, and how long they are waited for."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import backlog_bytes as wire
from controlplane.kafka import backlog_door
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages import backlogs as messages

NUMBERS = st.integers(0, 2**62)
PLACES = st.tuples(st.text(min_size=1, max_size=20), st.integers(0, 2**31 - 1))


def joined(data):
    return b"".join(map(bytes, data)) if isinstance(data, list) else bytes(data)


def written(rows):
    """`rows`: error and sizes by place."""
    topics = tuple(
        messages.BacklogTopicResult(topic, (messages.BacklogPartitionResult(index, error, sizes),))
        for (topic, index), (error, sizes) in rows.items()
    )
    return joined(encode(messages.DescribeBacklogsResponse(topics), 0))


@given(st.dictionaries(PLACES, st.lists(NUMBERS, max_size=4), max_size=5))
def test_a_broker_reads_the_request_as_it_is_meant(offsets):
    read = decode(messages.DescribeBacklogsRequest, 0, wire.request(offsets))
    assert {
        (topic.topic, row.partition): list(row.offsets) for topic in read.topics for row in topic.partitions
    } == offsets


@given(
    st.dictionaries(PLACES, st.tuples(st.sampled_from([0, 3, 6]), st.lists(NUMBERS, max_size=4).map(tuple)), max_size=5)
)
def test_an_answer_is_read_as_a_broker_writes_it_without_what_others_lead(rows):
    assert wire.answer(written(rows)) == {place: sizes for place, (error, sizes) in rows.items() if not error}


def test_an_answer_that_ends_early_is_none():
    whole = written({("t", 0): (0, (1, 2))})
    for size in range(len(whole) - 2):
        with pytest.raises((struct.error, IndexError)):
            wire.answer(whole[:size])


@pytest.fixture
def door(monkeypatch):
    """By port what that broker answers: bytes, or an error."""
    answers, asked = {}, []

    def ask(_self, address, request, _timeout_s):
        asked.append(address[1])
        answer = answers[address[1]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(backlog_door.KafkaBacklogs, "_ask", ask)
    monkeypatch.setattr(backlog_door.KafkaBacklogs, "_brokers", lambda _self: [("127.0.0.1", port) for port in answers])
    return backlog_door.KafkaBacklogs(ClusterAddress(0, ""), Identification("s")), answers, asked


def test_each_partition_is_told_of_by_its_leader(door):
    made, answers, _ = door
    answers |= {1: written({("t", 0): (0, (70, 30)), ("t", 1): (6, ())}), 2: written({("t", 1): (0, (5,))})}
    assert made.backlogs([("t", 0, 1), ("t", 0, 9), ("t", 1, 4), ("t", 0, 1)]) == {
        ("t", 0, 1): 70, ("t", 0, 9): 30, ("t", 1, 4): 5,
    }  # fmt: skip


def test_nobody_is_asked_about_nothing_and_no_more_than_is_needed(door):
    made, answers, asked = door
    answers |= {1: written({("t", 0): (0, (70,))}), 2: b""}
    assert made.backlogs([]) == {}
    assert made.backlogs([("t", 0, 1)]) == {("t", 0, 1): 70}
    assert asked == [1]


@pytest.mark.parametrize("answer", [ClusterUnavailable("away"), b"\2", written({("t", 0): (0, (1, 2))})])
def test_a_broker_that_is_away_or_cannot_be_understood_leaves_it_unknown(door, answer):
    made, answers, _ = door
    answers |= {1: answer, 2: written({("t", 1): (0, (5,))})}
    assert made.backlogs([("t", 0, 1), ("t", 1, 1)]) == {("t", 1, 1): 5}


def test_names_are_the_tenants_own(monkeypatch):
    class Door:
        def backlogs(self, spots):
            return dict.fromkeys([*spots, ("other.t", 0, 1)], 7)

    monkeypatch.setattr(backlog_door, "door", lambda _cluster: Door())
    assert backlog_door.read(None, "ins-aaaabbbb", [("t", 0, 1)]) == {("t", 0, 1): 7}
