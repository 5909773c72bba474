"""Who of the cluster's own may do what, asked of real brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import ListOffsetsRequest
from quota.contracts.identity import credential
from quota.contracts.usage import USAGE_TOPIC
from tests.integration import asks
from tests.integration.asks import error_codes
from tests.integration.clients import create_topic
from tests.support.processes import HOST, SECRET
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

FROM_BROKERS = {
    "LeaderAndIsr": (lambda n: LeaderAndIsrRequest(controller_id=n, controller_epoch=1), 7),
    "StopReplica": (lambda n: StopReplicaRequest(controller_id=n, controller_epoch=1), 4),
    "UpdateMetadata": (lambda n: UpdateMetadataRequest(controller_id=n, controller_epoch=1), 8),
    "AlterPartition": (lambda n: AlterPartitionRequest(broker_id=n), 3),
    "ControlledShutdown": (lambda n: ControlledShutdownRequest(broker_id=n), 3),
    "a replica's fetch": (lambda n: asks.fetch("orders", replica_id=n), 12),
    "a replica's ListOffsets": (lambda n: ListOffsetsRequest(replica_id=n), 7),
}
EACH = pytest.mark.parametrize("what", FROM_BROKERS)


@pytest.fixture
def inside(cluster):
    return HOST, cluster.brokers[1].ports["internal"]


@pytest.fixture
def usage(cluster):
    wait_for(lambda: cluster.read(f"/brokers/topics/{USAGE_TOPIC}") is not None, 30, "the usage topic")


def signed_in(inside, name, password):
    return {
        "bootstrap.servers": f"{inside[0]}:{inside[1]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


@EACH
@pytest.mark.parametrize("name", ["broker-2", "controlplane", "metering", "operator", "master-1"])
def test_nobody_speaks_in_a_brokers_name(what, name, inside):
    request, version = FROM_BROKERS[what]
    with Wire(inside) as wire:
        assert wire.log_in(SECRET, name) == 0
        wire.send(request(1), version)
        assert wire.is_closed()


@EACH
def test_a_broker_itself_is_heard(what, inside):
    request, version = FROM_BROKERS[what]
    with Wire(inside) as wire:
        assert wire.log_in(SECRET, "broker-9") == 0
        wire.call(request(9), version)


@pytest.mark.parametrize("what", ["LeaderAndIsr", "StopReplica", "UpdateMetadata"])
def test_an_epoch_is_one_brokers_and_no_other_is_the_controller_in_it(what, inside, cluster):
    request, version = FROM_BROKERS[what]
    controller, epoch = cluster.controller(), cluster.read("/controller_epoch")
    stranger = 9
    with Wire(inside) as wire:
        assert wire.log_in(SECRET, f"broker-{stranger}") == 0
        answer = wire.call(replace(request(stranger), controller_epoch=epoch), version)
        assert answer.error_code in (11, 77)  # STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH
    assert cluster.controller_according_to(cluster.brokers[1]) == controller


def test_what_one_has_is_not_anothers(inside):
    for name, said in [("broker-1", "broker-2"), ("broker-1", "metering"), ("operator", "controlplane")]:
        with Wire(inside) as wire:
            assert wire.say(name, credential(SECRET, said)) == 58
            assert wire.is_closed()


@pytest.mark.parametrize("name", ["cluster", "broker-1", "controlplane", "operator", ""])
def test_the_secret_itself_lets_nobody_in(name, inside):
    with Wire(inside) as wire:
        assert wire.say(name, SECRET) == 58
        assert wire.is_closed()


def test_what_a_tenant_knows_lets_nobody_in(inside, tenant):
    for name in (tenant.id, tenant.key, "admin", "User:ANONYMOUS"):
        for password in ("", tenant.id, tenant.key):
            with Wire(inside) as wire:
                assert wire.say(name, password) == 58


def test_metering_sees_the_usage_records_and_no_other_topic(inside, usage, tenant):
    create_topic(tenant, "orders")
    name = f"{tenant.key}.orders"
    with Wire(inside) as wire:
        assert wire.log_in(SECRET, "metering") == 0
        assert [topic.name for topic in wire.call(MetadataRequest(topics=None), 12).topics] == [USAGE_TOPIC]
        asked = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=False)
        (found,) = wire.call(asked, 12).topics
        assert (found.error_code, found.partitions) == (29, ())  # TOPIC_AUTHORIZATION_FAILED
        assert error_codes(wire.call(asks.fetch(name), 12)) == {29}
        assert not error_codes(wire.call(asks.fetch(USAGE_TOPIC), 12)) & {29}


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.DESCRIBE_CONFIGS, ApiKey.CREATE_TOPICS, ApiKey.LIST_GROUPS])
def test_metering_can_ask_for_nothing_else(key, inside):
    from dataplane.handlers.table import HANDLERS
    from dataplane.protocol.api import APIS

    with Wire(inside) as wire:
        assert wire.log_in(SECRET, "metering") == 0
        wire.send(APIS[key].request(), HANDLERS[key].high)
        assert wire.is_closed()


def test_kafkas_clients_hear_that_an_operator_writes_no_tenants_records(inside, tenant):
    create_topic(tenant, "orders")
    failed = []
    producer = Producer(signed_in(inside, "operator", credential(SECRET, "operator")))
    producer.produce(f"{tenant.key}.orders", b"forged", on_delivery=lambda error, _message: failed.append(error))
    producer.flush(15)
    assert [error.name() for error in failed] == ["TOPIC_AUTHORIZATION_FAILED"]


def test_kafkas_clients_are_let_in_as_who_they_are(inside):
    for name, is_known in [("operator", True), ("stranger", False)]:
        client = AdminClient(signed_in(inside, name, credential(SECRET, name)))
        if is_known:
            assert len(client.list_topics(timeout=10).brokers) == 3
        else:
            with pytest.raises(KafkaException):
                client.list_topics(timeout=2)
