"""Clients against brokers of every age: versions are agreed on, formats are those that the broker takes, all messages come."""

from __future__ import annotations

import pytest

from dataplane.clients.connection import Connection, opened
from dataplane.clients.errors import ConnectionLostError, UnsupportedError
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME
from dataplane.clients.producer import Producer, ProducerConfig, ProducerData
from dataplane.clients.settings import ConnectionSettings
from dataplane.clients.simple_consumer import FetchRequest, SimpleConsumer
from dataplane.clients.versions import OURS, chosen
from dataplane.protocol.api import ApiKey
from tests.dataplane.clients.small_broker import NEWEST, SmallBroker

V0_10 = {ApiKey.PRODUCE: (0, 2), ApiKey.FETCH: (0, 3), ApiKey.LIST_OFFSETS: (0, 0), ApiKey.METADATA: (0, 2)}
V4 = {**NEWEST, ApiKey.PRODUCE: (3, 12), ApiKey.FETCH: (4, 17), ApiKey.LIST_OFFSETS: (1, 10), ApiKey.METADATA: (0, 13)}
AGES = {"0.8": None, "0.10": V0_10, "now": NEWEST, "4": V4}


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("age", AGES)
def test_what_is_sent_to_a_broker_of_any_age_is_read_from_it(age, codec):
    values = [f"value {number}".encode() for number in range(50)]
    number = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3}[codec]
    with SmallBroker({"t": 1}, AGES[age], codec=number) as broker:
        config = ProducerConfig(broker_list="{}:{}".format(*broker.address), compression_codec=codec)
        with Producer(config) as producer:
            sent = producer.send([ProducerData("t", value, key="k") for value in values])
        assert [one.offset for one in sent] == list(range(50))
        with SimpleConsumer(*broker.address) as consumer:
            found = list(consumer.fetch(FetchRequest("t", 0, 20)))
            assert [one.offset for one in found] == list(range(20, 50))
            assert [one.message.value for one in found] == values[20:]
            assert consumer.get_offsets_before("t", 0, LATEST_TIME, 1) == [50]
            assert consumer.get_offsets_before("t", 0, LATEST_TIME, 5) == [50, 0]
            assert consumer.get_offsets_before("t", 0, EARLIEST_TIME, 5) == [0]


def test_a_broker_that_ends_the_connection_at_the_question_is_asked_in_version_0():
    with SmallBroker({"t": 1}, None) as broker:
        connection = opened(broker.address, ConnectionSettings())
        assert {connection.version(key) for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA)} == {0}
        connection.close()
        with pytest.raises(ConnectionLostError):
            Connection(broker.address, ConnectionSettings())


def test_nobody_at_an_address_is_no_old_broker():
    with SmallBroker({}) as broker:
        address = broker.address
    with pytest.raises(ConnectionLostError):
        opened(address, ConnectionSettings())


@pytest.mark.parametrize(
    ("theirs", "at_most", "version"), [((0, 2), None, 2), ((3, 12), None, 9), ((0, 12), 0, 0), ((9, 9), None, 9)]
)
def test_the_highest_version_of_both_is_chosen(theirs, at_most, version):
    assert OURS[ApiKey.PRODUCE] == (0, 9)
    assert chosen(ApiKey.PRODUCE, {ApiKey.PRODUCE: theirs}, at_most=at_most) == version


@pytest.mark.parametrize(
    ("theirs", "at_most"), [({}, None), ({ApiKey.PRODUCE: (10, 12)}, None), ({ApiKey.PRODUCE: (3, 9)}, 2)]
)
def test_no_version_in_common_is_said(theirs, at_most):
    with pytest.raises(UnsupportedError):
        chosen(ApiKey.PRODUCE, theirs, at_most=at_most)


def test_headers_and_zstd_are_refused_where_the_broker_has_no_room_for_them():
    with SmallBroker({"t": 1}, V0_10) as broker:
        address = "{}:{}".format(*broker.address)
        for config, data in (
            (ProducerConfig(broker_list=address), ProducerData("t", b"v", headers=(("h", b""),))),
            (ProducerConfig(broker_list=address, compression_codec="zstd"), ProducerData("t", b"v")),
        ):
            with Producer(config) as producer, pytest.raises(Exception) as refused:
                producer.send(data)
            assert isinstance(refused.value.failures[0][1], UnsupportedError)
        assert broker.count(ApiKey.PRODUCE) == 0


def test_a_message_larger_than_what_was_asked_for_is_read_from_an_old_broker_too():
    with SmallBroker({"t": 1}, None) as broker:
        broker.cuts_at_size = True
        with Producer(ProducerConfig(broker_list="{}:{}".format(*broker.address))) as producer:
            producer.send(ProducerData("t", b"x" * 10_000))
        with SimpleConsumer(*broker.address) as consumer:
            (found,) = consumer.fetch(FetchRequest("t", 0, 0, fetch_size=100))
            assert found.message.value == b"x" * 10_000
            assert consumer.fetch(FetchRequest("t", 0, 1, fetch_size=100)).next_offset == 1
