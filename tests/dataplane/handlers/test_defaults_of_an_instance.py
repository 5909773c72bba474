"""An instance has its own defaults for topics that do not say: partitions, replicas, the largest batch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dataplane.doors import Create
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from quota.contracts.instance import InstanceSpec, TopicDefaults
from tests.simulation.cluster import INSTANCE, SetData, SimulatedCluster

SPEC = f"/sluice/instances/{INSTANCE}"
TOPIC, BROKER = 2, 4


@pytest.fixture
def cluster():
    cluster = SimulatedCluster(seed=7)
    cluster.until(cluster.up)
    return cluster


def configure(cluster, **members):
    spec = InstanceSpec.from_json(cluster.zookeeper.tree.node(SPEC).data)
    change = replace(spec, generation=spec.generation + 1, **members)
    word = Create("/sluice/changes/change-", json.dumps({"instance": INSTANCE}).encode(), sequential=True)
    cluster.zookeeper.write([SetData(SPEC, change.to_json()), word])
    cluster.network.run_for(2.0)


class Tenant:
    """Asks the controller's broker: it answers everything."""

    def __init__(self, cluster):
        self.cluster = cluster

    def ask(self, request, version):
        controller = self.cluster.brokers[1].metadata.controller_id
        answer = self.cluster.client.call(controller, request, version)
        self.cluster.until(lambda: answer.done, 60)
        return answer.result()


def create(tenant, name, partitions=-1, replicas=-1, **config):
    configs = tuple(CreatableTopicConfig(key, value) for key, value in config.items())
    request = CreateTopicsRequest(
        topics=(CreatableTopic(name, partitions, replicas, configs=configs),), timeout_ms=5000
    )
    (answer,) = tenant.ask(request, 5).topics
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return answer.num_partitions, answer.replication_factor


def described(tenant, kind, name=None):
    """Of a broker: the one that is asked."""
    name = name or str(tenant.cluster.brokers[1].metadata.controller_id)
    request = DescribeConfigsRequest(resources=(DescribeConfigsResource(kind, name, None),))
    return {config.name: config.value for config in tenant.ask(request, 2).results[0].configs}


def test_a_topic_that_does_not_say_gets_the_instances_partitions_and_replicas(cluster):
    configure(cluster, topic_defaults=TopicDefaults(partitions=4, replication_factor=2))
    tenant = Tenant(cluster)
    assert create(tenant, "unsaid") == (4, 2)
    assert create(tenant, "said", 1, 3) == (1, 3)
    shown = described(tenant, BROKER)
    assert (shown["num.partitions"], shown["default.replication.factor"]) == ("4", "2")


def test_a_topic_that_comes_by_itself_gets_them_too(cluster):
    configure(cluster, topic_defaults=TopicDefaults(partitions=5, replication_factor=2), auto_create_topics=True)
    request = MetadataRequest(topics=(MetadataRequestTopic(name="by-itself"),), allow_auto_topic_creation=True)

    def topic():
        answer = cluster.client.call(1, request, 9)
        cluster.until(lambda: answer.done, 10)
        return answer.result().topics[0]

    topic()
    cluster.network.run_for(3.0)
    assert len(topic().partitions) == 5
    assert {len(partition.replica_nodes) for partition in topic().partitions} == {2}


def test_without_defaults_of_its_own_the_brokers_count(cluster):
    settings = cluster.brokers[1].config.settings
    assert create(Tenant(cluster), "unsaid") == (settings.num_partitions, settings.default_replication_factor)


def test_the_largest_batch_follows_the_instance_where_the_topic_does_not_say(cluster):
    tenant = Tenant(cluster)
    create(tenant, "orders", 1, 3)
    create(tenant, "own", 1, 3, **{"max.message.bytes": "2000"})

    def largest(topic):
        return {
            broker.replicas.registry.get(f"simulate.{topic}", 0).state.settings.max_message_bytes
            for broker in cluster.brokers.values()
        }

    before = largest("orders")
    configure(cluster, topic_defaults=TopicDefaults(max_message_bytes=5_000_000))
    assert largest("orders") == {5_000_000}
    assert largest("own") == {2000}
    create(tenant, "later", 1, 3)
    assert largest("later") == {5_000_000}
    assert described(tenant, TOPIC, "orders")["max.message.bytes"] == "5000000"
    assert described(tenant, TOPIC, "own")["max.message.bytes"] == "2000"
    assert described(tenant, BROKER)["message.max.bytes"] == "5000000"
    configure(cluster, topic_defaults=TopicDefaults())
    assert largest("orders") == before


def test_another_instances_topics_are_none_of_its_business(cluster):
    before = described(Tenant(cluster), BROKER)
    configure(cluster, topic_defaults=TopicDefaults(partitions=7))
    settings = cluster.brokers[1].config.settings
    assert settings.num_partitions != 7
    assert described(Tenant(cluster), BROKER) == before | {"num.partitions": "7"}
