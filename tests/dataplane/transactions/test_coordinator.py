"""The coordinator on virtual time: from the first producer to the last marker, and a fail-over between each two steps."""

from dataclasses import replace

import pytest

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.doors import ZooKeeperError
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions import markers
from dataplane.transactions.events import AddPartitions, EndAndRaise, EndTransaction, ProducerResult
from dataplane.transactions.model import LAST_EPOCH, RAISING, durable_value
from dataplane.transactions.records import read_record
from tests.dataplane.transactions.support import PARTITIONS, A, B, C, World

E = ErrorCode
INDEX = partition_of("t", PARTITIONS)


@pytest.fixture
def w():
    return World()


def written(world, name="t"):
    """The states that the log has of an id, in order."""
    records = (read_record(*record) for record in world.log.records.get(partition_of(name, PARTITIONS), []))
    return [None if r.value is None else r.value.transaction_status for r in records if r.transactional_id == name]


def names_in(key, *indexes):
    """Transactional ids of an instance, one for each partition of the topic."""
    names = [f"{key}.{number}" for number in range(40)]
    return [next(name for name in names if partition_of(name, PARTITIONS) == index) for index in indexes]


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)


def test_a_transaction_from_its_producer_to_its_markers(w):
    who = w.producer()
    assert who == (1000, 0)
    assert w.add(who, A, B) == E.NONE
    assert w.add(who, C) == E.NONE
    assert w.end(who) == E.NONE
    w.run(0.1)
    assert w.leaders.markers == {p: [(1000, 0, True, w.epoch)] for p in (A, B, C)}
    assert w.state() == "CompleteCommit"
    assert written(w) == [EMPTY, ONGOING, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT]
    assert w.add(who, A) == E.NONE
    assert w.end(who, is_commit=False) == E.NONE
    w.run(0.1)
    assert w.leaders.markers[A][-1] == (1000, 0, False, w.epoch)


def test_what_goes_to_one_broker_at_the_same_time_goes_in_one_request(w):
    whos = {name: w.producer(name) for name in "tuvwx"}
    for name, who in whos.items():
        w.add(who, A, B, C, name=name)
    futures = [w.coordinator.end(name, EndTransaction(*who, True)) for name, who in whos.items()]
    w.run(0.1)
    assert [future.result() for future in futures] == [E.NONE] * 5
    assert [broker for broker, _ in w.leaders.requests] == [1, 2]
    assert all(len(request.markers) == 5 for _, request in w.leaders.requests)


def test_an_end_is_answered_before_the_markers_are_there(w):
    who = w.producer()
    w.add(who, A)
    w.leaders.held = True
    assert w.end(who) == E.NONE
    assert w.end(who) == E.CONCURRENT_TRANSACTIONS
    assert w.add(who, B) == E.CONCURRENT_TRANSACTIONS
    w.leaders.release()
    w.run(0.1)
    assert w.end(who) == E.NONE
    assert len(w.leaders.markers[A]) == 1


AGAIN = [
    E.NOT_LEADER_OR_FOLLOWER,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.NOT_ENOUGH_REPLICAS,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    E.REQUEST_TIMED_OUT,
    E.KAFKA_STORAGE_ERROR,
    E.UNKNOWN_SERVER_ERROR,
]


@pytest.mark.parametrize("code", AGAIN)
def test_a_partition_that_cannot_take_its_marker_is_asked_until_it_can(w, code):
    who = w.producer()
    w.add(who, A, C)
    w.leaders.codes[A] = code
    w.end(who)
    w.run(30)
    assert w.state() == "PrepareCommit"
    asked = len(w.leaders.requests)
    assert 20 < asked < 40, "with pauses"
    del w.leaders.codes[A]
    w.run(2)
    assert w.state() == "CompleteCommit"
    assert len(w.leaders.markers[C]) == 1, "whoever has it is not asked again"


def test_a_leader_that_is_away_or_not_known_is_asked_when_there_is_one(w):
    who = w.producer()
    w.add(who, A, B)
    w.leaders.away.add(1)
    w.topics.leaders[B] = -1
    w.end(who, is_commit=False)
    w.run(5)
    assert w.leaders.markers == {}
    w.topics.leaders.update({A: 2, B: 2})
    w.run(2)
    assert w.leaders.said() == {A: False, B: False}
    assert w.state() == "CompleteAbort"


def test_a_topic_that_is_deleted_misses_nothing(w):
    who = w.producer()
    w.add(who, A, C)
    del w.topics.leaders[C]
    w.end(who)
    w.run(markers.UNKNOWN_S - 1)
    assert w.state() == "PrepareCommit", "it may be new to this broker"
    w.run(3)
    assert w.state() == "CompleteCommit"
    assert w.leaders.said() == {A: True}


def test_whoever_has_heard_nothing_of_the_cluster_takes_no_topic_for_deleted(w):
    who = w.producer()
    w.add(who, A)
    w.topics.leaders, leaders = {}, w.topics.leaders
    w.topics.version = 0
    w.end(who)
    w.run(60)
    assert w.state() == "PrepareCommit"
    w.topics.leaders, w.topics.version = leaders, 1
    w.run(2)
    assert w.leaders.said() == {A: True}


def test_a_partition_in_which_a_higher_epoch_was_written_keeps_no_other_from_its_marker(w):
    who = w.producer()
    w.add(who, A, B)
    w.leaders.codes[A] = E.INVALID_PRODUCER_EPOCH
    w.leaders.away.add(2)
    w.end(who)
    w.run(5)
    assert w.state() == "PrepareCommit"
    w.leaders.away.clear()
    w.run(2)
    assert w.leaders.said() == {B: True}
    assert w.state() == "CompleteCommit"


def test_a_coordinator_that_another_has_overtaken_gives_the_transaction_up(w):
    who = w.producer()
    w.add(who, A)
    w.leaders.codes[A] = E.TRANSACTION_COORDINATOR_FENCED
    w.end(who)
    w.run(30)
    assert len(w.leaders.requests) == 1
    assert w.state() == "PrepareCommit"
    del w.leaders.codes[A]
    w.take_over()
    w.run(1)
    assert w.state() == "CompleteCommit"


def test_a_list_of_transactions_looks_at_each_when_it_is_asked_for(w):
    w.producer("one")
    who = w.producer("two")
    listed, _ = w.coordinator.transactions()
    w.add(who, A, name="two")
    w.producer("three")
    assert sorted((t.transactional_id, t.state.value) for t in listed) == [("one", "Empty"), ("two", "Ongoing")]


def test_markers_are_asked_for_in_requests_of_a_bounded_size(w):
    w = World(max_partitions=10_000)
    many = [("wide", index) for index in range(2_300)]
    w.topics.leaders.update(dict.fromkeys(many, 1))
    who = w.producer()
    assert w.add(who, *many) == E.NONE
    w.leaders.held = True
    w.end(who)
    sizes = [sum(len(t.partition_indexes) for m in r.markers for t in m.topics) for _, r in w.leaders.requests]
    assert sizes == [500, 500, 500, 500, 300]
    w.leaders.release()
    w.run(0.1)
    assert w.state() == "CompleteCommit"
    assert len(w.leaders.markers) == 2_300


def test_no_more_than_a_few_requests_are_on_their_way_to_a_broker():
    w = World(max_partitions=10_000)
    many = [("wide", index) for index in range(9_000)]
    w.topics.leaders.update(dict.fromkeys(many, 1))
    who = w.producer()
    w.add(who, *many)
    w.leaders.held = True
    w.end(who)
    assert len(w.leaders.requests) == markers.REQUESTS_AT_ONCE
    w.leaders.release()
    w.run(0.1)
    assert len(w.leaders.markers) == 9_000


# --- fail-over --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_successor_ends_what_was_decided_and_written_to_nobody(w, is_commit):
    who = w.producer()
    w.add(who, A, B)
    w.leaders.held = True
    assert w.end(who, is_commit) == E.NONE
    w.leaders._held.clear()
    w.leaders.held = False
    w.take_over()
    w.run(0.1)
    assert w.leaders.markers == {p: [(*who, is_commit, w.epoch)] for p in (A, B)}
    assert w.state() == ("CompleteCommit" if is_commit else "CompleteAbort")
    assert w.end(who, is_commit) == E.NONE


def test_a_successor_writes_all_markers_where_some_were_written(w):
    who = w.producer()
    w.add(who, A, B)
    w.leaders.codes[B] = E.NOT_LEADER_OR_FOLLOWER
    w.end(who)
    w.run(1)
    assert w.leaders.said() == {A: True}
    del w.leaders.codes[B]
    w.take_over()
    w.run(0.1)
    assert [epoch for *_, epoch in w.leaders.markers[A]] == [2, 4]
    assert w.leaders.said() == {A: True, B: True}


def test_a_successor_completes_what_was_not_stored_as_complete(w):
    who = w.producer()
    w.add(who, A)
    w.leaders.held = True
    w.end(who)
    w.log.error = E.NOT_ENOUGH_REPLICAS
    w.leaders.release()
    w.run(0.1)
    assert w.state() == "PrepareCommit"
    w.log.error = E.NONE
    w.take_over()
    w.run(0.1)
    assert written(w)[-1] == COMPLETE_COMMIT
    assert w.leaders.said() == {A: True}


def test_a_successor_of_what_is_open_serves_it_and_its_time_goes_on(w):
    who = w.producer()
    w.add(who, A)
    w.run(50)
    w.take_over()
    assert w.add(who, B) == E.NONE
    w.run(9)
    assert w.state() == "Ongoing"
    w.run(2)
    assert w.leaders.said() == {A: False, B: False}


def test_a_successor_goes_on_with_epochs(w):
    who = w.producer()
    w.take_over()
    assert w.init() == (E.NONE, who[0], 1)
    assert w.init("u")[1] == 1001


def test_a_deposed_coordinator_tells_who_waits_and_writes_nothing_more(w):
    who = w.producer()
    w.add(who, A)
    w.leaders.held = True
    w.end(who)
    w.log.slow = True
    waiting = w.begin("u")
    w.run(0.1)
    w.resign()
    assert waiting.result().error == E.NOT_COORDINATOR
    assert w.init() == (E.NOT_COORDINATOR, -1, -1)
    before = dict(w.log.records)
    w.leaders.release()
    w.run(5)
    assert w.log.records == before
    assert len(w.leaders.requests) == 1


def test_while_it_is_loading_everybody_is_to_wait(w):
    who = w.producer()
    w.resign()
    w.background.held = True
    w.elect()
    assert w.init() == (E.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)
    assert w.end(who) == w.state() == E.COORDINATOR_LOAD_IN_PROGRESS
    listed, error = w.coordinator.transactions()
    assert (list(listed), error) == ([], E.COORDINATOR_LOAD_IN_PROGRESS)
    assert w.coordinator.verify("t", *who, [A]) == {A: E.COORDINATOR_LOAD_IN_PROGRESS}


def test_only_its_own_topic_concerns_it(w):
    w.coordinator.on_leadership("__consumer_offsets", INDEX, None)
    assert w.init()[0] == E.NONE
    w.coordinator.on_leadership(TRANSACTIONS_TOPIC, INDEX, None)
    assert w.init()[0] == E.NOT_COORDINATOR


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_transaction_whose_time_is_over_is_aborted_and_a_new_producer_begins(w):
    who = w.producer()
    w.add(who, A)
    w.run(59)
    assert w.state() == "Ongoing"
    w.run(2)
    assert w.leaders.markers[A] == [(who[0], 1, False, w.epoch)]
    assert w.state() == "CompleteAbort"
    assert w.end(who) == E.PRODUCER_FENCED
    assert w.init() == (E.NONE, who[0], 2)


def test_a_transaction_that_ends_in_time_is_not(w):
    who = w.producer()
    w.add(who, A)
    w.end(who)
    w.run(120)
    assert w.leaders.markers[A] == [(*who, True, w.epoch)]


def test_ids_that_nobody_uses_are_removed_after_their_time_and_others_stay():
    w = World(id_expiration_ms=100_000)
    old, used = w.producer("old"), w.producer("used")
    w.run(60)
    assert w.init("used") == (E.NONE, used[0], 1)
    w.run(60)
    assert w.state("old") == E.TRANSACTIONAL_ID_NOT_FOUND
    assert written(w, "old")[-1] is None
    assert w.state("used") == "Empty"
    assert w.add(old, A, name="old") == E.INVALID_PRODUCER_ID_MAPPING
    w.take_over()
    assert w.state("old") == E.TRANSACTIONAL_ID_NOT_FOUND
    w.run(60)
    assert w.state("used") == E.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_time_that_no_transaction_may_take_is_refused(w, timeout_ms):
    assert w.init(timeout_ms=timeout_ms) == (E.INVALID_TRANSACTION_TIMEOUT, -1, -1)
    assert w.init(timeout_ms=900_000)[0] == E.NONE


# --- who may have how many --------------------------------------------------------------------------------------------


def test_an_instance_may_have_so_many_ids_and_no_other_instance_pays_for_it():
    w = World(ids_per_instance=2)
    mine = [f"aaaabbbb.{n}" for n in range(40)]
    mine = [name for name in mine if partition_of(name, PARTITIONS) == 0][:3]
    theirs = next(n for n in (f"bbbbcccc.{n}" for n in range(40)) if partition_of(n, PARTITIONS) == 0)
    assert [w.init(name)[0] for name in mine] == [E.NONE, E.NONE, E.POLICY_VIOLATION]
    assert w.init(mine[0])[0] == E.NONE
    assert w.init(theirs)[0] == E.NONE
    w.take_over()
    assert w.init(mine[2])[0] == E.POLICY_VIOLATION


def test_one_that_has_expired_makes_room():
    w = World(ids_per_instance=1, id_expiration_ms=100_000)
    names = [name for name in (f"aaaabbbb.{n}" for n in range(40)) if partition_of(name, PARTITIONS) == 0][:2]
    assert w.init(names[0])[0] == E.NONE
    w.run(101)
    assert w.init(names[1])[0] == E.NONE


def test_an_instance_may_have_so_many_partitions_in_open_transactions_wherever_they_are_kept():
    w = World(partitions_per_instance=3)
    one, two = names_in("aaaabbbb", 0, 1)
    (theirs,) = names_in("bbbbcccc", 0)
    whos = {name: w.producer(name) for name in (one, two, theirs)}
    assert w.add(whos[one], A, B, name=one) == E.NONE
    assert w.add(whos[two], A, B, name=two) == E.POLICY_VIOLATION
    assert w.add(whos[two], C, name=two) == E.NONE
    assert w.add(whos[theirs], A, B, C, name=theirs) == E.NONE
    assert w.coordinator.refusals == {"aaaabbbb": 1}
    w.take_over()
    assert w.add(whos[two], C, name=two) == E.NONE, "it is there already"
    assert w.add(whos[two], A, name=two) == E.POLICY_VIOLATION
    w.end(whos[one], name=one)
    w.run(0.1)
    assert w.add(whos[two], A, B, name=two) == E.NONE


def test_partitions_that_are_on_their_way_to_the_log_have_their_room():
    w = World(partitions_per_instance=3)
    one, two = names_in("aaaabbbb", 0, 1)
    whos = {name: w.producer(name) for name in (one, two)}
    w.log.slow = True
    first = w.coordinator.add_partitions(one, AddPartitions(*whos[one], (A, B)))
    second = w.coordinator.add_partitions(two, AddPartitions(*whos[two], (A, B)))
    assert second.result() == E.POLICY_VIOLATION
    w.log.commit()
    w.run(0.01)
    assert first.result() == E.NONE
    w.log.slow = False
    assert w.add(whos[two], C, name=two) == E.NONE, "what was refused takes none"


def test_an_id_that_ends_gives_its_room_back():
    w = World(partitions_per_instance=2, id_expiration_ms=100_000)
    one, two = names_in("aaaabbbb", 0, 1)
    who = w.producer(one)
    assert w.add(who, A, B, name=one) == E.NONE
    w.run(170)
    assert w.state(one) == E.TRANSACTIONAL_ID_NOT_FOUND, "its transaction has timed out, and nobody has used it since"
    assert w.add(w.producer(two), A, B, name=two) == E.NONE


def test_without_zookeeper_a_new_id_has_to_wait_and_one_that_is_known_has_not(w):
    w.producer()
    w.ids.error = ZooKeeperError("away")
    assert w.init("u") == (E.COORDINATOR_NOT_AVAILABLE, -1, -1)
    assert w.init() == (E.NONE, 1000, 1)


def test_two_who_begin_at_once_get_one_after_the_other(w):
    first, second = w.begin(), w.begin()
    w.run(0.1)
    assert (first.result().error, second.result().error) == (E.NONE, E.CONCURRENT_TRANSACTIONS)
    assert w.init() == (E.NONE, first.result().producer_id, 1)


def test_of_an_id_that_was_never_initialised_nothing_is_known(w):
    assert w.add((7, 0), A) == E.INVALID_PRODUCER_ID_MAPPING
    assert w.end((7, 0)) == E.INVALID_PRODUCER_ID_MAPPING
    assert w.coordinator.verify("t", 7, 0, [A]) == {A: E.INVALID_PRODUCER_ID_MAPPING}
    assert w.state() == E.TRANSACTIONAL_ID_NOT_FOUND
    listed, error = w.coordinator.transactions()
    assert (list(listed), error) == ([], E.NONE)


def test_verification_asks_what_is_stored(w):
    who = w.producer()
    w.add(who, A)
    assert w.coordinator.verify("t", *who, [A, B]) == {A: E.NONE, B: E.TRANSACTION_ABORTABLE}
    w.log.slow = True
    w.add(who, B)
    assert w.coordinator.verify("t", *who, [B]) == {B: E.TRANSACTION_ABORTABLE}
    w.log.commit()
    assert w.coordinator.verify("t", *who, [B]) == {B: E.NONE}


def test_a_coordinator_says_which_partitions_it_cannot_serve(w):
    w.log.read_error = OSError("damage")
    w.take_over()
    assert w.coordinator.has_failed(INDEX)
    assert w.init()[0] == E.COORDINATOR_NOT_AVAILABLE


# --- an epoch for each transaction ------------------------------------------------------------------------------------


def raise_(w, who, *, is_commit=True):
    future = w.coordinator.end_and_raise("t", EndAndRaise(*who, is_commit))
    w.run(0.1)
    return future.result()


def add_and_raise(w, who, *partitions):
    future = w.coordinator.add_partitions("t", AddPartitions(*who, partitions, version=RAISING))
    w.run(0.01)
    return future.result()


def test_each_transaction_has_its_own_epoch_and_markers_that_are_above_it(w):
    who = w.producer()
    for _ in range(3):
        assert add_and_raise(w, who, A) == E.NONE
        result = raise_(w, who)
        assert result == ProducerResult(E.NONE, who[0], who[1] + 1)
        who = result.producer_id, result.producer_epoch
    assert [marker[:2] for marker in w.leaders.markers[A]] == [(1000, 1), (1000, 2), (1000, 3)]
    assert w.add((1000, 2), A) == E.PRODUCER_FENCED


def test_a_producer_may_change_from_one_way_to_the_other_with_each_transaction(w):
    who = w.producer()
    assert w.add(who, A) == w.end(who) == E.NONE
    w.run(0.1)
    assert add_and_raise(w, who, A) == E.NONE
    result = raise_(w, who)
    who = result.producer_id, result.producer_epoch
    assert w.add(who, A) == w.end(who) == E.NONE
    w.run(0.1)
    assert [marker[:2] for marker in w.leaders.markers[A]] == [(1000, 0), (1000, 1), (1000, 1)]


def nearly_exhausted(w):
    """A producer with the last epoch of its id."""
    w.producer()
    shard = w.coordinator._shard_of("t")
    entry = shard.contents.entries["t"]
    entry.put(replace(entry.transaction, producer_epoch=LAST_EPOCH))
    return 1000, LAST_EPOCH


def test_an_exhausted_producer_id_ends_its_last_transaction_and_another_goes_on(w):
    who = nearly_exhausted(w)
    assert add_and_raise(w, who, A) == E.NONE
    assert raise_(w, who) == ProducerResult(E.NONE, 1001, 0)
    assert w.leaders.markers[A][-1][:2] == (1000, LAST_EPOCH + 1)
    w.take_over()
    assert raise_(w, who) == ProducerResult(E.NONE, 1001, 0), "asked again, since the answer was lost"
    assert add_and_raise(w, (1001, 0), A) == E.NONE
    assert raise_(w, (1001, 0)) == ProducerResult(E.NONE, 1001, 1)


def test_who_goes_on_with_another_id_before_the_last_marker_is_written_comes_again(w):
    who = nearly_exhausted(w)
    assert add_and_raise(w, who, A) == E.NONE
    w.leaders.held = True
    assert raise_(w, who) == ProducerResult(E.NONE, 1001, 0)
    assert add_and_raise(w, (1001, 0), B) == E.CONCURRENT_TRANSACTIONS
    w.leaders.release()
    w.run(0.1)
    assert add_and_raise(w, (1001, 0), B) == E.NONE


def test_without_zookeeper_an_exhausted_producer_has_to_wait_with_its_end(w):
    who = nearly_exhausted(w)
    add_and_raise(w, who, A)
    w.ids.error = ZooKeeperError("away")
    assert raise_(w, who) == ProducerResult(E.COORDINATOR_NOT_AVAILABLE)
    w.ids.error = None
    assert raise_(w, who).error == E.NONE


def test_of_an_id_that_is_unknown_or_elsewhere_nothing_is_ended(w):
    assert raise_(w, (1000, 0)) == ProducerResult(E.INVALID_PRODUCER_ID_MAPPING)
    w.resign()
    assert raise_(w, (1000, 0)) == ProducerResult(E.NOT_COORDINATOR)


def test_its_records_are_of_version_1_and_say_so(w):
    who = w.producer()
    add_and_raise(w, who, A)
    raise_(w, who)
    _, ongoing, prepared, complete = w.log.records[INDEX]
    assert [record[1][:2] for record in (ongoing, prepared, complete)] == [b"\0\1"] * 3
    assert [read_record(*record).value.client_transaction_version for record in (ongoing, prepared, complete)] == [
        2
    ] * 3
    assert read_record(*complete).value == durable_value(w.coordinator.find("t"))
