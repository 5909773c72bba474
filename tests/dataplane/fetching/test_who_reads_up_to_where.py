"""Readers of committed transactions read up to the last stable offset, all others up to the high watermark.

Here a transaction is open since offset 2: whoever goes by the high watermark where the last stable offset is meant is found.
"""

from __future__ import annotations

import pytest

from dataplane.handlers.records.log_offsets import list_offsets
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.dataplane.fetching.support import FETCH, Door, rows, single
from tests.dataplane.fetching.test_fetch_fast_path import frame_of, pair
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster

VERSION = 12
UNCOMMITTED, COMMITTED = 0, 1
STABLE, ALL = 2, 5


@pytest.fixture
def cluster() -> ReplicatedCluster:
    """Five records are committed, and the last three belong to a transaction that is open."""
    made = single()
    for number in range(STABLE):
        made.produce(1, f"record {number}")
        made.run(0.01)
    for number in range(STABLE, ALL):
        made.produce(1, f"record {number}", producer=(7, 0, number - STABLE), transactional=True)
        made.run(0.01)
    return made


def read(data) -> tuple[int, int, int]:
    """(high watermark, last stable offset, how many records) of an answer about one partition."""
    return data.high_watermark, data.last_stable_offset, bytes(data.records or b"").count(b"record ")


@pytest.mark.parametrize(("level", "count"), [(UNCOMMITTED, ALL), (COMMITTED, STABLE)])
def test_a_fetch(cluster, level, count):
    assert read(rows(Door(cluster).fetch({0: 0}, isolation_level=level))[0]) == (ALL, STABLE, count)


@pytest.mark.parametrize(("level", "count"), [(UNCOMMITTED, ALL), (COMMITTED, STABLE)])
def test_a_fetch_by_the_short_cut(cluster, level, count):
    quick, slow = pair(cluster)
    for client in (quick, slow):
        client.ask(frame_of(VERSION, 1, isolation_level=level))
    answers = [client.ask(frame_of(VERSION, 0, correlation_id=8, isolation_level=level)) for client in (quick, slow)]
    assert quick.hits == 1
    assert answers[0] == answers[1]
    assert read(decode_response(FETCH, VERSION, answers[0][4:])[1].responses[0].partitions[0]) == (ALL, STABLE, count)


def test_behind_the_last_stable_offset_there_is_nothing_and_no_error(cluster):
    data = rows(Door(cluster).fetch({0: STABLE + 1}, isolation_level=COMMITTED))[0]
    assert (data.error_code, *read(data)) == (0, ALL, STABLE, 0)


@pytest.mark.parametrize(("level", "latest"), [(UNCOMMITTED, ALL), (COMMITTED, STABLE)])
def test_the_latest_offset(cluster, level, latest):
    row = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name=TOPIC, partitions=(row,))
    request = ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=(topic,))
    answer = list_offsets(cluster[1].replicas, request, 7, is_internal=False)
    assert answer.topics[0].partitions[0].offset == latest


@pytest.mark.parametrize(("level", "found"), [(UNCOMMITTED, ALL - 1), (COMMITTED, -1)])
@pytest.mark.parametrize("by", ["time", "the youngest"])
def test_by_time_nothing_is_found_that_is_not_stable(cluster, level, found, by):
    youngest = cluster[1].partition().log.segments[0].max_timestamp
    wanted = ListOffsetsPartition(partition_index=0, timestamp=youngest if by == "time" else -3)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=level, topics=(ListOffsetsTopic(name=TOPIC, partitions=(wanted,)),)
    )
    answer = list_offsets(cluster[1].replicas, request, 7, is_internal=False)
    assert answer.topics[0].partitions[0].offset == found


def test_neither_compaction_nor_retention_goes_further(cluster):
    replicas, log = cluster[1].replicas, cluster[1].partition().log
    assert replicas.cleaner._stable_of(log) == STABLE
    assert replicas.housekeeping.stable_of(log) == STABLE


def test_a_follower_is_told_both(monkeypatch):
    made, told = ReplicatedCluster(size=2), []
    made.create((1, 2))
    serve = made[1].fetches.serve

    def overheard(request, done):
        serve(request, lambda answer: (told.append(answer), done(answer)))

    monkeypatch.setattr(made[1].fetches, "serve", overheard)
    for number in range(3):
        how = {"producer": (7, 0, number - 1), "transactional": True} if number else {}
        made.produce(1, f"record {number}", **how)
        made.run(0.5)
    data = [row for answer in told for topic in answer.responses for row in topic.partitions][-1]
    assert (data.high_watermark, data.last_stable_offset) == (3, 1)
