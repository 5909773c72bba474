"""The pool of sessions behaves as a model that is written as Kafka's FetchSessionCache is described."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.config import Settings
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.replication.serving.fetch_sessions import Found, Reading
from dataplane.replication.serving.session_cache import (
    EVICTION_S,
    FetchSessions,
    SessionPool,
)

SLOTS, PER_PRINCIPAL, PARTITIONS = 4, 3, 40


class Clock:
    seconds = 0.0

    def monotonic(self):
        return self.seconds


@dataclass
class Entry:
    """What the model keeps of a session."""

    session: object
    principal: str
    size: int
    created: float
    used: float


class Model:
    """Looks at all sessions for everything."""

    def __init__(self):
        self.entries: list[Entry] = []

    def victim(self, principal, size, now):
        """(there is a place, who has to go for it)."""
        own = [entry for entry in self.entries if entry.principal == principal]
        if len(own) < PER_PRINCIPAL:
            if len(self.entries) < SLOTS:
                return True, None
            own = self.entries
        stalest = min(own, key=lambda entry: entry.used)
        if now - stalest.used > EVICTION_S:
            return True, stalest
        old = [entry for entry in own if now - entry.created > EVICTION_S and entry.size < size]
        smallest = min(old, key=lambda entry: (entry.size, entry.used), default=None)
        return smallest is not None, smallest


steps = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from(["one", "two", "three"]), st.integers(1, 12)),
        st.tuples(st.just("touch"), st.integers(0, SLOTS), st.just(0)),
        st.tuples(st.just("sleep"), st.sampled_from([1, 70, 130]), st.just(0)),
    ),
    max_size=40,
)


def put(pool, session, size):
    rows = [("t", FetchPartition(partition=index)) for index in range(size)]
    found = Found()
    for _, wanted in rows:
        found.add(None, "t", Reading(error_row(wanted), 0, None))
    session.begin(found, rows)
    pool.touch(session)


def error_row(wanted):
    from dataplane.protocol.messages.fetch import FetchResponsePartitionData

    return FetchResponsePartitionData(partition_index=wanted.partition, error_code=3, records=b"")


def make_pool():
    clock = Clock()
    limits = Settings(
        max_incremental_fetch_session_cache_slots=SLOTS,
        fetch_session_slots_per_principal=PER_PRINCIPAL,
        fetch_session_partitions_per_instance=PARTITIONS,
    )
    return clock, SessionPool(clock, Random(1), limits), limits


@given(steps)
@settings(max_examples=200, deadline=None)
def test_places_are_given_and_taken_as_the_model_says(steps):
    clock, pool, _ = make_pool()
    model, refused = Model(), 0
    for what, argument, size in steps:
        clock.seconds += 0.001
        if what == "sleep":
            clock.seconds += argument
        elif what == "touch":
            if argument < len(model.entries):
                entry = model.entries[argument]
                entry.used = clock.seconds
                assert pool.touch(entry.session)
        else:
            place, victim = model.victim(argument, size, clock.seconds)
            if victim is not None:
                model.entries.remove(victim)
            fits = sum(entry.size for entry in model.entries) + size <= PARTITIONS
            session = pool.create(argument, size, uses_topic_ids=False)
            refused += session is None
            assert (session is not None) == (place and fits)
            assert victim is None or victim.session.is_closed
            if session is not None:
                put(pool, session, size)
                model.entries.append(Entry(session, argument, size, clock.seconds, clock.seconds))
        assert {entry.session.id for entry in model.entries} == {session.id for session in pool}
        assert (pool.partitions, pool.refused) == (sum(entry.size for entry in model.entries), refused)


def test_a_session_that_grows_beyond_what_an_instance_may_hold_is_gone():
    _, pool, _ = make_pool()
    session = pool.create("one", 30, uses_topic_ids=False)
    put(pool, session, 30)
    more = FetchTopic(topic="t", partitions=tuple(FetchPartition(partition=index) for index in range(100, 120)))
    request = FetchRequest(session_id=session.id, session_epoch=1, topics=(more,))
    assert pool.resume(request, "one", 12) == 70
    assert (len(pool), pool.partitions, pool.refused, session.is_closed) == (0, 0, 1, True)


def test_an_instance_that_goes_takes_its_sessions_along():
    clock, _, limits = make_pool()
    sessions = FetchSessions(clock, Random(1), limits)
    made = sessions.pool("aaaabbbb").create("one", 1, uses_topic_ids=False)
    sessions.drop("aaaabbbb")
    assert made.is_closed
    assert len(sessions.pool("aaaabbbb")) == 0
