"""Groups over real logs and real replication: what the dead coordinator answered, its successor knows."""

from random import Random
from types import SimpleNamespace

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.effects import Producer
from dataplane.coordination.log import ReplicatedLog
from dataplane.groups.classic.events import (
    Heartbeat,
    Join,
    Sync,
)
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.coordinator import GroupCoordinator
from dataplane.groups.settings import GroupSettings
from dataplane.handlers.internal.txn_markers import handle_write_txn_markers
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from dataplane.records.steps import run_through
from dataplane.tasks import resolved
from tests.dataplane.groups.support import FixedTopics
from tests.dataplane.replication import cluster as replicated


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(replicated, "TOPIC", OFFSETS_TOPIC)
    made = replicated.ReplicatedCluster()
    for broker in made.brokers.values():
        give_coordinator(broker)
    made.create()
    made.run(1)
    return made


def give_coordinator(broker):
    settings = GroupSettings(group_initial_rebalance_delay_ms=0)
    log = ReplicatedLog(broker.replicas, OFFSETS_TOPIC)
    broker.groups = GroupCoordinator(
        broker.loop, log, Random(broker.id), settings, lambda: 1, broker.background, FixedTopics()
    )
    broker.replicas.roles.on_leadership(broker.groups.on_leadership)


def ask(cluster, broker_id, what):
    """Call the coordinator in a turn of its broker; the answer after a second."""
    futures = []
    broker = cluster[broker_id]
    broker.loop.post(lambda: futures.append(what(broker.groups)))
    cluster.run(1)
    return futures[0].result() if futures[0].done else None


def stable_member(cluster, broker_id):
    joined = ask(cluster, broker_id, lambda g: g.join("g", Join("", "consumer", (("range", b"x"),), 10_000, 60_000)))
    member = joined.member_id
    synced = ask(cluster, broker_id, lambda g: g.sync("g", Sync(1, member, assignments={member: b"all"})))
    assert synced.assignment == b"all"
    return member


def commit(offset, member):
    return lambda g: g.commit("g", Commit({("t", 0): Offset(offset)}, 1, member))


def test_a_successor_has_the_group_and_its_offsets(cluster):
    member = stable_member(cluster, 1)
    assert ask(cluster, 1, commit(41, member)) == {("t", 0): ErrorCode.NONE}
    assert ask(cluster, 1, commit(42, member)) == {("t", 0): ErrorCode.NONE}
    assert ask(cluster, 2, lambda g: g.heartbeat("g", Heartbeat(1, member))).error == ErrorCode.NOT_COORDINATOR
    cluster.kill(1)
    cluster.forget(1)
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.run(1)
    assert cluster[2].groups.committed("g")[("t", 0)].offset == 42
    assert ask(cluster, 2, lambda g: g.heartbeat("g", Heartbeat(1, member))).error == ErrorCode.NONE
    assert ask(cluster, 2, commit(43, member)) == {("t", 0): ErrorCode.NONE}


def test_a_commit_is_not_answered_before_the_in_sync_replicas_have_it(cluster):
    member = stable_member(cluster, 1)
    cluster.network.cut("b1", "b3")
    assert ask(cluster, 1, commit(5, member)) is None
    assert cluster[1].groups.committed("g") == {}
    cluster.network.heal("b1", "b3")
    cluster.run(3)
    assert cluster[1].groups.committed("g")[("t", 0)].offset == 5


def test_a_deposed_coordinator_answers_what_waits_and_forgets(cluster):
    member = stable_member(cluster, 1)
    cluster.network.cut("b1", "b2")
    cluster.network.cut("b1", "b3")
    waiting = []
    cluster[1].loop.post(
        lambda: waiting.append(cluster[1].groups.commit("g", Commit({("t", 0): Offset(9)}, 1, member)))
    )
    cluster.run(0.1)
    cluster.elect(2, (2, 3))
    cluster.run(0.1)
    assert waiting[0].result() == {("t", 0): ErrorCode.NOT_COORDINATOR}
    assert cluster[1].groups.committed("g") == ErrorCode.NOT_COORDINATOR
    assert cluster[2].groups.committed("g") == {}


def test_a_restarted_broker_loads_groups_from_its_own_log(cluster):
    member = stable_member(cluster, 1)
    assert ask(cluster, 1, commit(7, member)) == {("t", 0): ErrorCode.NONE}
    cluster.kill(1)
    give_coordinator(cluster.start(1))
    cluster.elect(1, (1, 2, 3))
    cluster.run(1)
    assert cluster[1].groups.committed("g")[("t", 0)].offset == 7
    assert ask(cluster, 1, lambda g: g.heartbeat("g", Heartbeat(1, member))).error == ErrorCode.NONE


# --- transactions -----------------------------------------------------------------------------------------------------

ANA, BOB = Producer(7, 0), Producer(8, 2)


def commit_in(producer, offset, partition=0):
    ask = Commit({("t", partition): Offset(offset)}, producer=producer)
    return lambda g: g.commit("g", ask)


def begin_mark(cluster, broker_id, producer, *, committed=True):
    """The transaction's coordinator sends the leader a marker; what becomes of it, once it is known."""
    broker, answers = cluster[broker_id], []
    doors = SimpleNamespace(clock=broker.loop.clock)
    slices = SimpleNamespace(run=lambda _owner, steps: resolved(run_through(steps)))
    rooms = SimpleNamespace(groups=broker.groups, replicas=broker.replicas, doors=doors, slices=slices)
    topics = (WritableTxnMarkerTopic(OFFSETS_TOPIC, (0,)),)
    request = WriteTxnMarkersRequest((WritableTxnMarker(producer.id, producer.epoch, committed, topics, 0),))

    def write():
        run_through(
            handle_write_txn_markers(SimpleNamespace(broker=rooms, owner="", may=lambda *_: True), request)
        ).then(lambda answered: answers.append(answered.result().markers[0].topics[0].partitions[0].error_code))

    broker.loop.post(write)
    return answers


def mark(cluster, broker_id, producer, *, committed=True):
    answers = begin_mark(cluster, broker_id, producer, committed=committed)
    cluster.run(1)
    assert answers == [ErrorCode.NONE]


def offset_at(cluster, broker_id, key=("t", 0)):
    groups = cluster[broker_id].groups
    found = groups.committed("g").get(key)
    return None if found is None else found.offset, groups.unstable("g")(key)


def fail_over(cluster, old, new, in_sync):
    cluster.kill(old)
    cluster.forget(old)
    cluster.elect(new, in_sync, told=in_sync)
    cluster.run(1)


@pytest.mark.parametrize(("committed", "left"), [(True, 2), (False, 1)])
def test_a_transaction_is_ended_by_the_leader_that_came_between_its_commit_and_its_marker(cluster, committed, left):
    assert ask(cluster, 1, commit_in(None, 1)) == {("t", 0): ErrorCode.NONE}
    assert ask(cluster, 1, commit_in(ANA, 2)) == {("t", 0): ErrorCode.NONE}
    assert offset_at(cluster, 1) == (1, True)
    fail_over(cluster, 1, 2, (2, 3))
    assert offset_at(cluster, 2) == (1, True)
    mark(cluster, 2, ANA, committed=committed)
    assert offset_at(cluster, 2) == (left, False)
    fail_over(cluster, 2, 3, (3,))
    assert offset_at(cluster, 3) == (left, False)


def test_a_marker_that_was_never_replicated_is_sent_again_to_the_successor(cluster):
    assert ask(cluster, 1, commit_in(ANA, 2)) == {("t", 0): ErrorCode.NONE}
    cluster.network.cut("b1", "b2")
    cluster.network.cut("b1", "b3")
    answers = begin_mark(cluster, 1, ANA)
    cluster.run(0.5)
    assert (answers, offset_at(cluster, 1)) == ([], (None, True))
    fail_over(cluster, 1, 2, (2, 3))
    assert offset_at(cluster, 2) == (None, True)
    mark(cluster, 2, ANA)
    assert offset_at(cluster, 2) == (2, False)


def test_a_marker_that_was_replicated_and_not_told_is_loaded_and_harmless_when_it_comes_again(cluster):
    assert ask(cluster, 1, commit_in(ANA, 2)) == {("t", 0): ErrorCode.NONE}
    begin_mark(cluster, 1, ANA)
    cluster.run(0.3)
    fail_over(cluster, 1, 2, (2, 3))
    assert offset_at(cluster, 2) == (2, False)
    assert ask(cluster, 2, commit_in(None, 3)) == {("t", 0): ErrorCode.NONE}
    mark(cluster, 2, ANA)
    assert offset_at(cluster, 2) == (3, False)


def test_several_producers_and_several_transactions_of_each_over_the_real_log(cluster):
    for number in range(3):
        for producer, partition in ((ANA, 0), (BOB, 1), (ANA, 2)):
            told = ask(cluster, 1, commit_in(producer, number, partition))
            assert told == {("t", partition): ErrorCode.NONE}
        mark(cluster, 1, ANA, committed=number != 2)
        mark(cluster, 1, BOB)
    assert [offset_at(cluster, 1, ("t", n)) for n in range(3)] == [(1, False), (2, False), (1, False)]
    fail_over(cluster, 1, 3, (2, 3))
    assert [offset_at(cluster, 3, ("t", n)) for n in range(3)] == [(1, False), (2, False), (1, False)]


def test_a_zombie_of_a_producer_commits_nothing(cluster):
    assert ask(cluster, 1, commit_in(BOB, 1)) == {("t", 0): ErrorCode.NONE}
    mark(cluster, 1, BOB)
    zombie = Producer(BOB.id, BOB.epoch - 1)
    assert ask(cluster, 1, commit_in(zombie, 2)) == {("t", 0): ErrorCode.INVALID_PRODUCER_EPOCH}
    assert offset_at(cluster, 1) == (1, False)


def test_a_commit_that_is_larger_than_the_topic_takes_is_refused(cluster):
    most = cluster[1].partition().state.settings.max_message_bytes
    rows = {("t", n): Offset(1, metadata="x" * 4_000) for n in range(most // 4_000 + 1)}
    told = ask(cluster, 1, lambda g: g.commit("g", Commit(rows, producer=ANA)))
    assert set(told.values()) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert cluster[1].groups.find("g") is None
