"""What clients change stands in the cluster's `__changes`, of every instance, where the broker is told to write it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.auditing.auditing import CHANGES_AT_ONCE
from dataplane.config import Settings, settings_from
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from dataplane.records.batch import read_records, split_batches
from dataplane.storage.log import reading
from dataplane.tenancy.session import Session
from quota.contracts.audit import CHANGES_TOPIC, AuditRecord
from tests.dataplane.auditing.test_an_audited_instance import PHYSICAL
from tests.dataplane.requests.logins import Cluster
from tests.simulation.cluster import INSTANCE


def told(cluster, topic=CHANGES_TOPIC, wait_s=5.0):
    """All that have been written to a topic."""
    cluster.network.run_for(wait_s)
    partition = cluster.broker.replicas.registry.get(topic, 0)
    if partition is None:
        return []
    found = reading.read(partition.log, 0, 2**20, partition.log.end_offset, at_least_one=True)
    batches = [] if found is None else split_batches(found.read())
    return [AuditRecord.from_value(one.value) for _, batch in batches for one in read_records(batch)]


def made(name):
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=(topic,), timeout_ms=5_000)


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.broker.auditing.tells_changes = True
    return cluster


@pytest.fixture
def end(cluster):
    end = cluster.connect()
    assert end.plain().error_code == 0
    return end


def test_a_change_is_told_with_whose_instance_it_is(cluster, end):
    assert end.call(made("orders"), 7).topics[0].error_code == 0
    (record,) = told(cluster)
    assert (record.instance, record.api, record.resource, record.outcome) == (
        INSTANCE,
        "CREATE_TOPICS",
        "TOPIC:orders",
        "NONE",
    )
    assert (record.principal, record.client_id, record.source) == ("User:alice", "client", "10.0.1.9")


def test_connections_looks_and_what_was_refused_are_no_changes(cluster, end):
    end.call(MetadataRequest(topics=None), 9)
    end.call(DeleteTopicsRequest(topic_names=("nothing",), timeout_ms=5_000), 5)
    assert told(cluster) == []
    assert cluster.broker.auditing._trails == {}, "nothing is kept, and no timer runs"
    assert cluster.broker.auditing._timer is None


def test_what_is_only_validated_is_no_change(cluster, end):
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    answer = end.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000, validate_only=True), 7)
    assert answer.topics[0].error_code == 0
    assert told(cluster) == []


def test_an_instance_that_is_audited_has_both(cluster, end):
    cluster.spec = replace(cluster.spec, generation=cluster.spec.generation + 1, audit=True)
    cluster.apply(cluster.spec)
    assert end.call(made("orders"), 7).topics[0].error_code == 0
    (change,) = told(cluster)
    own = [one for one in told(cluster, PHYSICAL) if one.api == "CREATE_TOPICS"]
    assert [one.instance for one in (change, *own)] == [INSTANCE, None]


def test_without_it_an_instance_that_is_not_audited_tells_nothing():
    cluster = Cluster()
    end = cluster.connect()
    assert end.plain().error_code == 0
    assert end.call(made("orders"), 7).topics[0].error_code == 0
    assert told(cluster) == []
    assert not cluster.broker.metadata.has_topic(CHANGES_TOPIC)


def test_no_tenant_sees_the_topic(cluster, end):
    assert end.call(made("orders"), 7).topics[0].error_code == 0
    assert told(cluster)
    assert [topic.name for topic in end.call(MetadataRequest(topics=None), 9).topics] == ["orders"]


def test_what_one_instance_says_is_bounded_and_the_rest_is_counted(cluster):
    instance = cluster.broker.registry.get(INSTANCE)
    session = Session(instance, "default", instance.names, "10.0.1.9", authenticated=True)
    row = SimpleNamespace(name=instance.names.topic_in("orders"), error_code=0)
    answer = SimpleNamespace(topics=(row,))

    def change():
        cluster.broker.auditing.answered(session, ApiKey.CREATE_TOPICS, "client", answer)

    for _ in range(3 * CHANGES_AT_ONCE):
        change()
    assert CHANGES_AT_ONCE <= len(told(cluster)) < 2 * CHANGES_AT_ONCE
    cluster.network.run_for(60)
    change()
    every = told(cluster)
    assert len(every) + sum(one.left_out for one in every) == 3 * CHANGES_AT_ONCE + 1


def test_it_is_a_setting_of_the_broker():
    assert Settings().changes_topic_enable is False
    assert settings_from({"changes_topic_enable": True}).changes_topic_enable is True
