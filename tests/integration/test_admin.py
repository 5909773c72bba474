"""Administration by real clients: configurations and partitions change, everywhere, within what the instance may."""

from __future__ import annotations

import threading
import time
import warnings

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from dataplane.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from quota.contracts.identity import credential
from quota.contracts.instance import Limits
from tests.integration.clients import TIMEOUT_S, admin, consumer, create_topic, produce, read_all, take
from tests.support.processes import SECRET
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    import kafka.admin as kafka_python

pytestmark = pytest.mark.integration
SET, DELETE, APPEND = 0, 1, 2


def values(count):
    return [f"value-{number}".encode() for number in range(count)]


def describe(address, topic, name, *, kind=2):
    request = DescribeConfigsRequest((DescribeConfigsResource(kind, topic, (name,)),), True, True)
    with Wire(address) as wire:
        (result,) = wire.call(request, 4).results
    assert result.error_code == 0, result
    return result.configs[0]


def incremental(wire, kind, resource, *changes, validate_only=False):
    configs = tuple(IncrementalAlterConfigsRequestAlterableConfig(*change) for change in changes)
    asked = IncrementalAlterConfigsRequestAlterConfigsResource(kind, resource, configs)
    answer = wire.call(IncrementalAlterConfigsRequest((asked,), validate_only), 1)
    return answer.responses[0]


def test_a_changed_configuration_is_in_force_on_every_broker_within_a_second(tenant):
    create_topic(tenant, "orders", 3)
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry("max.message.bytes", "1000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ],
    )
    client = admin(tenant)
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    asked = time.monotonic()
    for address in tenant.addresses.values():
        wait_for(
            lambda a=address: describe(a, "orders", "max.message.bytes").value == "1000", promised(5), "the change"
        )
    assert time.monotonic() - asked < promised(1)
    assert describe(tenant.addresses[1], "orders", "cleanup.policy").value == "delete,compact"
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        produce(tenant, "orders", [b"x" * 5000])
    client = admin(tenant)
    undo = ConfigResource(
        ConfigResource.Type.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry("max.message.bytes", None, incremental_operation=AlterConfigOpType.DELETE),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SUBTRACT),
        ],
    )
    client.incremental_alter_configs([undo])[undo].result(TIMEOUT_S)
    for address in tenant.addresses.values():
        wait_for(
            lambda a=address: describe(a, "orders", "max.message.bytes").value != "1000", promised(5), "the undoing"
        )
    assert len(produce(tenant, "orders", [b"x" * 5000])) == 1


def test_old_alter_configs_replaces_what_was_set(tenant):
    create_topic(tenant, "orders", retention_ms="86400000", segment_ms="3600000")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resource = ConfigResource(ConfigResource.Type.TOPIC, "orders", set_config={"retention.ms": "3600000"})
        client = admin(tenant)
        client.alter_configs([resource])[resource].result(TIMEOUT_S)
    broker = tenant.addresses[2]
    wait_for(lambda: describe(broker, "orders", "retention.ms").value == "3600000", 30, "the change")
    assert describe(broker, "orders", "segment.ms").config_source == 5  # DEFAULT_CONFIG again


def test_what_may_not_be_is_refused_with_a_sentence_and_leaves_nothing(tenant):
    create_topic(tenant, "orders", factor=2)
    cases = [
        ((2, "orders", ("retention.ms", SET, "soon")), 40),
        ((2, "orders", ("no.such", SET, "1")), 40),
        ((2, "orders", ("retention.ms", APPEND, "1")), 40),
        ((2, "orders", ("retention.ms", SET, None)), 42),
        ((2, "orders", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)), 42),
        ((2, "orders", ("min.insync.replicas", SET, "3")), 40),
        ((2, "orders", ("max.message.bytes", SET, str(2**30))), 40),
        ((2, "ghost", ("retention.ms", SET, "1")), 3),
        ((2, "", ("retention.ms", SET, "1")), 17),
        ((4, "1", ("log.retention.ms", SET, "1")), 31),
        ((4, "", ("log.retention.ms", SET, "1")), 31),
        ((4, "2", ("log.retention.ms", SET, "1")), 42),
        ((8, "1", ("root", SET, "INFO")), 42),
        ((16, "m", ("interval.ms", SET, "1")), 42),
        ((99, "m", ("interval.ms", SET, "1")), 42),
    ]
    with Wire(tenant.addresses[1]) as wire:
        for asked, code in cases:
            answer = incremental(wire, *asked)
            assert (answer.error_code, answer.resource_type, answer.resource_name) == (code, *asked[:2]), asked
            assert answer.error_message
            assert tenant.key not in answer.error_message
        assert incremental(wire, 2, "orders", ("retention.ms", SET, "1"), validate_only=True).error_code == 0
        request = DescribeConfigsRequest((DescribeConfigsResource(2, "orders", None),), True)
        configs = wire.call(request, 4).results[0].configs
    assert [config.name for config in configs if config.config_source == 1] == []
    assert all(config.documentation is None for config in configs)


def test_changes_by_many_clients_at_once_are_all_kept(tenant, cluster):
    create_topic(tenant, "orders")
    names = ["retention.ms", "retention.bytes", "flush.messages", "delete.retention.ms", "min.compaction.lag.ms"]

    def change(number, name):
        with Wire(tenant.addresses[1 + number % 3]) as wire:
            for value in range(10, 21):
                assert incremental(wire, 2, "orders", (name, SET, str(value))).error_code == 0

    threads = [threading.Thread(target=change, args=pair) for pair in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert cluster.read(f"/config/topics/{tenant.key}.orders")["config"] == dict.fromkeys(names, "20")


def test_tenants_read_the_settings_of_brokers_and_see_no_addresses(tenant, cluster):
    resource = ConfigResource(ConfigResource.Type.BROKER, "2")
    client = admin(tenant)
    found = client.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert found["log.retention.ms"].value == "604800000"
    assert all(entry.is_read_only for entry in found.values())
    hidden = {"log.dirs", "zookeeper.connect", "listeners", "usage.emit.interval.ms", "tenant.max.message.bytes"}
    assert not hidden & found.keys()
    documented = describe(tenant.addresses[1], "1", "log.retention.ms", kind=4)
    assert documented.documentation
    assert (documented.config_type, documented.config_source) == (5, 5)


def test_a_brokers_settings_change_while_it_runs_and_topics_follow(tenant, cluster):
    create_topic(tenant, "orders", 3)
    create_topic(tenant, "own", retention_ms="1000000")

    def internal(broker, kind, name, *changes):
        with Wire(("127.0.0.1", cluster.brokers[broker].ports["internal"])) as wire:
            assert wire.log_in(SECRET) == 0
            return incremental(wire, kind, name, *changes)

    try:
        assert internal(1, 4, "", ("log.retention.ms", SET, "7200000")).error_code == 0
        assert internal(2, 4, "2", ("log.retention.ms", SET, "3600000")).error_code == 0
        assert internal(1, 4, "1", ("num.partitions", SET, "9")).error_code == 42
        for broker, value, source in ((1, "7200000", 3), (2, "3600000", 2), (3, "7200000", 3)):
            address = tenant.addresses[broker]
            wait_for(lambda a=address, v=value: describe(a, "orders", "retention.ms").value == v, 30, "the change")
            config = describe(address, "orders", "retention.ms")
            assert config.config_source == source
            assert config.is_default is False

        def synonyms():
            return [(s.name, s.value, s.source) for s in describe(tenant.addresses[2], "own", "retention.ms").synonyms]

        # Broker 2 may hear of the change to itself before the one to all brokers: one more wait.
        wait_for(lambda: len(synonyms()) == 4, 30, "the change to all brokers")
        assert synonyms() == [
            ("retention.ms", "1000000", 1),
            ("log.retention.ms", "3600000", 2),
            ("log.retention.ms", "7200000", 3),
            ("log.retention.ms", "604800000", 5),
        ]
    finally:
        internal(1, 4, "", ("log.retention.ms", DELETE, None))
        internal(2, 4, "2", ("log.retention.ms", DELETE, None))
    wait_for(lambda: describe(tenant.addresses[2], "orders", "retention.ms").config_source == 5, 30, "the default")


# --- partitions -------------------------------------------------------------------------------------------------------


def test_a_topic_grows_under_a_producer_and_a_group(tenant, cluster):
    create_topic(tenant, "orders", 1)
    produce(tenant, "orders", values(10))
    settings = {"topic.metadata.refresh.interval.ms": 500, "auto.offset.reset": "earliest"}
    with consumer(tenant, **settings) as reader:
        reader.subscribe(["orders"])
        take(reader, 10)
        client = admin(tenant)
        client.create_partitions([NewPartitions("orders", 4)])["orders"].result(TIMEOUT_S)
        sent = produce(tenant, "orders", values(200))
        assert {partition for partition, _, _ in sent} == {0, 1, 2, 3}
        assert len(take(reader, 200)) == 200
        wait_for(lambda: reader.poll(0.1) is None and len(reader.assignment()) == 4, 20, "the assignment")
    assert len(cluster.read(f"/brokers/topics/{tenant.key}.orders")["partitions"]) == 4
    wait_for(lambda: not cluster.behind(), 20, "the new partitions to be in sync")
    assert sum(len(found) for found in read_all(tenant, "orders").values()) == 210


def test_growth_is_refused_as_kafka_refuses_it(new_tenant, cluster):
    tenant = new_tenant(limits=Limits(None, None, None, partitions=6))
    create_topic(tenant, "orders", 1)
    client = admin(tenant)

    def refusal(**how):
        with pytest.raises(KafkaException) as refused:
            client.create_partitions([NewPartitions(**how)])[how["topic"]].result(TIMEOUT_S)
        return refused.value.args[0]

    assert refusal(topic="ghost", new_total_count=3).code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert refusal(topic="orders", new_total_count=1).code() == KafkaError.INVALID_PARTITIONS
    assert (
        refusal(topic="orders", new_total_count=2, replica_assignment=[[7, 8, 9]]).code()
        == KafkaError.INVALID_REPLICA_ASSIGNMENT
    )
    beyond = refusal(topic="orders", new_total_count=3)
    assert beyond.code() == KafkaError.POLICY_VIOLATION
    assert "6" in beyond.str()
    assert tenant.key not in beyond.str()
    twice = tuple(CreatePartitionsTopic("orders", count, None) for count in (2, 3))
    with Wire(tenant.addresses[cluster.controller()]) as wire:
        (answer,) = wire.call(CreatePartitionsRequest(twice, 5000), 3).results
    assert answer.error_code == 42
    client.create_partitions([NewPartitions("orders", 2, [[3, 1, 2]])])["orders"].result(TIMEOUT_S)
    assert cluster.read(f"/brokers/topics/{tenant.key}.orders")["partitions"]["1"] == [3, 1, 2]


def test_kafka_python_administers(tenant):
    create_topic(tenant, "orders")
    client = kafka_python.KafkaAdminClient(bootstrap_servers=tenant.bootstrap.split(","))
    try:
        resource = kafka_python.ConfigResource("TOPIC", "orders", configs={"retention.ms": "3600000"})
        client.alter_configs([resource])
        wait_for(lambda: describe(tenant.addresses[3], "orders", "retention.ms").value == "3600000", 30, "the change")
        client.create_partitions({"orders": 3})
        wait_for(lambda: len(client.describe_topics(["orders"])[0]["partitions"]) == 3, 30, "the partitions")
    finally:
        client.close()


# --- topics that come into being --------------------------------------------------------------------------------------


def metadata_of(address, topic, version, *, allow=True, secret=None):
    """The error code of a topic, and how many partitions it has."""
    with Wire(address) as wire:
        if secret is not None:
            assert wire.log_in(secret) == 0
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=allow)
        (found,) = wire.call(request, version).topics
    return found.error_code, len(found.partitions)


@pytest.mark.parametrize(("version", "allow"), [(1, True), (4, True), (12, True)])
def test_a_topic_comes_into_being_when_it_is_asked_for_where_the_instance_says_so(new_tenant, version, allow):
    tenant = new_tenant(auto_create_topics=True)
    address = tenant.addresses[2]
    assert metadata_of(address, "orders", 12, allow=False) == (3, 0)
    assert metadata_of(address, "__mine", version, allow=allow) == (17, 0)
    assert metadata_of(address, "orders", version, allow=allow) == (5, 0)  # LEADER_NOT_AVAILABLE
    wait_for(lambda: metadata_of(address, "orders", version, allow=allow) == (0, 1), 30, "the topic")


def test_a_producer_needs_no_topic_to_begin_with_where_the_instance_says_so(new_tenant):
    tenant = new_tenant(auto_create_topics=True)
    produce(tenant, "fresh", values(3), allow_auto_create_topics=True)
    assert sum(len(found) for found in read_all(tenant, "fresh").values()) == 3


def test_otherwise_nothing_comes_into_being(tenant, cluster):
    assert metadata_of(tenant.addresses[1], "orders", 1) == (3, 0)
    inside = ("127.0.0.1", cluster.brokers[1].ports["internal"])
    assert metadata_of(inside, f"{tenant.key}.orders", 1, secret=SECRET) == (3, 0)
    assert metadata_of(inside, "nobodys", 1, secret=SECRET) == (3, 0)
    time.sleep(1)
    assert cluster.read(f"/brokers/topics/{tenant.key}.orders") is None
    assert cluster.read("/brokers/topics/nobodys") is None


# --- the control plane ------------------------------------------------------------------------------------------------


def test_the_control_planes_door_grows_and_configures_a_tenants_topic(new_tenant, cluster):
    from controlplane.clusters.identification import Identification
    from controlplane.core.errors import Invalid, LimitReached, NotFound
    from controlplane.kafka.client import KafkaAdmin, retention_of

    def retentions(door, *names):
        return {name: retention_of(settings) for name, settings in door.settings_in_force(names).items()}

    tenant = new_tenant(limits=Limits(None, None, None, partitions=9))
    create_topic(tenant, "orders", 1)
    name = f"{tenant.key}.orders"
    door = KafkaAdmin(
        ",".join(f"127.0.0.1:{broker.ports['internal']}" for broker in cluster.brokers.values()),
        Identification(credential(SECRET, "controlplane")),
    )
    door.grow(name, 3)
    wait_for(lambda: len(door.layout(name).partitions) == 3, 30, "the partitions")
    door.config_set(name, {"retention.ms": "3600000"})
    wait_for(
        lambda: retentions(door, name, f"{tenant.key}.ghost") == {name: 3_600_000}, 30, "how long records are kept"
    )
    door.config_set(name, {"cleanup.policy": "compact"})
    wait_for(lambda: retentions(door, name) == {name: None}, 30, "what does not expire")
    wait_for(lambda: door.config(name) == {"retention.ms": "3600000", "cleanup.policy": "compact"}, 30, "the change")
    door.config_set(name, {"retention.ms": None})
    wait_for(lambda: door.config(name) == {"cleanup.policy": "compact"}, 30, "the change")
    with pytest.raises(LimitReached, match="holds 9"):
        door.grow(name, 4)
    with pytest.raises(Invalid, match="3 at most"):
        door.config_set(name, {"min.insync.replicas": "4"})
    with pytest.raises(NotFound):
        door.config_set(f"{tenant.key}.ghost", {"retention.ms": "1"})


def test_what_the_control_planes_door_only_looks_at_is_refused_like_the_act_and_changes_nothing(new_tenant, cluster):
    from controlplane.clusters.identification import Identification
    from controlplane.core.errors import Invalid, LimitReached, NotFound
    from controlplane.kafka.client import KafkaAdmin

    tenant = new_tenant(limits=Limits(None, None, None, partitions=9))
    create_topic(tenant, "orders", 1)
    name, other = f"{tenant.key}.orders", f"{tenant.key}.paid"
    door = KafkaAdmin(
        ",".join(f"127.0.0.1:{broker.ports['internal']}" for broker in cluster.brokers.values()),
        Identification(credential(SECRET, "controlplane")),
    )
    look = {"validate_only": True}
    door.create(other, partitions=2, replication_factor=3, config={"retention.ms": "1"}, **look)
    door.grow(name, 3, **look)
    door.config_set(name, {"retention.ms": "3600000"}, **look)
    for of_looks in ({}, look):
        with pytest.raises(LimitReached, match="holds 3 and this topic needs 9"):
            door.create(other, partitions=3, replication_factor=3, config={}, **of_looks)
        with pytest.raises(Invalid):
            door.create(other, partitions=1, replication_factor=4, config={}, **of_looks)
        with pytest.raises(Invalid):
            door.create(other, partitions=1, replication_factor=1, config={"retention.ms": "soon"}, **of_looks)
        with pytest.raises(LimitReached, match="needs 9 more"):
            door.grow(name, 4, **of_looks)
        with pytest.raises(Invalid, match="3 at most"):
            door.config_set(name, {"min.insync.replicas": "4"}, **of_looks)
        with pytest.raises(NotFound):
            door.config_set(f"{tenant.key}.ghost", {"retention.ms": "1"}, **of_looks)
    time.sleep(1)
    assert door.layout(other) is None
    assert len(door.layout(name).partitions) == 1
    assert door.config(name) == {}
