"""What an instance may have of transactions, over all brokers: counted as it comes and goes, and as partitions move."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.coordination.runtime import LOAD_RETRY_S
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.counts import Count, Counts
from dataplane.transactions.events import AddPartitions, EndAndRaise, Initialise, ProducerResult
from dataplane.transactions.limits import SETTLES_S, Allowed
from dataplane.transactions.model import Transaction
from tests.dataplane.transactions.support import PARTITIONS, A, B, C, World

E = ErrorCode
MINE, THEIRS = "aaaabbbb", "ccccdddd"


def names(key=MINE, count=4):
    """Transactional ids of an instance, each in a partition of the topic of its own as long as there are some."""
    found = {}
    for number in range(200):
        name = f"{key}.{number}"
        found.setdefault(partition_of(name, PARTITIONS), []).append(name)
    rows = zip(*(found[index] for index in sorted(found)), strict=False)
    return [name for row in rows for name in row][:count]


def world(**allowed):
    made = World()
    made.allowed[MINE] = Allowed(**allowed)
    return made


def counted(w, key=MINE):
    """As it is counted, which is as it is."""
    count = w.coordinator.counts.of(key)
    assert count == recounted(w, key)
    return count.ids, count.is_open, count.partitions


def recounted(w, key):
    entries = [
        entry
        for shard in w.coordinator._runtime.shards()
        for entry in shard.contents.all_entries()
        if entry.transaction.transactional_id.startswith(f"{key}.")
    ]
    found = [entry.transaction for entry in entries]
    return Count(len(found), sum(one.is_open for one in found), sum(len(one.partitions) for one in found))


# --- open transactions ------------------------------------------------------------------------------------------------


def test_one_too_many_does_not_begin_wherever_the_others_are_kept():
    w = world(open_transactions=2)
    one, two, three, _ = names()
    (theirs,) = names(THEIRS, 1)
    whos = {name: w.producer(name) for name in (one, two, three, theirs)}
    assert [w.add(whos[name], A, name=name) for name in (one, two, three)] == [E.NONE, E.NONE, E.POLICY_VIOLATION]
    assert w.add(whos[one], B, name=one) == E.NONE, "it has begun"
    assert w.add(whos[theirs], A, name=theirs) == E.NONE
    assert counted(w) == (3, 2, 3)
    assert w.coordinator.refusals == {MINE: 1}
    w.end(whos[one], name=one)
    w.run(0.1)
    assert counted(w) == (3, 1, 1)
    assert w.add(whos[three], A, name=three) == E.NONE


def test_one_that_waits_for_its_markers_is_open():
    w = world(open_transactions=1)
    one, two, *_ = names()
    whos = {name: w.producer(name) for name in (one, two)}
    w.leaders.held = True
    assert w.add(whos[one], A, name=one) == w.end(whos[one], name=one) == E.NONE
    assert w.add(whos[two], A, name=two) == E.POLICY_VIOLATION
    w.leaders.release()
    w.run(0.1)
    assert w.add(whos[two], A, name=two) == E.NONE


def test_one_that_is_on_its_way_to_the_log_is_open_and_if_the_log_refuses_it_is_not():
    w = world(open_transactions=1)
    one, two, *_ = names()
    whos = {name: w.producer(name) for name in (one, two)}
    w.log.slow = True
    first = w.coordinator.add_partitions(one, AddPartitions(*whos[one], (A,)))
    second = w.coordinator.add_partitions(two, AddPartitions(*whos[two], (A,)))
    assert second.result() == E.POLICY_VIOLATION
    w.log.commit(E.NOT_ENOUGH_REPLICAS)
    w.run(0.01)
    assert first.result() != E.NONE
    assert counted(w) == (2, 0, 0)
    w.log.slow = False
    assert w.add(whos[two], A, name=two) == E.NONE


def test_many_that_begin_in_one_turn_are_no_more_than_may():
    w = world(open_transactions=3)
    whos = {name: w.producer(name) for name in names(count=10)}
    asked = []

    def begin_all():
        for name, who in whos.items():
            ask = AddPartitions(*who, (A,))
            asked.append(w.coordinator.add_partitions(name, ask))

    w.loop.post(begin_all)
    w.run(0.1)
    assert Counter(one.result() for one in asked) == {E.NONE: 3, E.POLICY_VIOLATION: 7}
    assert counted(w) == (10, 3, 3)


def test_one_that_times_out_makes_room():
    w = world(open_transactions=1)
    one, two, *_ = names()
    whos = {name: w.producer(name) for name in (one, two)}
    assert w.add(whos[one], A, name=one) == E.NONE
    w.run(61)
    assert w.add(whos[two], A, name=two) == E.NONE


def test_an_abort_of_nothing_is_never_refused():
    w = world(open_transactions=0)
    one, *_ = names()
    who = w.producer(one)
    future = w.coordinator.end_and_raise(one, EndAndRaise(*who, False))
    w.run(0.1)
    assert future.result() == ProducerResult(E.NONE, who[0], who[1] + 1)
    assert counted(w) == (1, 0, 0)


def test_what_is_open_stays_though_the_limit_is_lowered():
    w = world()
    whos = {name: w.producer(name) for name in names()}
    assert {w.add(who, A, name=name) for name, who in whos.items()} == {E.NONE}
    w.allowed[MINE] = Allowed(open_transactions=1)
    one = names()[0]
    assert w.add(whos[one], B, name=one) == E.NONE
    assert w.end(whos[one], name=one) == E.NONE
    w.run(0.1)
    assert w.add(whos[one], A, name=one) == E.POLICY_VIOLATION


# --- transactional ids ------------------------------------------------------------------------------------------------


def test_an_instance_may_have_so_many_ids_over_all_partitions_of_the_topic():
    w = world(transactional_ids=2)
    one, two, three, _ = names()
    assert [w.init(name)[0] for name in (one, two, three)] == [E.NONE, E.NONE, E.POLICY_VIOLATION]
    assert w.init(one)[0] == E.NONE, "it is there"
    assert w.init(names(THEIRS, 1)[0])[0] == E.NONE
    assert counted(w) == (2, 0, 0)
    assert w.coordinator.refusals == {MINE: 1}


def test_ids_that_come_at_once_are_no_more_than_may():
    w = world(transactional_ids=3)
    asked = [w.begin(name) for name in names(count=10)]
    w.run(0.1)
    assert Counter(one.result().error for one in asked) == {E.NONE: 3, E.POLICY_VIOLATION: 7}
    assert counted(w) == (3, 0, 0)


def test_one_that_expires_makes_room():
    w = World(id_expiration_ms=100_000)
    w.allowed[MINE] = Allowed(transactional_ids=1)
    one, two, *_ = names()
    assert [w.init(name)[0] for name in (one, two)] == [E.NONE, E.POLICY_VIOLATION]
    w.run(101)
    assert counted(w) == (0, 0, 0)
    assert w.init(two)[0] == E.NONE


# --- the longest time-out ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "longest_ms"), [(None, 900_000), (60_000, 60_000), (1, 1), (10**7, 900_000)])
def test_a_producer_may_ask_for_the_instances_longest_time_out_and_for_no_more_than_the_brokers(limit, longest_ms):
    w = world(timeout_ms=limit)
    one = names()[0]
    assert w.init(one, timeout_ms=longest_ms + 1) == (E.INVALID_TRANSACTION_TIMEOUT, -1, -1)
    assert w.init(one, timeout_ms=longest_ms)[0] == E.NONE
    assert w.init(names(THEIRS, 1)[0], timeout_ms=900_000)[0] == E.NONE


def test_an_instance_whose_limit_is_nothing_has_no_transactions():
    w = world(timeout_ms=0)
    assert w.init(names()[0], timeout_ms=1)[0] == E.INVALID_TRANSACTION_TIMEOUT


def test_the_service_may_end_what_was_begun_under_a_longer_one():
    w = world()
    one = names()[0]
    w.init(one)
    w.allowed[MINE] = Allowed(timeout_ms=1)
    future = w.coordinator.initialise(one, Initialise(60_000), is_tenants=False)
    w.run(0.01)
    assert future.result().error == E.NONE


# --- whoever leads ----------------------------------------------------------------------------------------------------


def full():
    """Three ids, of which two have a transaction open, of which one waits for its markers."""
    w = world(open_transactions=2, transactional_ids=3)
    one, two, three, four = names()
    whos = {name: w.producer(name) for name in (one, two, three)}
    w.add(whos[one], A, B, name=one)
    w.add(whos[two], C, name=two)
    w.leaders.away = {1, 2}
    w.end(whos[two], name=two)
    assert counted(w) == (3, 2, 3)
    return w, whos, three, four


def test_a_successor_counts_what_it_has_loaded():
    w, whos, three, four = full()
    w.take_over()
    assert counted(w) == (3, 2, 3)
    assert w.add(whos[three], A, name=three) == E.POLICY_VIOLATION
    assert w.init(four)[0] == E.POLICY_VIOLATION
    w.leaders.away = set()
    w.run(3)
    assert w.add(whos[three], A, name=three) == E.NONE


def test_a_partition_that_moves_away_takes_what_it_has_along_and_brings_it_when_it_comes_back():
    w, *_ = full()
    one = names()[0]
    index = partition_of(one, PARTITIONS)
    w.coordinator.on_leadership(TRANSACTIONS_TOPIC, index, None)
    assert counted(w) == (2, 1, 1)
    w.coordinator.on_leadership(TRANSACTIONS_TOPIC, index, 9)
    w.run(0.1)
    assert counted(w) == (3, 2, 3)
    w.elect()
    assert counted(w) == (3, 2, 3), "elected anew, with everything read again"
    w.resign()
    assert counted(w) == (0, 0, 0)
    assert w.coordinator.counts.keys() == []


def test_what_is_left_of_a_partition_that_has_moved_away_counts_nowhere():
    w, *_ = full()
    one = names()[0]
    contents = next(shard for shard in w.coordinator._runtime.shards() if one in shard.contents.entries).contents
    w.coordinator.on_leadership(TRANSACTIONS_TOPIC, partition_of(one, PARTITIONS), None)
    contents.entries[one].put(Transaction(one))
    contents.drop_blank(one)
    assert one not in contents.entries
    assert counted(w) == (2, 1, 1)


def test_a_partition_that_can_be_read_at_the_second_try_counts_once():
    w, *_ = full()
    w.log.read_error = OSError("damage")
    w.take_over()
    w.log.read_error = None
    w.run(LOAD_RETRY_S + 0.1)
    assert counted(w) == (3, 2, 3)


# --- what others have -------------------------------------------------------------------------------------------------


def test_what_other_brokers_have_counts_too():
    w = world(open_transactions=3, transactional_ids=5, open_elsewhere=2, ids_elsewhere=3)
    w.run(SETTLES_S)
    one, two, three, _ = names()
    whos = {name: w.producer(name) for name in (one, two)}
    assert w.init(three)[0] == E.POLICY_VIOLATION
    assert [w.add(whos[name], A, name=name) for name in (one, two)] == [E.NONE, E.POLICY_VIOLATION]
    w.allowed[MINE] = Allowed(3, 5, None, 1, 2)
    assert w.init(three)[0] == E.NONE
    assert w.add(whos[two], A, name=two) == E.NONE


def test_while_a_partition_has_just_come_here_only_what_is_here_counts():
    w = world(open_transactions=2, transactional_ids=2, open_elsewhere=2, ids_elsewhere=2)
    one, two, three, _ = names()
    who = w.producer(one)
    assert w.add(who, A, name=one) == E.NONE
    w.run(SETTLES_S)
    assert w.init(two)[0] == E.POLICY_VIOLATION
    w.take_over()
    assert w.init(two)[0] == E.NONE, "the others may be counted twice"
    assert w.init(three)[0] == E.POLICY_VIOLATION, "what is here is not"


def test_while_one_has_just_moved_between_two_others_too():
    """Both have reported it, and this broker leads none of it."""
    w = world(transactional_ids=2, ids_elsewhere=2)
    one, *_ = names()
    w.topics.coordinators = {0: 1, 1: 2}
    w.coordinator.on_metadata()
    w.run(SETTLES_S)
    assert w.init(one)[0] == E.POLICY_VIOLATION
    w.coordinator.on_metadata()
    assert w.init(one)[0] == E.POLICY_VIOLATION, "an update that moves nothing"
    w.topics.coordinators = {0: 1, 1: 3}
    w.coordinator.on_metadata()
    assert w.init(one)[0] == E.NONE


def test_while_it_is_being_loaded_too():
    w = world(transactional_ids=2, ids_elsewhere=2)
    w.run(SETTLES_S)
    one, *_ = names()
    index = partition_of(one, PARTITIONS)
    assert w.init(one)[0] == E.POLICY_VIOLATION
    w.coordinator.on_leadership(TRANSACTIONS_TOPIC, (index + 1) % PARTITIONS, None)
    w.background.held = True
    w.coordinator.on_leadership(TRANSACTIONS_TOPIC, (index + 1) % PARTITIONS, w.epoch + 2)
    assert w.init(one)[0] == E.NONE


# --- counting ---------------------------------------------------------------------------------------------------------


def test_who_has_nothing_has_no_row():
    counts = Counts()
    counts.add(MINE, 1, 0, 0)
    counts.add(THEIRS, 0, 1, 2)
    assert (counts.of(MINE), counts.of(THEIRS)) == (Count(1, 0, 0), Count(0, 1, 2))
    counts.add(MINE, -1, 0, 0)
    counts.add(THEIRS, 0, 0, -2)
    assert (counts.of(MINE), counts.keys()) == (Count(), [THEIRS])


STEPS = st.one_of(
    st.tuples(st.just("init"), st.integers(0, 5)),
    st.tuples(st.just("add"), st.integers(0, 5), st.sampled_from([A, B, C])),
    st.tuples(st.just("end"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("hold"), st.booleans()),
    st.tuples(st.just("refuse"), st.booleans()),
    st.tuples(st.just("run"), st.sampled_from([1, 70, 110])),
    st.tuples(st.just("move"), st.integers(0, PARTITIONS - 1), st.booleans()),
    st.tuples(st.just("take over")),
)


@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_it_is_counted_as_it_is(steps):
    w = World(id_expiration_ms=100_000)
    known = names(count=6)
    whos = dict.fromkeys(known, (1000, 0))
    for kind, *args in steps:
        name = known[args[0]] if kind in ("init", "add", "end") else None
        if kind == "init":
            error, *who = w.init(name)
            whos[name] = tuple(who) if error == E.NONE else whos[name]
        elif kind == "add":
            w.add(whos[name], args[1], name=name)
        elif kind == "end":
            w.end(whos[name], is_commit=args[1], name=name)
        elif kind == "hold":
            w.leaders.held = args[0]
            if not args[0]:
                w.leaders.release()
        elif kind == "refuse":
            w.log.error = E.NOT_ENOUGH_REPLICAS if args[0] else E.NONE
        elif kind == "run":
            w.run(args[0])
        elif kind == "move":
            w.coordinator.on_leadership(TRANSACTIONS_TOPIC, args[0], w.epoch if args[1] else None)
            w.run(0.01)
        else:
            w.take_over()
        counted(w)
