"""A fetch of a known shape that has read all waits without having been decoded; what comes of it is as on the slow path."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dataplane.fetching.support import single
from tests.dataplane.fetching.test_fetch_fast_path import Gate, frame_of, pair

WAITS = {"max_wait_ms": 500}


@pytest.fixture
def cluster():
    made = single(2)
    made.produce(1, "first")
    made.run(0.1)
    return made


def waiting_pair(cluster, version=12, **members):
    """Both have read the first record and wait for the second."""
    clients = pair(cluster, **members)
    for client in clients:
        assert client.ask(frame_of(version, 0, **WAITS))
        assert client.ask(frame_of(version, 1, correlation_id=8, **WAITS)) == b""
    return clients


def waiters(cluster):
    return len(cluster[1].replicas.registry.get("aaaabbbb.orders", 0).queues.read_waiters)


def told(client):
    return client.connection.sent[1:]


@pytest.mark.parametrize("version", [10, 12, 17])
def test_it_is_answered_when_something_comes(cluster, version):
    quick, slow = waiting_pair(cluster, version)
    cluster.produce(1, "second")
    cluster.run(0.01)
    assert told(quick) == told(slow)
    assert len(told(quick)) == 1
    assert quick.hits == 1
    assert waiters(cluster) == 0


def test_it_is_answered_with_nothing_when_its_time_is_up(cluster):
    quick, slow = waiting_pair(cluster)
    cluster.run(0.45)
    assert told(quick) == told(slow) == []
    cluster.run(0.1)
    assert told(quick) == told(slow)
    assert len(told(quick)) == 1
    assert quick.hits == 1


def test_answers_keep_their_order(cluster):
    quick, slow = waiting_pair(cluster)
    for client in (quick, slow):
        assert client.ask(frame_of(12, 0, correlation_id=9)) == b""
    cluster.produce(1, "second")
    cluster.run(0.01)
    assert b"".join(told(quick)) == b"".join(told(slow))
    assert b"".join(told(quick))[4:8] == (8).to_bytes(4)


def test_a_new_epoch_ends_the_wait(cluster):
    quick, slow = waiting_pair(cluster)
    cluster.elect(1, (1,))
    cluster.run(0.01)
    assert len(told(quick)) == 1
    assert quick.hits == 1
    assert told(quick) == told(slow)


def test_a_topic_that_is_denied_meanwhile_is_denied(cluster):
    quick, slow = waiting_pair(cluster)
    quick.door.instance.deny("orders")
    cluster.run(0.6)
    assert told(quick) == told(slow)
    assert len(told(quick)) == 1
    assert quick.hits == 0


def test_nothing_is_left_of_a_connection_that_ends(cluster):
    quick, slow = waiting_pair(cluster)
    assert waiters(cluster) == 2
    for client in (quick, slow):
        client.client.session.instance = None
        client.client.closed("gone")
    assert waiters(cluster) == 0
    cluster.produce(1, "second")
    cluster.run(0.6)
    assert told(quick) == told(slow) == []


def test_what_waits_is_counted_and_given_back(cluster):
    quick, slow = waiting_pair(cluster)
    assert quick.client.answers._bytes_in_flight == slow.client.answers._bytes_in_flight > 0
    cluster.produce(1, "second")
    cluster.run(0.01)
    assert quick.client.answers._bytes_in_flight == slow.client.answers._bytes_in_flight == 0
    assert quick.client.answers._waits == {}


STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 4), st.sampled_from([0, 1, 200])),
    st.tuples(st.just("produce"), st.integers(0, 300)),
    st.tuples(st.just("pass"), st.sampled_from([0.005, 0.2, 0.6])),
    st.tuples(st.just("elect")),
    st.tuples(st.just("deny")),
    st.tuples(st.just("allow")),
)


@given(
    version=st.integers(10, 17),
    steps=st.lists(STEPS, min_size=3, max_size=14),
    allowed=st.sampled_from([None, 0, 250]),
)
@settings(max_examples=100, deadline=None)
def test_answers_are_those_of_the_slow_path(version, steps, allowed):
    cluster = single(1)
    quick, slow = pair(cluster, Gate(allowed=allowed))
    for number, (what, *of) in enumerate(steps):
        if what == "ask":
            frame = frame_of(version, of[0], correlation_id=number, min_bytes=of[1], **WAITS)
            quick.ask(frame)
            slow.ask(frame)
        elif what == "produce":
            cluster.produce(1, "x" * of[0])
        elif what == "pass":
            cluster.run(of[0])
        elif what == "elect":
            cluster.elect(1, (1,))
        elif what == "deny":
            quick.door.instance.deny("orders")
        else:
            quick.door.instance.deny()
        cluster.run(0.002)
        assert b"".join(quick.connection.sent) == b"".join(slow.connection.sent)
    cluster.run(3)
    assert b"".join(quick.connection.sent) == b"".join(slow.connection.sent)
