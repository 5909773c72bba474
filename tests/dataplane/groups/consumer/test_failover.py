"""Over real logs and real replication: a coordinator dies while partitions change hands, and its successor goes on from there."""

import pytest

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.groups.consumer.events import Heartbeat
from dataplane.groups.consumer.model import places
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.groups import test_failover
from tests.dataplane.groups.consumer.clients import Client
from tests.dataplane.replication import cluster as replicated


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setattr(replicated, "TOPIC", OFFSETS_TOPIC)
    made = replicated.ReplicatedCluster()
    for broker in made.brokers.values():
        test_failover.give_coordinator(broker)
        broker.groups.consumers._topics.put("t", 4)
    made.create()
    made.run(1)
    return made


def beat(cluster, broker_id, client, *, is_lost=False):
    """A heartbeat of a client; what it hears, and then does."""
    asked = client.request()
    ask = Heartbeat(client.member_id, asked.pop("epoch"), **asked)
    result = test_failover.ask(cluster, broker_id, lambda g: g.consumers.heartbeat("g", ask, lambda _: True, ""))
    if result is None or is_lost or result.error == ErrorCode.NOT_COORDINATOR:
        client.hears_nothing()
    else:
        client.hears(result)
    return result


def fail_over(cluster):
    cluster.kill(1)
    cluster.forget(1)
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.run(1)


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("is_lost", [False, True])
def test_nobody_joins_again_and_nothing_has_two_owners(cluster, steps, is_lost):
    ana, bob = Client("ana", ("t",)), Client("bob", ("t",))
    beat(cluster, 1, ana)
    ana.revoke()
    turns = [bob, ana, bob, ana, bob, ana]
    for number, client in enumerate(turns[:steps], 1):
        beat(cluster, 1, client, is_lost=is_lost and number == steps)
        client.revoke()
    fail_over(cluster)
    for client in [ana, bob] * 4:
        beat(cluster, 2, client)
        client.revoke()
        owned = [*places(ana.owns), *places(bob.owns)]
        assert len(owned) == len(set(owned))
    assert ana.epoch == bob.epoch == 2
    assert len(owned) == 4


def test_what_is_not_replicated_is_not_answered(cluster):
    ana = Client("ana", ("t",))
    cluster.network.cut("b1", "b2")
    cluster.network.cut("b1", "b3")
    assert beat(cluster, 1, ana) is None
    cluster.elect(2, (2, 3))
    cluster.run(1)
    assert beat(cluster, 2, ana).epoch == 1
