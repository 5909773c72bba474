"""What was bought holds: storage, bandwidth, partitions; and every refusal says what is the matter."""

from __future__ import annotations

import os
import re
import time

import pytest
from confluent_kafka import KafkaError, KafkaException

from quota.contracts.instance import MIB, Limits
from tests.integration import asks
from tests.integration.asks import batch, error_codes
from tests.integration.clients import Sender, admin, create_topic, delete_topic, produce, read_all
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = pytest.mark.integration

POLICY_VIOLATION = 44
KIB = 1024


def refusal_of(action) -> KafkaError:
    with pytest.raises(KafkaException) as refusal:
        action()
    return refusal.value.args[0]


# --- storage --------------------------------------------------------------------------------------------------------------


def test_full_storage_blocks_producing_not_consuming_and_a_deleted_topic_makes_room(new_tenant, cluster):
    tenant = new_tenant(limits=Limits(None, None, 3 * MIB, None))
    create_topic(tenant, "filler")
    create_topic(tenant, "orders")
    stored = produce(tenant, "filler", [os.urandom(64 * KIB) for _ in range(17)])  # three replicas of 1.06 MiB

    def leader():  # asked anew: a broker that the machine held up for long has lost its leaderships, and is told nothing
        return Wire(tenant.addresses[cluster.leader(tenant, "orders")])

    def refusals():
        with leader() as wire:
            return error_codes(wire.call(asks.produce("orders"), 9))

    wait_for(lambda: refusals() == {POLICY_VIOLATION}, 30, "the fence")
    with leader() as wire:
        for version in (8, 9):
            row = wire.call(asks.produce("orders"), version).responses[0].partition_responses[0]
            assert row.error_code == POLICY_VIOLATION
            assert re.search(r"\b3(\.\d\d?)? MiB used of 3 MiB", row.error_message), row.error_message
        assert error_codes(wire.call(asks.produce("orders"), 3)) == {POLICY_VIOLATION}  # no room for a sentence
    flows = []
    with leader() as wire:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            assert error_codes(wire.call(asks.produce("orders", batch(os.urandom(64 * KIB))), 9)) == {POLICY_VIOLATION}
            document = cluster.master_says(f"/v1/instances/{tenant.spec.id}/allocation")
            flows.append(sum(broker["flow"] for broker in document["produce"]["brokers"]))
    assert min(flows[len(flows) // 2 :]) == 0  # megabytes a second come, and none of them is taken
    sender = Sender(tenant)
    sender.send("orders", b"refused")
    sender.flush()
    assert [error.code() for error, _ in sender.refused] == [KafkaError.POLICY_VIOLATION]
    assert len(read_all(tenant, "filler")[0]) == len(stored)
    delete_topic(tenant, "filler")
    wait_for(lambda: refusals() == set(), 30, "room to be made")


# --- bandwidth ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow(new_tenant, cluster):
    """256 KiB/s each way, one partition with 1 MiB in it, and the address of its leader."""
    tenant = new_tenant(limits=Limits(256 * KIB, 256 * KIB, None, None))
    create_topic(tenant, "orders")
    return tenant, tenant.addresses[cluster.leader(tenant, "orders")]


def test_a_producer_over_its_limit_is_told_how_long_to_wait_and_made_to(slow):
    _, address = slow
    with Wire(address, timeout_s=30) as wire:
        told_ms, began = 0, time.monotonic()
        for _ in range(12):
            answer = wire.call(asks.produce("orders", batch(os.urandom(64 * KIB))), 9)
            assert error_codes(answer) == set()
            told_ms = max(told_ms, answer.throttle_time_ms)
        seconds = time.monotonic() - began
    assert told_ms > 0
    assert seconds > 1.0  # 768 KiB at 256 KiB/s, a burst of one second, and the last answer does not wait


def test_a_consumer_over_its_limit_is_told_so_and_gets_data_all_the_same(slow, cluster):
    tenant, address = slow
    cluster.specs.change(tenant, limits=Limits(None, 256 * KIB, None, None))
    values = [os.urandom(64 * KIB) for _ in range(16)]
    produce(tenant, "orders", values, batch_size=100_000)
    with Wire(address, timeout_s=30) as wire:
        told_ms, offset = 0, 0
        while offset < len(values):
            answer = wire.call(asks.fetch("orders", offset, max_wait_ms=500), 12)
            told_ms = max(told_ms, answer.throttle_time_ms)
            records = answer.responses[0].partitions[0].records
            assert records, "an answer without data stalls a consumer"
            offset += len(records) // (64 * KIB)
    assert told_ms > 0


def test_an_unlimited_instance_is_never_throttled(tenant, cluster):
    create_topic(tenant, "orders")
    with Wire(tenant.addresses[cluster.leader(tenant, "orders")]) as wire:
        for _ in range(20):
            assert wire.call(asks.produce("orders", batch(os.urandom(256 * KIB))), 9).throttle_time_ms == 0


# --- requests -------------------------------------------------------------------------------------------------------------


def test_requests_are_held_to_the_rate_of_the_whole_instance_though_all_go_to_one_broker(new_tenant):
    tenant = new_tenant(limits=Limits(None, None, None, None, requests_per_s=60))
    with Wire(tenant.addresses[1]) as wire:

        def waits_told(seconds):
            """With each answer, in ms: one request after the other."""
            ends, told = time.monotonic() + seconds, []
            while time.monotonic() < ends:
                told.append(wire.call(asks.list_offsets("orders"), 5).throttle_time_ms)
            return told

        wait_for(lambda: len(waits_told(2)) > 80, 30, "the broker's share, 20 at first, to follow use")
        wait_for(lambda: any(waits_told(1)), 20, "to be told to wait, asking for more than 60 a second")
        assert len(waits_told(3)) <= 60 * 3 + 10  # nothing is saved up now, whatever stood still before


# --- partitions and names -------------------------------------------------------------------------------------------------


def test_more_partitions_than_were_bought_are_refused_with_limit_and_use(new_tenant):
    tenant = new_tenant(limits=Limits(None, None, None, 9))  # replicas included
    create_topic(tenant, "orders", 2)
    error = refusal_of(lambda: create_topic(tenant, "invoices", 2))
    assert error.code() == KafkaError.POLICY_VIOLATION
    assert " 9 partitions" in error.str()
    assert "holds 6" in error.str()
    assert tenant.key not in error.str()
    create_topic(tenant, "invoices", 1)
    assert refusal_of(lambda: create_topic(tenant, "one-more", 1, factor=1)).code() == KafkaError.POLICY_VIOLATION
    delete_topic(tenant, "orders")
    wait_for(lambda: "orders" not in admin(tenant).list_topics(timeout=10).topics, 30, "the topic to be gone")
    create_topic(tenant, "one-more", 1, factor=1)


def test_more_topics_than_the_instance_may_hold_are_refused_with_limit_and_use(new_tenant, cluster):
    tenant = new_tenant(limits=Limits(None, None, None, None, topics=1))
    create_topic(tenant, "orders")
    error = refusal_of(lambda: create_topic(tenant, "invoices"))
    assert error.code() == KafkaError.POLICY_VIOLATION
    assert "may hold 1 topics; it holds 1" in error.str()
    cluster.specs.change(tenant, limits=Limits(None, None, None, None, topics=2))
    create_topic(tenant, "invoices")


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "__consumer_offsets", "x" * 231])
def test_impossible_names_are_refused_with_a_sentence(tenant, cluster, name):
    with Wire(tenant.addresses[cluster.controller()]) as wire:
        answer = wire.call(asks.create(name), 7)
    assert error_codes(answer) == {17}  # INVALID_TOPIC_EXCEPTION
    (sentence,) = asks.texts(answer)
    assert "topic name" in sentence
    assert tenant.key not in sentence


@pytest.mark.parametrize("name", ["x" * 230, "A.b_c-9", "orders.2026", "a" * 100 + ".DLQ"])
def test_possible_names_work_to_the_end(tenant, name):
    create_topic(tenant, name)
    produce(tenant, name, [b"value"])
    assert read_all(tenant, name) == {0: [b"value"]}


def test_a_topic_is_made_once(tenant):
    create_topic(tenant, "orders")
    error = refusal_of(lambda: create_topic(tenant, "orders"))
    assert error.code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert tenant.key not in error.str()


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"factor": 4}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"min_insync_replicas": "0"}, KafkaError.INVALID_CONFIG),
        ({"no_such_setting": "1"}, KafkaError.INVALID_CONFIG),
    ],
)
def test_impossible_topics_are_refused(tenant, members, code):
    error = refusal_of(lambda: create_topic(tenant, "orders", **members))
    assert error.code() == code or (code == KafkaError.INVALID_PARTITIONS and error.code() == KafkaError._INVALID_ARG)
    assert list(admin(tenant).list_topics(timeout=10).topics) == []
