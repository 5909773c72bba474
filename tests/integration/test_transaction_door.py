"""The control plane's door to transactions, against real brokers and a real producer."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import Conflict, NotFound
from controlplane.kafka import client, transaction_door, transactions
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import QUIET, consumer, create_topic, produce, take
from tests.support.processes import HOST, SECRET

pytestmark = pytest.mark.integration

CLUSTER = ClusterAddress(0, "")
COPIER = "copier/1"


@pytest.fixture(autouse=True)
def door(cluster, monkeypatch):
    """As a process of the control plane has it."""
    who = Identification(credential(SECRET, "controlplane"))
    bootstrap = ",".join(f"{HOST}:{broker.ports['internal']}" for broker in cluster.brokers.values())
    asks = client.KafkaAdmin(bootstrap, who)
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    monkeypatch.setattr(client, "admin", lambda _cluster: asks)
    monkeypatch.setattr(transaction_door, "to_brokers", lambda: who)
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    yield
    tree.close()


@pytest.fixture
def opened(tenant):
    """A producer that has written one record in a transaction, behind one that is committed, and says no more."""
    create_topic(tenant, "orders", 2)
    produce(tenant, "orders", [b"before"])
    options = {"bootstrap.servers": tenant.bootstrap, "transactional.id": COPIER, "transaction.timeout.ms": 60_000}
    producer = Producer({**options, **QUIET})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"never", partition=0)
    assert producer.flush(30) == 0
    return producer


def test_one_that_is_left_open_is_seen_and_ended_and_readers_go_on(tenant, new_tenant, opened):
    found = transactions.get(CLUSTER, tenant.id, COPIER)
    assert (found.state, found.timeout_ms, found.partitions) == ("Ongoing", 60_000, (("orders", 0),))
    assert transactions.list_all(CLUSTER, tenant.id, states=["Ongoing"]) == [COPIER]
    assert transactions.list_all(CLUSTER, tenant.id, open_for_ms=60_000) == []
    assert transactions.list_all(CLUSTER, new_tenant().id) == []
    starts = transactions.open_producers(CLUSTER, tenant.id, [("orders", 0), ("orders", 1)])
    begins = starts["orders", 0][found.producer_id]
    assert starts == {("orders", 0): {found.producer_id: begins}, ("orders", 1): {}}
    with consumer(tenant, "readers", isolation_level="read_committed") as reader:
        reader.assign([TopicPartition("orders", 0, begins)])
        produce_behind(tenant)
        assert reader.poll(1.0) is None  # the last stable offset is where the transaction begins
        ended = transactions.end(CLUSTER, tenant.id, COPIER)
        assert ended.producer_id == found.producer_id
        assert [message.value() for message in take(reader, 1)] == [b"behind"]
    after = transactions.get(CLUSTER, tenant.id, COPIER)
    assert (after.state, after.timeout_ms, after.partitions) == ("Empty", 60_000, ())
    assert transactions.open_producers(CLUSTER, tenant.id, [("orders", 0)]) == {("orders", 0): {}}
    with pytest.raises(KafkaException):
        opened.commit_transaction(30)
    with pytest.raises(Conflict):
        transactions.end(CLUSTER, tenant.id, COPIER)


def produce_behind(tenant):
    producer = Producer({"bootstrap.servers": tenant.bootstrap, **QUIET})
    producer.produce("orders", b"behind", partition=0)
    assert producer.flush(30) == 0


def test_ending_what_is_not_there_makes_nothing(tenant):
    with pytest.raises(NotFound):
        transactions.end(CLUSTER, tenant.id, "nobody")
    assert transactions.list_all(CLUSTER, tenant.id) == []
