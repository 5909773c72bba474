"""The node of a member, byte by byte as Kafka 0.8.2 writes it, and read in every form that there is."""

from __future__ import annotations

import pytest

from dataplane.clients.connector import Blacklist, ConsumerConfig, Whitelist
from dataplane.clients.connector.subscriptions import Subscription, parse_registration
from dataplane.clients.errors import ConfigurationError

# As Kafka 0.8.2.2's own consumers wrote them.
WRITTEN = [
    (
        b'{"version":1,"subscription":{"t1":1},"pattern":"white_list","timestamp":"1795617427915"}',
        Subscription({}, Whitelist("t1"), 1),
    ),
    (
        b'{"version":1,"subscription":{"t1":2},"pattern":"static","timestamp":"1795617427915"}',
        Subscription({"t1": 2}),
    ),
    (
        b'{"version":1,"subscription":{"t\\\\d|u":1},"pattern":"black_list","timestamp":"1795617427915"}',
        Subscription({}, Blacklist("t\\d,u"), 1),
    ),
]


@pytest.mark.parametrize(("data", "subscription"), WRITTEN)
def test_it_is_written_as_kafka_does(data, subscription):
    assert subscription.to_json(1795617427915) == data


@pytest.mark.parametrize(("data", "subscription"), WRITTEN)
def test_what_kafka_writes_is_read(data, subscription):
    topics = ["t1", "t2", "u", "v", "__consumer_offsets"]
    assert parse_registration(data).of(topics) == subscription.of(topics)


def test_other_forms_are_read():
    spaced = b'{ "pattern":"static", "subscription":{ "a": 1, "b": 2 }, "timestamp":"1", "version":1 }'
    assert parse_registration(spaced) == Subscription({"a": 1, "b": 2})  # Kafka 0.8.0
    assert parse_registration(b'{"a":1,"b":2}') == Subscription({"a": 1, "b": 2})  # the documents, Kafka 0.7


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'"t"',
        b'{"subscription":[]}',
        b'{"subscription":{"t":"x"}}',
        b'{"subscription":{"t":1},"pattern":"other"}',
        b'{"subscription":{"t":1,"u":1},"pattern":"white_list"}',
        b'{"subscription":{"(":1},"pattern":"white_list"}',
    ],
)
def test_what_is_none_is_refused(data):
    with pytest.raises(ValueError):
        parse_registration(data)


def test_filters_fit_whole_names():
    assert Whitelist("orders,bills.*").regex == "orders|bills.*"
    assert [Whitelist("orders,bills.*").allows(t) for t in ("orders", "orders2", "bills2")] == [True, False, True]
    assert [Blacklist('"orders"').allows(t) for t in ("orders", "orders2")] == [False, True]
    with pytest.raises(ConfigurationError, match=r"'\(' is no regular expression"):
        Whitelist("(")


def test_internal_topics_are_read_by_name_or_wish_only():
    everything = Subscription({}, Whitelist(".*"), 3)
    assert everything.of(["t", "__consumer_offsets"]) == {"t": 3}
    assert set(everything.of(["t", "__consumer_offsets"], internal=True)) == {"t", "__consumer_offsets"}


def test_settings_have_the_names_of_0_7_and_0_8():
    old = {"groupid": "g", "zk.connect": "h:1", "autooffset.reset": "smallest", "autocommit.interval.ms": "5"}
    new = {"group.id": "g", "zookeeper.connect": "h:1", "auto.offset.reset": "smallest", "auto.commit.interval.ms": "5"}
    assert ConsumerConfig.from_properties(old) == ConsumerConfig.from_properties(new)
    with pytest.raises(ConfigurationError, match=r"^group.id must be set$"):
        ConsumerConfig.from_properties({"zk.connect": "h:1"})
    for wrong in ({"groupid": "a/b"}, {"zk.connect": ""}, {"autooffset.reset": "earliest"}, {"fetch.size": "0"}):
        with pytest.raises(ConfigurationError):
            ConsumerConfig.from_properties({**old, **wrong})
