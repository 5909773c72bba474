"""The JSON below Kafka's paths is what Kafka 3.9 writes and reads in ZooKeeper mode."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.cluster import paths


def test_a_broker_is_written_as_kafka_writes_one() -> None:
    data = paths.broker_json(paths.BrokerAddress(3, "127.0.0.1", 20013, "r1"), 1_700_000_000_123)
    assert json.loads(data) == {
        "features": {},
        "listener_security_protocol_map": {"INTERNAL": "SASL_PLAINTEXT"},
        "endpoints": ["INTERNAL://127.0.0.1:20013"],
        "jmx_port": -1,
        "port": 20013,
        "host": "127.0.0.1",
        "version": 5,
        "timestamp": "1700000000123",
        "rack": "r1",
    }
    assert paths.parse_broker(3, data) == paths.BrokerAddress(3, "127.0.0.1", 20013, "r1")


def test_a_broker_without_an_internal_listener_is_refused() -> None:
    with pytest.raises(ValueError, match="INTERNAL"):
        paths.parse_broker(1, b'{"endpoints":["PLAINTEXT://h:1"],"version":5}')


def test_an_ipv6_address_survives() -> None:
    address = paths.BrokerAddress(1, "::1", 9092)
    assert paths.parse_broker(1, paths.broker_json(address, 0)) == address


def test_a_topic_is_written_as_kafka_writes_one() -> None:
    topic_id = UUID("3f9a1c52-7f6e-4a0c-9c5e-1d2b3c4d5e6f")
    data = paths.topic_json(paths.TopicAssignment(topic_id, {1: (2, 3), 0: (1, 2)}))
    assert json.loads(data) == {
        "version": 3,
        "topic_id": "P5ocUn9uSgycXh0rPE1ebw",
        "partitions": {"0": [1, 2], "1": [2, 3]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert paths.parse_topic(data) == paths.TopicAssignment(topic_id, {0: (1, 2), 1: (2, 3)})


def test_a_state_is_written_as_kafka_writes_one_and_its_epoch_is_the_nodes_version() -> None:
    state = paths.PartitionState(leader=2, leader_epoch=5, isr=(2, 1), controller_epoch=4, partition_epoch=9)
    data = paths.state_json(state)
    assert json.loads(data) == {"controller_epoch": 4, "leader": 2, "version": 1, "leader_epoch": 5, "isr": [2, 1]}
    assert paths.parse_state(data, 9) == state


def test_a_configuration_change_names_its_topic_and_other_entities_are_ignored() -> None:
    assert json.loads(paths.config_change_json("a.b")) == {"version": 2, "entity_path": "topics/a.b"}
    assert paths.parse_config_change(paths.config_change_json("a.b")) == paths.topic_entity("a.b") == "topics/a.b"
    changed = paths.entity_change_json(paths.broker_entity(None))
    assert paths.parse_config_change(changed) == "brokers/<default>"
    assert paths.parse_config_change(b'{"version":2,"entity_path":"users/x"}') is None


@given(st.uuids())
def test_topic_ids_are_22_characters_and_survive(topic_id: UUID) -> None:
    text = paths.topic_id_text(topic_id)
    assert len(text) == 22
    assert paths.parse_topic_id(text) == topic_id


def test_who_may_be_elected_beside_the_isr_is_in_the_state_and_of_what_life():
    state = paths.PartitionState(
        paths.NO_LEADER, 5, (2,), 4, 9, eligible=(1, 3), last_leader=2, broker_epochs={2: 70, 1: 65, 3: 66}
    )
    data = paths.state_json(state)
    assert paths.parse_state(data, 9) == state
    assert json.loads(data)["eligible_leader_replicas"] == [1, 3]


def test_a_registration_says_since_when_the_logs_are_whole():
    address = paths.BrokerAddress(3, "127.0.0.1", 20013)
    assert paths.parse_whole_since(paths.broker_json(address, 0, 40), 70) == 40
    assert paths.parse_whole_since(paths.broker_json(address, 0), 70) == 70
