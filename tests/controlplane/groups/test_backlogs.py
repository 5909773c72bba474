"""What brokers are asked and answer about bytes that are left to read, and how long they are waited for."""

from __future__ import annotations

import struct
from contextlib import nullcontext

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


def written(rows, high_watermark=100):
    """`rows`: error and sizes by place."""
    topics = tuple(
        messages.BacklogTopicResult(topic, (messages.BacklogPartitionResult(index, error, sizes, high_watermark),))
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
    led = {place: wire.Told(sizes, 2**40) for place, (error, sizes) in rows.items() if not error}
    assert wire.answer(written(rows, 2**40)) == led


def test_an_answer_that_ends_early_is_none():
    whole = written({("t", 0): (0, (1, 2))})
    for size in range(len(whole) - 2):
        with pytest.raises((struct.error, IndexError)):
            wire.answer(whole[:size])


@pytest.fixture
def door(monkeypatch):
    """By port what that broker answers, one request after the other: bytes, or an error."""
    answers, asked = {}, []

    def answer(_self, address, requests, _timeout_s):
        for request, each in zip(requests, answers[address[1]], strict=False):
            asked.append((address[1], request))
            if isinstance(each, Exception):
                raise each
            yield each

    monkeypatch.setattr(backlog_door.KafkaBacklogs, "_answers", answer)
    monkeypatch.setattr(backlog_door.KafkaBacklogs, "_brokers", lambda _self: [("127.0.0.1", port) for port in answers])
    return backlog_door.KafkaBacklogs(ClusterAddress(0, ""), Identification("s")), answers, asked


def test_each_partition_is_told_of_by_its_leader(door):
    made, answers, _ = door
    answers |= {1: [written({("t", 0): (0, (70, 30)), ("t", 1): (6, ())})], 2: [written({("t", 1): (0, (5,))})]}
    assert made.backlogs([("t", 0, 1, 10), ("t", 0, 9, 10), ("t", 1, 4, 10), ("t", 0, 1, 10)]) == {
        ("t", 0, 1, 10): 70, ("t", 0, 9, 10): 30, ("t", 1, 4, 10): 5,
    }  # fmt: skip


def test_nobody_is_asked_about_nothing_and_no_more_than_is_needed(door):
    made, answers, asked = door
    answers |= {1: [written({("t", 0): (0, (70,))})], 2: [b""]}
    assert made.backlogs([]) == {}
    assert made.backlogs([("t", 0, 1, 10)]) == {("t", 0, 1, 10): 70}
    assert [port for port, _ in asked] == [1]


@pytest.mark.parametrize("answer", [ClusterUnavailable("away"), b"\2", written({("t", 0): (0, (1, 2))})])
def test_a_broker_that_is_away_or_cannot_be_understood_leaves_it_unknown(door, answer):
    made, answers, _ = door
    answers |= {1: [answer], 2: [written({("t", 1): (0, (5,))})]}
    assert made.backlogs([("t", 0, 1, 10), ("t", 1, 1, 10)]) == {("t", 1, 1, 10): 5}


def test_a_leader_whose_high_watermark_is_before_the_end_that_is_known_would_count_too_little(door):
    made, answers, asked = door
    answers |= {1: [written({("t", 0): (0, (400, 0))}, high_watermark=900)], 2: [b""]}
    assert made.backlogs([("t", 0, 500, 1_000), ("t", 0, 950, 1_000)]) == {}
    assert [port for port, _ in asked] == [1], "nobody else leads it"
    answers[1] = [written({("t", 0): (0, (500,))}, high_watermark=1_000)]
    assert made.backlogs([("t", 0, 500, 1_000)]) == {("t", 0, 500, 1_000): 500}


def test_a_request_asks_about_some_and_what_is_answered_before_a_broker_is_too_late_counts(door, monkeypatch):
    monkeypatch.setattr(backlog_door, "AT_ONCE", 2)
    made, answers, asked = door
    answers |= {1: [written({("t", 0): (0, (9, 8))}), written({("t", 0): (0, (7,)), ("t", 1): (6, ())})]}
    answers |= {2: [ClusterUnavailable("late")]}
    stretches = [("t", 0, offset, 10) for offset in (1, 2, 3)] + [("t", 1, 1, 10)]
    assert made.backlogs(stretches) == dict(zip(stretches, (9, 8, 7), strict=False))
    assert asked[:2] == [(1, wire.request({("t", 0): [1, 2]})), (1, wire.request({("t", 0): [3], ("t", 1): [1]}))]
    assert asked[2:] == [(2, wire.request({("t", 1): [1]}))]


def test_all_requests_to_a_broker_have_its_second_together(monkeypatch):
    now, waits = [0.0], []

    def ask(connection, *_what, **_how):
        waits.append(connection.waits_s)
        now[0] += 0.4
        return b"answer"

    class Connection:
        def settimeout(self, seconds):
            self.waits_s = round(seconds, 1)

    monkeypatch.setattr(backlog_door.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(backlog_door.leaving, "signed_in", lambda *_who, timeout_s: nullcontext(Connection()))
    monkeypatch.setattr(backlog_door.leaving, "ask", ask)
    made = backlog_door.KafkaBacklogs(ClusterAddress(0, ""), Identification("s"))
    assert list(made._answers(("127.0.0.1", 1), [b"request"] * 9, 1.0)) == [b"answer"] * 3
    assert waits == [1.0, 0.6, 0.2]


def test_names_are_the_tenants_own(monkeypatch):
    class Door:
        def backlogs(self, stretches):
            return dict.fromkeys([*stretches, ("other.t", 0, 1, 9)], 7)

    monkeypatch.setattr(backlog_door, "door", lambda _cluster: Door())
    assert backlog_door.read(None, "ins-aaaabbbb", [("t", 0, 1, 9)]) == {("t", 0, 1, 9): 7}


def test_a_page_asks_about_so_many_offsets_and_no_more(monkeypatch):
    asked = []

    class Door:
        def backlogs(self, stretches):
            asked.extend(stretches)
            return dict.fromkeys(stretches, 7)

    monkeypatch.setattr(backlog_door, "door", lambda _cluster: Door())
    some = [("t", number % 60, number, 20_000) for number in range(18_000)]
    assert list(backlog_door.read(None, "ins-aaaabbbb", some)) == some[: backlog_door.MOST_SIZED]
    assert len(asked) == backlog_door.MOST_SIZED
