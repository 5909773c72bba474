"""Readers of committed transactions see those, whole and in order, and nothing of others, however little they read at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response
from dataplane.records.control import Marker
from tests.dataplane.fetching.reading_transactions import COMMITTED, CommittedReader
from tests.dataplane.fetching.support import FETCH, Door, request, rows, single
from tests.dataplane.fetching.test_fetch_fast_path import frame_of, pair
from tests.dataplane.replication.cluster import ReplicatedCluster

STABLE_US = 0.01


def write(cluster, value, *, producer=None, sequence=0, epoch=0):
    if producer is None:
        done = cluster.produce(1, value)
    else:
        done = cluster.produce(1, value, producer=(producer, epoch, sequence), transactional=True)
    cluster.run(STABLE_US)
    return done


def end(cluster, producer, marker, **how):
    done = cluster.mark(1, marker, producer=producer, **how)
    cluster.run(STABLE_US)
    return done


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3)),
        st.tuples(st.just("plain"), st.just(0)),
        st.tuples(st.sampled_from(Marker), st.integers(0, 3)),
    ),
    max_size=30,
)


@settings(max_examples=25, deadline=None)
@given(steps=steps, max_bytes=st.sampled_from([1, 150, 400, 2**20]))
def test_a_reader_sees_what_was_committed(steps, max_bytes):
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), segment_bytes="500")
    log = []  # (value, producer) in order; None: outside of transactions
    sequences, opened, ends = dict.fromkeys(range(4), 0), {}, {}
    for number, (what, producer) in enumerate(steps):
        value = f"value {number}"
        if what == "plain":
            write(cluster, value)
            log.append((value, None))
        elif what == "write":
            write(cluster, value, producer=producer, sequence=sequences[producer])
            sequences[producer] += 1
            opened.setdefault(producer, len(log))
            log.append((value, producer))
        else:
            end(cluster, producer, what)
            first = opened.pop(producer, None)
            for place in range(first or 0, len(log)):
                if first is not None and log[place][1] == producer:
                    ends[place] = what
    stable = log[: min(opened.values(), default=len(log))]
    wanted = [
        value.encode()
        for place, (value, producer) in enumerate(stable)
        if producer is None or ends[place] is Marker.COMMIT
    ]
    assert CommittedReader(Door(cluster), max_bytes=max_bytes).read_all() == wanted


def test_only_what_lies_in_the_range_is_listed():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,), segment_bytes="300")
    for number in range(40):
        write(cluster, f"value {number}", producer=number % 3, sequence=number // 3)
        end(cluster, number % 3, Marker.ABORT)
    reader = CommittedReader(Door(cluster), max_bytes=100)
    assert reader.read_all() == []
    assert reader.aborted_listed <= 2 * 40


def waiting_reader(cluster, **members):
    door = Door(cluster)
    answers = []
    asked = request({0: cluster[1].partition().state.last_stable_offset}, isolation_level=COMMITTED, **members)
    door.send(asked, 12).then(lambda future: answers.append((cluster.network.clock.seconds, future.result())))
    return answers


def test_a_reader_that_waits_hears_of_nothing_before_the_marker():
    cluster = single()
    cluster.run(0.1)
    answers = waiting_reader(cluster, min_bytes=200, max_wait_ms=30_000)
    for sequence in range(5):
        write(cluster, "x" * 100, producer=7, sequence=sequence)
    cluster.run(1)
    assert not answers
    began = cluster.network.clock.seconds
    end(cluster, 7, Marker.COMMIT)
    (at, answer), *rest = answers
    assert not rest
    assert at - began < 0.01
    assert bytes(rows(answer)[0].records).count(b"x" * 100) == 5


def test_a_session_is_told_when_the_marker_comes():
    cluster = single()
    door = Door(cluster)
    first = door.fetch({0: 0}, isolation_level=COMMITTED, session_epoch=0)
    write(cluster, "in a transaction", producer=7)
    session = {"session_id": first.session_id, "isolation_level": COMMITTED}
    told = door.fetch(session_epoch=1, **session)
    assert (rows(told)[0].high_watermark, rows(told)[0].last_stable_offset, bytes(rows(told)[0].records)) == (1, 0, b"")
    end(cluster, 7, Marker.ABORT)
    told = rows(door.fetch(session_epoch=2, **session))[0]
    assert (told.high_watermark, told.last_stable_offset) == (2, 2)
    assert [(one.producer_id, one.first_offset) for one in told.aborted_transactions] == [(7, 0)]


@pytest.mark.parametrize("offset", [0, 2])
def test_the_short_cut_serves_committed_readers_where_nothing_was_aborted(offset):
    cluster = single()
    write(cluster, "aborted", producer=7)
    end(cluster, 7, Marker.ABORT)
    write(cluster, "plain")
    quick, slow = pair(cluster)
    answers = []
    for client in (quick, slow):
        client.ask(frame_of(12, 2, isolation_level=COMMITTED))
        answers.append(client.ask(frame_of(12, offset, correlation_id=8, isolation_level=COMMITTED)))
    assert answers[0] == answers[1]
    assert quick.hits == (1 if offset == 2 else 0)
    data = decode_response(FETCH, 12, answers[0][4:])[1].responses[0].partitions[0]
    assert len(data.aborted_transactions) == (1 if offset == 0 else 0)


def test_a_reader_of_all_is_told_of_no_aborted_transactions():
    cluster = single()
    write(cluster, "aborted", producer=7)
    end(cluster, 7, Marker.ABORT)
    assert rows(Door(cluster).fetch({0: 0}))[0].aborted_transactions is None


def test_epochs_of_markers():
    cluster = single()
    write(cluster, "v", producer=7, epoch=2)
    assert end(cluster, 7, Marker.ABORT, epoch=1).code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(cluster, 7, Marker.ABORT, epoch=3, coordinator_epoch=5).code is ErrorCode.NONE
    assert end(cluster, 7, Marker.ABORT, epoch=3, coordinator_epoch=4).code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write(cluster, "v", producer=7, epoch=2, sequence=1).code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(cluster, 7, Marker.COMMIT, epoch=3, coordinator_epoch=5).code is ErrorCode.NONE, "again, and harmless"
    assert write(cluster, "v", producer=7, epoch=3).code is ErrorCode.NONE


def test_within_a_transaction_everything_is_of_it():
    cluster = single()
    write(cluster, "v", producer=7)
    refused = cluster.produce(1, "v", producer=(7, 0, 1))
    cluster.run(STABLE_US)
    assert refused.code is ErrorCode.INVALID_TXN_STATE


def test_a_batch_of_a_transaction_that_nobody_has_verified_is_refused():
    cluster = single()
    log = cluster[1].partition().log
    cluster[1].replicas.appending._verifies = lambda: True
    assert write(cluster, "v", producer=7).code is ErrorCode.INVALID_TXN_STATE
    guard = log.transactions.guard(7, 0)
    end(cluster, 7, Marker.ABORT)
    assert not log.transactions.answered(7, guard, is_verified=True), "of the transaction that has ended"
    assert write(cluster, "v", producer=7).code is ErrorCode.INVALID_TXN_STATE
    assert log.transactions.answered(7, log.transactions.guard(7, 0), is_verified=True)
    assert write(cluster, "v", producer=7).code is ErrorCode.NONE
    assert write(cluster, "v", producer=7, sequence=1).code is ErrorCode.NONE
    end(cluster, 7, Marker.COMMIT)
    assert write(cluster, "v", producer=7, sequence=2).code is ErrorCode.INVALID_TXN_STATE


def test_a_batch_of_a_transaction_needs_a_transactional_id():
    cluster = single()
    partition = cluster[1].partition()
    done = cluster.produce(1, "v", producer=(7, 0, 0), transactional=True)
    cluster.run(STABLE_US)
    assert done.code is ErrorCode.NONE
    assert partition.state.last_stable_offset == 0
    assert replace(partition.state.settings) == partition.state.settings
