"""Groups over real logs and real replication: what the dead coordinator answered, its successor knows."""

from random import Random

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.log import ReplicatedLog
from dataplane.groups.classic.events import (
    Heartbeat,
    Join,
    Sync,
)
from dataplane.groups.commits import Commit, Offset
from dataplane.groups.coordinator import GroupCoordinator
from dataplane.groups.settings import GroupSettings
from dataplane.protocol.errors import ErrorCode
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
