"""Where followers lag, the short cut of Fetch ends where the slow path ends: nobody reads what may yet be lost."""

from __future__ import annotations

import pytest

from dataplane.protocol.headers import decode_response
from tests.dataplane.fetching.support import FETCH
from tests.dataplane.fetching.test_fetch_fast_path import frame_of, pair
from tests.dataplane.fetching.test_session_fast_path import Reader
from tests.dataplane.replication.cluster import ReplicatedCluster

VERSION = 12


@pytest.fixture
def cluster():
    """Three records are committed; two more are on the leader only, whose followers are gone and still in sync."""
    made = ReplicatedCluster()
    made.create((1, 2, 3))
    for number in range(3):
        made.produce(1, f"committed {number}")
        made.run(0.3)
    for follower in (2, 3):
        made.kill(follower)
    for number in range(2):
        made.produce(1, f"alone {number}", acks=1)
    made.run(0.05)
    partition = made[1].partition()
    assert (partition.state.high_watermark, partition.log.end_offset) == (3, 5)
    return made


def read(answer):
    """High watermark and records of an answer about one partition."""
    data = decode_response(FETCH, VERSION, answer[4:])[1].responses[0].partitions[0]
    return data.high_watermark, bytes(data.records or b"")


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_fetch_ends_at_the_high_watermark(cluster, offset):
    quick, slow = pair(cluster)
    for client in (quick, slow):
        client.ask(frame_of(VERSION, 0))
    answers = [client.ask(frame_of(VERSION, offset, correlation_id=8)) for client in (quick, slow)]
    assert quick.hits == 1
    assert answers[0] == answers[1]
    high_watermark, records = read(answers[0])
    assert high_watermark == 3
    assert b"committed 2" in records
    assert b"alone" not in records


@pytest.mark.parametrize("offset", [3, 4, 5])
def test_at_and_behind_it_there_is_nothing_to_read(cluster, offset):
    quick, slow = pair(cluster)
    for client in (quick, slow):
        client.ask(frame_of(VERSION, 0, min_bytes=0))
    answers = [client.ask(frame_of(VERSION, offset, correlation_id=8, min_bytes=0)) for client in (quick, slow)]
    assert answers[0] == answers[1]
    assert read(answers[0])[1] == b""
    assert quick.hits == (1 if offset == 3 else 0)


def test_who_waits_at_it_is_not_woken_by_what_is_not_committed(cluster):
    quick, slow = pair(cluster)
    waits = {"max_wait_ms": 60_000}
    for client in (quick, slow):
        client.ask(frame_of(VERSION, 0, **waits))
        assert client.ask(frame_of(VERSION, 3, correlation_id=8, **waits)) == b""
    cluster.produce(1, "alone as well", acks=1)
    cluster.run(0.1)
    assert len(quick.connection.sent) == len(slow.connection.sent) == 1
    cluster.run(10)  # the followers are not in sync any more: what the leader has is committed
    assert cluster[1].partition().state.high_watermark == 6
    assert quick.connection.sent[1:] == slow.connection.sent[1:]
    assert b"alone as well" in quick.connection.sent[1]


def test_in_a_session_too(cluster):
    quick, slow = (Reader(cluster, VERSION, {0: 0}, short_cut=short_cut) for short_cut in (True, False))
    for reader in (quick, slow):
        reader.ask({0: 1})
    answers = [reader.ask({0: 2}) for reader in (quick, slow)]
    assert quick.hits == 1
    assert answers[0] == answers[1]
    assert b"committed 2" in answers[0]
    assert b"alone" not in answers[0]
