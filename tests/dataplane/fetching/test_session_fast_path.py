"""The short cut of a fetch in a session: the answers, and what the session knows after them, are those of the slow path."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.headers import decode_response, encode_request
from quota.contracts.namespace import ClusterNames
from tests.dataplane.fetching.support import FETCH, Door, request, single
from tests.dataplane.fetching.test_fetch_fast_path import Client

BATCHES = 4


class Reader:
    """A client in a session of its own, with or without the short cut."""

    def __init__(self, cluster, version, offsets, *, short_cut=True):
        self._door = Door(cluster)
        self._client = Client(self._door, short_cut=short_cut)
        self._version = version
        self._id = self._epoch = 0
        self.pool = self._door.broker.fetch_sessions.pool(self._door.instance.names.key)
        self._id = decode_response(FETCH, version, self.ask(offsets)[4:])[1].session_id

    @property
    def hits(self):
        return self._client.hits

    @property
    def lessons(self):
        return self._client.shapes._lessons

    @property
    def session(self):
        return next(iter(self.pool))

    def ask(self, wanted=(), *, epoch=None, forget=(), **members):
        """The answer's bytes; those of a fetch that waits when its time is up."""
        members.setdefault("max_wait_ms", 0)
        number = self._epoch if epoch is None else epoch
        made = request(wanted, self._version, session_id=self._id, session_epoch=number, forget=forget, **members)
        if self._version < 13:
            topics, forgotten = made.topics, made.forgotten_topics_data
            made = replace(
                made,
                topics=tuple(replace(topic, topic="orders") for topic in topics),
                forgotten_topics_data=tuple(replace(topic, topic="orders") for topic in forgotten),
            )
        frame = encode_request(FETCH, self._version, number, "java", made, names=ClusterNames())[4:]
        if epoch is None:
            self._epoch += 1
        return self._client.ask(frame)

    def knows(self):
        """What the session would tell next, and of what."""
        session = self.session
        rows = [
            (row.topic, row.wanted, row.high_watermark, row.log_start_offset, row in session.due)
            for row in session.partitions()
        ]
        return session.epoch, rows, [row.wanted.partition for row in session.due]


def filled(partitions=3):
    cluster = single(partitions)
    for index in range(partitions):
        produce(cluster, index, BATCHES)
    return cluster


def produce(cluster, index, batches=1):
    for number in range(batches):
        cluster.produce(1, "x" * 30 * number, index=index)
        cluster.run(0.01)


def at_the_end(partitions=3):
    return dict.fromkeys(range(partitions), BATCHES)


STEPS = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 2), st.integers(0, BATCHES + 1)),
    st.tuples(st.just("read"), st.just(0), st.integers(0, BATCHES)),
    st.tuples(st.just("produce"), st.integers(0, 2)),
    st.tuples(st.just("forget"), st.integers(1, 2)),
    st.tuples(st.just("nothing")),
    st.tuples(st.just("wrong epoch"), st.integers(0, 2)),
)


@given(version=st.integers(10, 17), steps=st.lists(STEPS, max_size=12), min_bytes=st.sampled_from([0, 1, 200]))
@settings(max_examples=100, deadline=None)
def test_answers_and_sessions_are_those_of_the_slow_path(version, steps, min_bytes):
    cluster = filled()
    quick, slow = (Reader(cluster, version, at_the_end(), short_cut=short_cut) for short_cut in (True, False))
    for what, *of in [("read", 0, 0), ("read", 0, 1), *steps]:
        if what == "produce":
            produce(cluster, *of)
            continue
        members = {"min_bytes": min_bytes}
        if what == "read":
            members["wanted"] = {of[0]: of[1]}
        elif what == "forget":
            members["forget"] = (of[0],)
        elif what == "wrong epoch":
            members |= {"wanted": {of[0]: 1}, "epoch": 77}
        assert quick.ask(**members) == slow.ask(**members)
        assert quick.knows() == slow.knows()
    assert quick.hits >= 1


@pytest.mark.parametrize("version", [10, 12, 17])
def test_a_reader_that_gets_on_is_served_by_the_short_cut(version):
    reader = Reader(filled(), version, at_the_end())
    for offset in range(BATCHES):
        reader.ask({1: offset})
    assert reader.hits == BATCHES - 1


def test_what_a_connection_has_learned_goes_with_it_though_nobody_looks_for_garbage():
    reader = Reader(filled(), 12, at_the_end())
    for offset in range(BATCHES):
        reader.ask({1: offset})
    assert reader.hits
    reader._door.instance.disconnected = lambda _: None
    gc.disable()
    try:
        kind, known = type(reader._client.shapes), id(reader._client.shapes)
        reader._client.client.closed("the end")
        reader._client = None
        assert not [each for each in gc.get_objects() if type(each) is kind and id(each) == known]
    finally:
        gc.enable()


def test_what_another_partition_has_to_tell_is_told():
    cluster = filled()
    reader = Reader(cluster, 12, at_the_end())
    reader.ask({0: 0})
    reader.ask({0: 1})
    produce(cluster, 2)
    told = decode_response(FETCH, 12, reader.ask({0: 2})[4:])[1].responses[0].partitions
    assert [row.partition_index for row in told] == [0, 2]
    assert reader.hits == 1


def test_a_session_that_is_gone_is_not_gone_on_with():
    reader = Reader(filled(), 12, at_the_end())
    reader.ask({0: 0})
    reader.pool.remove(reader.session)
    answer = decode_response(FETCH, 12, reader.ask({0: 1})[4:])[1]
    assert (answer.error_code, reader.hits) == (70, 0)


def test_a_session_that_is_used_is_not_the_stalest():
    cluster = filled()
    reader = Reader(cluster, 12, at_the_end())
    reader.ask({0: 0})
    cluster.run(60)
    before = reader.session.used_at
    reader.ask({0: 1})
    assert reader.hits == 1
    assert reader.session.used_at >= before + 60


def test_a_reader_at_the_end_is_not_learned_from_again_and_again():
    cluster = filled()
    reader = Reader(cluster, 12, at_the_end())
    for _ in range(10):
        reader.ask({0: BATCHES})  # nothing there: the slow way
    assert (reader.hits, reader.lessons) == (0, 1)
    produce(cluster, 0)
    reader.ask({0: BATCHES})
    assert reader.hits == 1


@pytest.mark.parametrize("session_id", [0, -1, -(2**31), 2**31 - 1])
def test_a_session_that_cannot_be_is_not_found_and_nothing_is_learnt(session_id):
    reader = Reader(filled(), 12, [(0, 0)])
    reader._id = session_id
    answer = decode_response(FETCH, 12, reader.ask([(0, 0)])[4:])[1]
    assert (answer.error_code, reader.hits) == (70, 0)  # FETCH_SESSION_ID_NOT_FOUND
