"""What the control plane asks about one topic, or changes of several, against real brokers."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import Invalid, NotFound
from controlplane.kafka import client, config_bytes, config_door, group_door, groups, size_door, topics
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import QUIET, create_topic
from tests.support.processes import HOST, SECRET
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration

CLUSTER = ClusterAddress(0, "")
RECORD = 1000


@pytest.fixture(autouse=True)
def doors(cluster, monkeypatch, patient_doors):
    """As a process of the control plane has them."""
    who = Identification(credential(SECRET, "controlplane"))
    bootstrap = ",".join(f"{HOST}:{broker.ports['internal']}" for broker in cluster.brokers.values())
    asks = client.KafkaAdmin(bootstrap, who)
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    monkeypatch.setattr(client, "admin", lambda _cluster: asks)
    monkeypatch.setattr(group_door, "door", lambda _cluster: group_door.KafkaGroups(CLUSTER, asks))
    monkeypatch.setattr(config_door, "door", lambda _cluster: config_door.KafkaConfigs(CLUSTER, who))
    monkeypatch.setattr(size_door, "door", lambda _cluster: size_door.KafkaSizes(CLUSTER, who))
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    yield
    tree.close()


def rows(tenant, name="orders"):
    return {row.name: row for row in config_door.read(CLUSTER, tenant.id, name)}


def test_every_configuration_with_where_it_comes_from(tenant):
    create_topic(tenant, "orders", 1)
    topics.config_set(CLUSTER, tenant.id, "orders", {"retention.ms": "86400000"})
    wait_for(
        lambda: rows(tenant)["retention.ms"].value == "86400000", 20, "the configuration on the broker that is asked"
    )
    found = rows(tenant)
    assert found["retention.ms"].source == config_bytes.OF_TOPIC
    assert found["retention.ms"].inherited.value not in (None, "86400000")
    assert found["segment.ms"].source == found["segment.ms"].inherited.source != config_bytes.OF_TOPIC
    assert "600000 at least" in found["segment.ms"].documentation, "as the service bounds it for tenants"
    assert found["preallocate"].is_read_only
    assert not found["retention.ms"].is_read_only
    assert all(row.documentation for row in found.values())


def test_anothers_topic_is_not_there(tenant, new_tenant):
    other = new_tenant()
    create_topic(other, "secret", 1)
    with pytest.raises(NotFound):
        config_door.read(CLUSTER, tenant.id, "secret")


def test_sizes_and_the_newest_timestamp_of_partitions(tenant):
    create_topic(tenant, "orders", 2)
    now_ms = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": tenant.bootstrap, "acks": "all", **QUIET})
    for ms in (now_ms - 5000, now_ms - 1000, now_ms - 3000):
        producer.produce("orders", bytes(RECORD), partition=0, timestamp=ms)
        assert producer.flush(20) == 0
    places = [("orders", 0), ("orders", 1)]
    assert groups.newest(CLUSTER, tenant.id, places) == {places[0]: now_ms - 1000, places[1]: None}
    found = size_door.read(CLUSTER, tenant.id, places)
    assert None not in found.values()
    sizes = [of_broker[places[0]] for of_broker in found.values() if places[0] in of_broker]
    assert len(sizes) == len(topics.get(CLUSTER, tenant.id, "orders").layout[0].replicas)
    assert all(3 * RECORD < size < 10 * RECORD for size in sizes)
    assert {place for of_broker in found.values() for place in of_broker} == set(places)


def test_a_topic_that_is_made_again_has_another_id(tenant):
    create_topic(tenant, "orders", 1)
    first = topics.get(CLUSTER, tenant.id, "orders").id
    assert len(first) == 22
    assert topics.ids(CLUSTER, tenant.id, ["orders", "missing"]) == {"orders": first}
    topics.delete(CLUSTER, tenant.id, "orders")
    topics.create(CLUSTER, tenant.id, "orders", partitions=1, replication_factor=1, config={})
    wait_for(lambda: topics.get(CLUSTER, tenant.id, "orders").id not in ("", first), 20, "the new topic's id")


def test_several_topics_are_configured_at_once_and_each_says_what_became_of_it(tenant):
    for name in ("clicks", "orders"):
        create_topic(tenant, name, 1)
    names, wanted = ["clicks", "missing", "orders"], {"retention.ms": "60000"}
    looked = topics.configs_set(CLUSTER, tenant.id, names, wanted, validate_only=True)
    assert [type(looked[name]) for name in names] == [type(None), NotFound, type(None)]
    assert topics.configs(CLUSTER, tenant.id, ["clicks"]) == {"clicks": {}}
    done = topics.configs_set(CLUSTER, tenant.id, names, wanted)
    assert [type(done[name]) for name in names] == [type(None), NotFound, type(None)]
    wait_for(
        lambda: topics.config(CLUSTER, tenant.id, "orders") == wanted, 20, "the change on the broker that is asked"
    )
    refused = topics.configs_set(CLUSTER, tenant.id, ["orders"], {"retention.ms": "soon"})["orders"]
    assert isinstance(refused, Invalid)
    assert tenant.id.removeprefix("ins-") not in refused.detail, "no physical name is said"
    assert topics.configs_set(CLUSTER, tenant.id, names[::2], {"retention.ms": None}) == {
        "clicks": None,
        "orders": None,
    }
