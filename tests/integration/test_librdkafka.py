"""confluent-kafka (librdkafka) against a tenant's port: what an application does all day."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import ConfigResource

from tests.integration.clients import TIMEOUT_S, admin, consumer, create_topic, delete_topic, produce, read_all, take
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration


def values(count, prefix="value"):
    return [f"{prefix}-{number}".encode() for number in range(count)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_is_consumed(tenant, codec):
    create_topic(tenant, "orders", 3)
    sent = produce(tenant, "orders", values(300), compression_type=codec, linger_ms=20)
    assert sorted(value for part in read_all(tenant, "orders").values() for value in part) == sorted(values(300))
    assert {partition for partition, _, _ in sent} == {0, 1, 2}


def test_a_group_of_two_shares_the_partitions_and_reads_everything_once(tenant):
    create_topic(tenant, "orders", 4)
    seen: dict[str, list[tuple[int, int]]] = {"one": [], "two": []}
    held: dict[str, set[int]] = {"one": set(), "two": set()}
    together, stop = threading.Barrier(3, timeout=40), threading.Event()

    def member(name: str) -> None:
        with consumer(tenant, "billing", session_timeout_ms=6000) as reader:
            reader.subscribe(["orders"])
            shared = False
            while not stop.is_set():
                for message in reader.consume(100, 0.1):
                    assert message.error() is None
                    seen[name].append((message.partition(), message.offset()))
                held[name] = {p.partition for p in reader.assignment()}
                if not shared and len(held["one"]) == len(held["two"]) == 2:
                    shared = True
                    together.wait()

    threads = [threading.Thread(target=member, args=(name,)) for name in seen]
    for thread in threads:
        thread.start()
    try:
        together.wait()
        assert held["one"] | held["two"] == {0, 1, 2, 3}
        produce(tenant, "orders", values(400))
        wait_for(lambda: len(seen["one"]) + len(seen["two"]) >= 400, 20, "both members to read everything")
        time.sleep(0.3)  # what comes twice would come now
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert seen["one"]
    assert seen["two"]
    assert len(seen["one"]) + len(seen["two"]) == len({*seen["one"], *seen["two"]}) == 400


def test_a_group_resumes_where_it_committed(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", values(100))
    with consumer(tenant) as reader:
        reader.subscribe(["orders"])
        last = take(reader, 40)[-1]
        reader.commit(message=last, asynchronous=False)
    with consumer(tenant) as reader:
        reader.subscribe(["orders"])
        assert [message.value() for message in take(reader, 60)] == values(100)[40:]
        assert reader.committed([TopicPartition("orders", 0)], TIMEOUT_S)[0].offset == 40


def test_a_deleted_topic_is_gone_and_its_name_can_be_used_again(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", values(10))
    delete_topic(tenant, "orders")
    wait_for(lambda: "orders" not in admin(tenant).list_topics(timeout=10).topics, 30, "the topic to be gone")
    create_topic(tenant, "orders")
    assert read_all(tenant, "orders") == {}


def test_a_tenant_sees_its_own_names_addresses_and_cluster_id(tenant, cluster):
    create_topic(tenant, "orders")
    produce(tenant, "orders", values(1))
    with consumer(tenant) as reader:
        reader.subscribe(["orders"])
        take(reader, 1)  # so that __consumer_offsets exists
    client = admin(tenant)
    metadata = client.list_topics(timeout=10)
    assert list(metadata.topics) == ["orders"]
    assert metadata.cluster_id == tenant.id
    assert {n: (broker.host, broker.port) for n, broker in metadata.brokers.items()} == tenant.addresses
    described = client.describe_cluster().result(TIMEOUT_S)
    assert described.cluster_id == tenant.id
    assert {node.id: (node.host, node.port) for node in described.nodes} == tenant.addresses


def test_configs_of_a_topic_say_what_was_set_and_what_is_default(tenant):
    create_topic(tenant, "orders", retention_ms="86400000", min_insync_replicas="2")
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    client = admin(tenant)
    found = client.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert (found["retention.ms"].value, found["retention.ms"].is_default) == ("86400000", False)
    assert (found["min.insync.replicas"].value, found["min.insync.replicas"].is_default) == ("2", False)
    assert (found["cleanup.policy"].value, found["cleanup.policy"].is_default) == ("delete", True)


def test_groups_are_listed_described_and_deleted_by_the_tenants_names(tenant):
    create_topic(tenant, "orders")
    produce(tenant, "orders", values(5))
    client = admin(tenant)
    with consumer(tenant, "billing", client_id="till-3") as reader:
        reader.subscribe(["orders"])
        reader.commit(message=take(reader, 5)[-1], asynchronous=False)
        described = client.describe_consumer_groups(["billing"])["billing"].result(TIMEOUT_S)
        assert (described.group_id, described.state.name) == ("billing", "STABLE")
        assert [member.client_id for member in described.members] == ["till-3"]
        assert [p.topic for p in described.members[0].assignment.topic_partitions] == ["orders"]
        with pytest.raises(KafkaException) as refusal:
            client.delete_consumer_groups(["billing"])["billing"].result(TIMEOUT_S)
        assert refusal.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    listed = client.list_consumer_groups().result(TIMEOUT_S)
    assert [group.group_id for group in listed.valid] == ["billing"]
    assert not listed.errors
    wanted = ConsumerGroupTopicPartitions("billing")
    offsets = client.list_consumer_group_offsets([wanted])["billing"].result(TIMEOUT_S)
    assert [(p.topic, p.partition, p.offset) for p in offsets.topic_partitions] == [("orders", 0, 5)]
    client.delete_consumer_groups(["billing"])["billing"].result(TIMEOUT_S)
    assert client.list_consumer_groups().result(TIMEOUT_S).valid == []
