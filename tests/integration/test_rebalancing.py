"""A fourth broker is added to a real cluster and filled, another is drained, and the fourth goes again: nothing is lost.

And a move is called back in the middle.

The control plane's own code, from proposals to the steps of their operations, against real brokers while a tenant writes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.clusters.identification import Identification
from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.core import operations
from controlplane.core.models import Operation
from controlplane.kafka import client, placement_door
from controlplane.rebalancing import services
from controlplane.rebalancing.models import Rebalance
from quota.contracts.identity import credential
from tests.integration.clients import create_topic, produce, read_all
from tests.integration.test_reassignment import Writer
from tests.support.processes import HOST, SECRET, broker_process, secrets_file
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.django_db, pytest.mark.timeout(300)]
EVERY = (1, 2, 3, 4)
TIB = 2**40


@pytest.fixture
def fourth(cluster):
    """A broker that the cluster does not have yet; taken away at the end, when nothing is on it any more."""
    folder = cluster.brokers[1].config.parent
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    server = broker_process(folder, 4, zookeeper=hosts, secrets=secrets_file(folder))
    server.start()
    try:
        wait_for(lambda: 4 in cluster.registered(), 30, "the fourth broker")
        yield server
    finally:
        server.kill()
        wait_for(lambda: 4 not in cluster.registered(), 20, "the fourth broker's registration to end")


class RoomyDisks(placement_door.KafkaPlacement):
    """Real brokers on disks with room: on a machine whose disk is nearly full nothing would be copied, as it should be."""

    def disks(self, brokers, places=None):
        found = super().disks(brokers, places)
        return {number: replace(disk, total_bytes=TIB, usable_bytes=TIB // 2) for number, disk in found.items()}


@pytest.fixture
def rows(cluster, monkeypatch):
    """The cluster as the control plane knows it, and its door to the brokers."""
    bootstrap = ",".join(f"{HOST}:{server.ports['internal']}" for server in cluster.brokers.values())
    asks = client.KafkaAdmin(bootstrap, Identification(credential(SECRET, "controlplane")))
    monkeypatch.setattr(placement_door, "door", lambda _cluster: RoomyDisks(asks))
    monkeypatch.setattr(operations, "wake", lambda _ids: None)
    row = PhysicalCluster.objects.create(name="real")
    for number, server in cluster.brokers.items():
        Broker.objects.create(cluster=row, broker_id=number, host=HOST, port=server.ports["internal"])
    return row


def to_the_end(operation_id):
    """Be beat and a worker."""
    found = Operation.objects.unscoped("a test").filter(pk=operation_id)

    def is_over():
        operations.run(operation_id)
        return found.get().state != "running"

    wait_for(is_over, 120, "the operation")
    operation = found.get()
    assert operation.state == "succeeded", operation.steps


def rebalanced(rows, **wishes):
    """Proposed, planned, carried out; the row at the end."""
    row = services.rebalance_propose(cluster=rows, actor="test", **wishes)
    to_the_end(row.operation_id)
    row = services.rebalance_carry_out(rebalance_id=row.id, actor="test")
    to_the_end(row.operation_id)
    row = Rebalance.objects.get(pk=row.pk)
    assert (row.state, row.problem) == ("done", ""), list(row.moves.values("topic", "partition", "state", "problem"))
    return row


def held(cluster):
    """By broker: how many replicas it has, of all topics."""
    found = dict.fromkeys(EVERY, 0)
    for topic in cluster.zookeeper.get_children("/brokers/topics"):
        for replicas in cluster.read(f"/brokers/topics/{topic}")["partitions"].values():
            for broker in replicas:
                found[broker] += 1
    return found


def test_a_broker_is_added_another_drained_and_the_new_one_removed_while_a_tenant_writes(cluster, fourth, rows):
    Broker.objects.create(cluster=rows, broker_id=4, host=HOST, port=fourth.ports["internal"])
    tenant = cluster.specs.create(EVERY)
    cluster.tenants.append(tenant)
    create_topic(tenant, "orders", 8, 2)
    with Writer(tenant, "orders") as writer:
        added = rebalanced(rows, goals=["replicas", "leaders"], throttle_bytes_per_s=20 * 2**20, at_once=4)
        assert added.summary["settled"]
        now = held(cluster)
        assert now[4] > 0
        assert max(now.values()) - min(now.values()) <= max(2, max(now.values()) // 4)
        rebalanced(rows, draining=[2], goals=["leaders"], at_once=4)
        assert held(cluster)[2] == 0
        assert all(cluster.leader(tenant, "orders", number) in (1, 3, 4) for number in range(8))
        rebalanced(rows, draining=[4], goals=["replicas", "leaders"])
        assert held(cluster)[4] == 0
    assert not writer.sender.refused
    assert sorted(value for values in read_all(tenant, "orders").values() for value in values) == sorted(writer.sent)
    assert not throttles(cluster, f"{tenant.key}.orders")
    cluster.forget(tenant)


def throttles(cluster, topic):
    """What is left of one, of the topic and of brokers."""
    brokers = cluster.zookeeper.get_children("/config/brokers")
    paths = [f"/config/topics/{topic}", *(f"/config/brokers/{name}" for name in brokers)]
    return [path for path in paths if b"throttled" in cluster.zookeeper.get(path)[0]]


def test_what_is_under_way_is_called_back_and_nothing_is_left_of_it(cluster, tenant, rows):
    create_topic(tenant, "orders", 1, 2)
    physical = f"{tenant.key}.orders"
    before = cluster.read(f"/brokers/topics/{physical}")["partitions"]["0"]
    produce(tenant, "orders", [number.to_bytes(2, "big") * 50_000 for number in range(40)])
    row = services.rebalance_propose(
        cluster=rows, actor="test", draining=before[:1], goals=[], throttle_bytes_per_s=64 * 1024
    )
    to_the_end(row.operation_id)
    row.moves.exclude(topic=physical).delete()
    row = services.rebalance_carry_out(rebalance_id=row.id, actor="test")

    def copies():
        operations.run(row.operation_id)
        return row.moves.get().copied_bytes > 0

    wait_for(copies, 60, "the first bytes")
    assert row.moves.get().state == "moving"
    assert throttles(cluster, physical) == [f"/config/topics/{physical}", "/config/brokers/<default>"]
    services.rebalance_cancel(rebalance_id=row.id, actor="test")
    to_the_end(row.operation_id)
    assert Rebalance.objects.get(pk=row.pk).state == "cancelled"
    assert cluster.read(f"/brokers/topics/{physical}")["partitions"]["0"] == before
    assert not throttles(cluster, physical)
