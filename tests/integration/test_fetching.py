"""Fetching as clients do it: from the replica in their rack, in sessions of many partitions, across leaders."""

from __future__ import annotations

import json
import time
import warnings
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.clients import QUIET, Sender, create_topic, produce, take
from tests.support.cluster import ProcessCluster
from tests.support.waiting import wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Place

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

RACKS = {1: "rack-1", 2: "rack-2", 3: "rack-3"}
SETTINGS = {
    "replica_selector_class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "offsets_topic_num_partitions": 4,
}


@pytest.fixture(scope="module")
def racked_cluster(tmp_path_factory) -> Iterator[ProcessCluster]:
    with ProcessCluster(tmp_path_factory.mktemp("racks"), SETTINGS, RACKS) as cluster:
        cluster.make_coordinators()
        yield cluster


def values(count, prefix="value"):
    return [f"{prefix}-{number}".encode() for number in range(count)]


def test_librdkafka_reads_from_the_replica_in_its_rack_and_from_the_leader_when_that_is_dead(racked_cluster):
    tenant = racked_cluster.tenant()
    create_topic(tenant, "near")
    wait_for(lambda: not racked_cluster.behind(), 30, "replicas in sync")
    leader = racked_cluster.leader(tenant, "near")
    near = next(broker for broker in RACKS if broker != leader)
    produce(tenant, "near", values(50))
    read_from: list[int] = []

    def stats(text):
        partition = json.loads(text)["topics"].get("near", {}).get("partitions", {}).get("0")
        if partition is not None:
            read_from.append(partition["broker"])

    settings = {"client.rack": RACKS[near], "statistics.interval.ms": 100, "stats_cb": stats}
    settings |= {"bootstrap.servers": tenant.bootstrap, "group.id": "near-readers", **QUIET}
    with closing(Consumer(settings)) as reader:
        reader.assign([TopicPartition("near", 0, 0)])
        assert [message.value() for message in take(reader, 50)] == values(50)
        reader.poll(0.5)
        assert read_from[-1] == near
        sender = Sender(tenant, linger_ms=0)
        for number in range(10):  # each is committed, told to the follower, and read from it, before the next
            sender.send("near", b"more-%d" % number)
            assert take(reader, 1)[0].value() == b"more-%d" % number
        sender.flush()
        racked_cluster.brokers[near].kill()
        wait_for(lambda: near not in racked_cluster.registered(), 20, "the registration to go")
        produce(tenant, "near", values(20, "later"))
        assert [message.value() for message in take(reader, 20)] == values(20, "later")
    racked_cluster.heal()


def test_kafka_python_follows_many_partitions_in_a_session_through_a_dying_leader(cluster, tenant):
    create_topic(tenant, "many", 40)
    options = {"bootstrap_servers": tenant.bootstrap.split(","), "fetch_max_wait_ms": 200, "client_id": "sessions"}
    with KafkaConsumer(auto_offset_reset="earliest", group_id=None, **options) as reader:
        reader.assign([Place("many", partition) for partition in range(40)])
        seen: list[bytes] = []

        def read(count):
            until = time.monotonic() + 60
            while len(seen) < count:
                assert time.monotonic() < until, f"{len(seen)} of {count} messages"
                for records in reader.poll(timeout_ms=200).values():
                    seen.extend(record.value for record in records)

        sender = Sender(tenant)
        for number in range(30):
            sender.send("many", b"%d" % number, partition=number * 7 % 40)
        sender.flush()
        read(30)
        cluster.brokers[cluster.leader(tenant, "many", 7)].kill()
        for number in range(30, 60):
            sender.send("many", b"%d" % number, partition=number * 7 % 40)
        sender.flush(60)
        assert not sender.refused
        read(60)
        assert sorted(map(int, seen)) == list(range(60))
