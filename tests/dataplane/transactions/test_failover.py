"""Transactions over real logs and real replication: what the dead coordinator answered, its successor knows, and ends."""

import pytest

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC
from dataplane.coordination.log import ReplicatedLog
from dataplane.protocol.errors import ErrorCode
from dataplane.transactions.coordinator import TransactionCoordinator
from dataplane.transactions.events import AddPartitions, EndAndRaise, EndTransaction, Initialise, ProducerResult
from dataplane.transactions.model import RAISING
from dataplane.transactions.settings import TransactionSettings
from tests.dataplane.replication import cluster as replicated
from tests.dataplane.transactions.support import A, B, Ids, Leaders, Topics

E = ErrorCode


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(replicated, "TOPIC", TRANSACTIONS_TOPIC)
    made = replicated.ReplicatedCluster()
    made.ids = Ids()
    made.markers = {}
    for broker in made.brokers.values():
        give_coordinator(made, broker)
    made.create()
    made.run(1)
    return made


def give_coordinator(cluster, broker):
    """Every broker asks the same leaders, which are not among those that may die."""
    broker.leaders = Leaders(broker.loop)
    broker.leaders.markers = cluster.markers
    log = ReplicatedLog(broker.replicas, TRANSACTIONS_TOPIC)
    broker.transactions = TransactionCoordinator(
        broker.loop,
        log,
        TransactionSettings(),
        lambda: 1,
        broker.background,
        cluster.ids,
        Topics(),
        broker.leaders.call,
    )
    broker.replicas.roles.on_leadership(broker.transactions.on_leadership)


def ask(cluster, broker_id, what):
    """Call the coordinator in a turn of its broker; the answer after a second."""
    futures = []
    broker = cluster[broker_id]
    broker.loop.post(lambda: futures.append(what(broker.transactions)))
    cluster.run(1)
    return futures[0].result() if futures[0].done else None


def init():
    return lambda t: t.initialise("t", Initialise(60_000))


def add(who, *partitions):
    return lambda t: t.add_partitions("t", AddPartitions(*who, partitions))


def end(who, *, is_commit=True):
    return lambda t: t.end("t", EndTransaction(*who, is_commit))


def end_and_raise(who, *, is_commit=True):
    return lambda t: t.end_and_raise("t", EndAndRaise(*who, is_commit))


def open_transaction(cluster):
    result = ask(cluster, 1, init())
    who = result.producer_id, result.producer_epoch
    assert ask(cluster, 1, add(who, A, B)) == E.NONE
    return who


def fail_over(cluster):
    cluster.kill(1)
    cluster.forget(1)
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.run(1)


def state(cluster, broker_id):
    found = cluster[broker_id].transactions.find("t")
    return found if isinstance(found, ErrorCode) else found.state.value


@pytest.mark.parametrize("is_commit", [True, False])
def test_killed_when_the_end_is_stored_and_before_any_marker(cluster, is_commit):
    who = open_transaction(cluster)
    cluster[1].leaders.held = True
    assert ask(cluster, 1, end(who, is_commit=is_commit)) == E.NONE
    assert cluster.markers == {}
    fail_over(cluster)
    assert {p: taken[-1][:3] for p, taken in cluster.markers.items()} == dict.fromkeys((A, B), (*who, is_commit))
    assert state(cluster, 2) == ("CompleteCommit" if is_commit else "CompleteAbort")
    assert ask(cluster, 2, end(who, is_commit=is_commit)) == E.NONE


def test_killed_when_some_markers_are_written(cluster):
    who = open_transaction(cluster)
    cluster[1].leaders.codes[B] = E.NOT_LEADER_OR_FOLLOWER
    assert ask(cluster, 1, end(who)) == E.NONE
    assert set(cluster.markers) == {A}
    fail_over(cluster)
    assert [taken[:3] for taken in cluster.markers[A]] == [(*who, True)] * 2
    first, second = (epoch for *_, epoch in cluster.markers[A])
    assert first < second, "the successor's epoch is higher"
    assert [taken[:3] for taken in cluster.markers[B]] == [(*who, True)]


def test_killed_when_it_is_complete(cluster):
    who = open_transaction(cluster)
    assert ask(cluster, 1, end(who)) == E.NONE
    assert state(cluster, 1) == "CompleteCommit"
    fail_over(cluster)
    assert state(cluster, 2) == "CompleteCommit"
    assert len(cluster.markers[A]) == 1
    result = ask(cluster, 2, init())
    assert (result.error, result.producer_id, result.producer_epoch) == (E.NONE, who[0], who[1] + 1)


def test_killed_while_it_is_open(cluster):
    who = open_transaction(cluster)
    fail_over(cluster)
    assert state(cluster, 2) == "Ongoing"
    assert ask(cluster, 2, end(who)) == E.NONE
    assert {p: taken[-1][2] for p, taken in cluster.markers.items()} == {A: True, B: True}


def test_an_end_is_not_answered_before_the_in_sync_replicas_have_it_and_no_marker_written(cluster):
    who = open_transaction(cluster)
    cluster.network.cut("b1", "b3")
    assert ask(cluster, 1, end(who)) is None
    assert cluster.markers == {}
    cluster.network.heal("b1", "b3")
    cluster.run(3)
    assert set(cluster.markers) == {A, B}


def test_a_deposed_coordinator_that_cannot_store_an_end_writes_no_marker_and_its_successor_aborts_in_time(cluster):
    who = open_transaction(cluster)
    cluster.network.cut("b1", "b2")
    cluster.network.cut("b1", "b3")
    waiting = []
    cluster[1].loop.post(lambda: waiting.append(cluster[1].transactions.end("t", EndTransaction(*who, is_commit=True))))
    cluster.run(0.5)
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.run(1)
    assert not waiting[0].done or waiting[0].result() != E.NONE
    assert state(cluster, 2) == "Ongoing"
    cluster.run(62)
    assert {p: taken[-1][:3] for p, taken in cluster.markers.items()} == dict.fromkeys(
        (A, B), (who[0], who[1] + 1, False)
    )
    assert waiting[0].result() != E.NONE


@pytest.mark.parametrize("is_commit", [True, False])
def test_the_epoch_that_a_producer_goes_on_with_is_its_own_whoever_dies(cluster, is_commit):
    result = ask(cluster, 1, init())
    who = result.producer_id, result.producer_epoch
    after = who[0], who[1] + 1
    assert ask(cluster, 1, lambda t: t.add_partitions("t", AddPartitions(*who, (A, B), version=RAISING))) == E.NONE
    cluster[1].leaders.held = True
    assert ask(cluster, 1, end_and_raise(who, is_commit=is_commit)) == ProducerResult(E.NONE, *after)
    assert cluster.markers == {}
    fail_over(cluster)
    assert {p: taken[-1][:3] for p, taken in cluster.markers.items()} == dict.fromkeys((A, B), (*after, is_commit))
    assert ask(cluster, 2, end_and_raise(who, is_commit=is_commit)) == ProducerResult(E.NONE, *after)
    assert ask(cluster, 2, add(who, A)) == E.PRODUCER_FENCED
    assert ask(cluster, 2, add(after, A)) == E.NONE
