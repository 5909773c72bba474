"""Settings by the documents' names: both ways make one value, and what does not exist is refused with what might be meant."""

from __future__ import annotations

import pytest

from dataplane.clients.errors import ConfigurationError
from dataplane.clients.producer import ProducerConfig
from dataplane.clients.settings import ConnectionSettings, addresses, named


def test_dotted_names_and_fields_make_the_same_value():
    properties = {
        "broker.list": "h:1",
        "producer.type": "async",
        "batch.size": "7",
        "queue.time": 20,
        "retry.backoff.ms": "3",
    }
    fields = ProducerConfig(broker_list="h:1", producer_type="async", batch_size=7, queue_time=20, retry_backoff_ms=3)
    assert ProducerConfig.from_properties(properties) == fields


def test_the_names_of_kafka_0_8_mean_the_same():
    properties = {"metadata.broker.list": "h:1", "queue.buffering.max.ms": "5", "batch.num.messages": "6"}
    assert ProducerConfig.from_properties(properties) == ProducerConfig(broker_list="h:1", queue_time=5, batch_size=6)


@pytest.mark.parametrize(("text", "acks"), [("all", -1), ("-1", -1), ("0", 0)])
def test_acks_of_all_in_sync_replicas(text, acks):
    made = ProducerConfig.from_properties({"broker.list": "h:1", "request.required.acks": text})
    assert made.request_required_acks == acks


def test_one_setting_by_two_names_is_refused():
    with pytest.raises(ConfigurationError, match="the same setting"):
        ProducerConfig.from_properties({"metadata.broker.list": "h:1", "broker.list": "h:1"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("broker.lists", "broker.list"),
        ("produser.type", "producer.type"),
        ("batch_size", "batch.size"),
        ("queue.tim", "queue.time"),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_the_nearest(name, meant):
    with pytest.raises(ConfigurationError, match=f"no setting {name}: is it {meant}?"):
        ProducerConfig.from_properties({"broker.list": "h:1", name: "1"})


def test_a_name_like_no_other_is_refused_without_a_guess():
    with pytest.raises(ConfigurationError, match=r"no setting wibble$"):
        ProducerConfig.from_properties({"wibble": "1"})


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"broker.list": "h:1", "zk.connect": "h:2"},
        {"broker.list": "h"},
        {"broker.list": "h:0"},
        {"broker.list": "h:70000"},
        {"broker.list": "h:1", "producer.type": "later"},
        {"broker.list": "h:1", "batch.size": "0"},
        {"broker.list": "h:1", "batch.size": "many"},
        {"broker.list": "h:1", "request.required.acks": "2"},
        {"broker.list": "h:1", "compression.codec": "rar"},
        {"broker.list": "h:1", "queue.enqueue.timeout.ms": "-2"},
        {"broker.list": "h:1", "security.protocol": "TLS"},
        {"broker.list": "h:1", "security.protocol": "SASL_SSL"},
    ],
)
def test_what_a_value_cannot_be_is_refused(properties):
    with pytest.raises(ConfigurationError):
        ProducerConfig.from_properties(properties)


def test_a_password_is_not_shown():
    made = ConnectionSettings(security_protocol="SASL_PLAINTEXT", sasl_username="u", sasl_password="secret")
    assert "secret" not in repr(made)


def test_addresses_of_a_list():
    assert addresses("a:1, b:2,") == [("a", 1), ("b", 2)]
    assert addresses("0:a:1,1:b:2") == [("a", 1), ("b", 2)]  # Kafka 0.7: with ids
    assert addresses("[::1]:9092") == [("::1", 9092)]


class Made:
    pass


def test_what_can_be_plugged_in_is_named_or_given():
    here = f"{__name__}:Made"
    assert type(named("x", here, {})).__qualname__ == "Made"
    assert isinstance(named("x", Made, {}), Made)
    given = Made()
    assert named("x", given, {}) is given
    for wrong in ("nothing.of.that:Kind", "Made", f"{__name__}:Nothing"):
        with pytest.raises(ConfigurationError):
            named("x", wrong, {})
