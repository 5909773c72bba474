"""A tenant's requests against a whole cluster on virtual time: what they may hold, and what must end with them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.controller.decisions.placement import place
from dataplane.protocol.api import APIS
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.groups import HeartbeatRequest
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from dataplane.protocol.schema import message_info
from dataplane.records.batch import Record, build_batch
from quota.contracts.instance import Limits
from tests.simulation.cluster import INSTANCE, INTERNAL_PORT, TENANT_PORT, SimulatedCluster

MIB = 2**20
FOREVER_MS = 2**31 - 1


class Raw:
    """A client that sends what it likes to broker 1, and counts what comes back."""

    def __init__(self, cluster, port=TENANT_PORT):
        self.cluster = cluster
        self.answers = []
        self.closed_for = None
        self.connection = None
        cluster.network.loop("10.0.1.9").connect("10.0.0.1", port, self._opened, self.closed)
        cluster.network.run_until(lambda: self.connection is not None, 5)

    def _opened(self, connection):
        self.connection = connection
        connection.max_frame_bytes = 2**31 - 1
        return self

    def frame(self, frame):
        self.answers.append(bytes(frame))

    def closed(self, reason):
        self.closed_for = reason

    def send(self, request, version):
        self.api, self.version = APIS[message_info(type(request)).api_key], version
        self.connection.send([encode_request(self.api, version, len(self.answers), "raw", request)])

    def ask(self, request, version):
        before = len(self.answers)
        self.send(request, version)
        self.cluster.network.run_until(lambda: len(self.answers) > before or self.closed_for is not None, 30)
        return None if self.closed_for is not None else decode_response(self.api, version, self.answers[-1])[1]


@pytest.fixture
def cluster():
    made = SimulatedCluster(seed=3)
    made.until(made.up)
    made.create_topic("orders", 3)
    return made


def led_by_one(cluster, topic="simulate.orders"):
    """A partition that broker 1 leads."""
    replicas = cluster.brokers[1].replicas
    return next(p for index in range(3) if not isinstance(p := replicas.registry.leader(topic, index), ErrorCode))


def fetch(partition, wait_ms, count=1):
    wanted = FetchPartition(partition=partition.index, partition_max_bytes=MIB)
    topic = FetchTopic(topic="orders", partitions=(wanted,) * count)
    return FetchRequest(replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, max_bytes=MIB, topics=(topic,))


def produce(partition, size, acks=1):
    batch = build_batch([Record(None, bytes(size))], now_ms=1_000)
    data = TopicProduceData("orders", (PartitionProduceData(partition.index, bytes(batch)),))
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=(data,))


def limit(cluster, **limits):
    spec = cluster.brokers[1].registry.get(INSTANCE).spec
    changed = replace(Limits(None, None, None, None), **limits)
    for broker in cluster.brokers.values():
        broker.registry.apply(replace(spec, generation=spec.generation + 1, limits=changed))


# --- sizes ------------------------------------------------------------------------------------------------------------


def test_a_topic_that_is_named_ten_thousand_times_is_described_once(cluster):
    answer = Raw(cluster).ask(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),) * 10_000), 9)
    assert [topic.name for topic in answer.topics] == ["orders"]


@pytest.mark.parametrize("version", [10, 11])
def test_a_topic_without_a_name_before_there_were_ids_is_refused_in_words(cluster, version):
    answer = Raw(cluster).ask(MetadataRequest(topics=(MetadataRequestTopic(name=None),)), version)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("", ErrorCode.INVALID_REQUEST)]


def test_more_elements_than_anybody_needs_end_the_connection(cluster):
    topics = tuple(MetadataRequestTopic(name=f"t{number}") for number in range(20_001))
    assert Raw(cluster).ask(MetadataRequest(topics=topics), 9) is None
    assert Raw(cluster).ask(MetadataRequest(topics=topics[:100]), 9) is not None


def test_a_name_is_no_longer_than_kafka_allows(cluster):
    assert Raw(cluster).ask(HeartbeatRequest(group_id="g" * 40_000, member_id="m"), 4) is None


def test_a_request_of_many_megabytes_is_a_produce_or_nothing(cluster):
    client = Raw(cluster)
    topics = tuple(MetadataRequestTopic(name="t" * 30_000 + str(number)) for number in range(100))
    assert client.ask(MetadataRequest(topics=topics), 9) is None
    [(account, size, limit)] = cluster.brokers[1].doors.loop.too_large  # which is said, and counted
    assert (account, limit) == ("simulate", 2 * MIB)
    assert size > 100 * 30_000


def test_a_produce_of_more_than_16_mib_ends_its_connection_and_is_counted(cluster):
    client = Raw(cluster)
    assert client.ask(produce(led_by_one(cluster), 16 * MIB), 9) is None
    [(account, size, limit)] = cluster.brokers[1].doors.loop.too_large
    assert (account, limit) == ("simulate", 16 * MIB)
    assert size > 16 * MIB


def test_a_large_batch_is_still_served(cluster):
    answer = Raw(cluster).ask(produce(led_by_one(cluster), 900_000), 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def test_requests_that_wait_are_bounded_by_their_bytes(cluster):
    client, partition = Raw(cluster), led_by_one(cluster)
    for _ in range(100):
        client.send(fetch(partition, 20_000, count=1_000), 4)  # 16 KiB each
    cluster.network.run_for(1)
    assert 0 < len(partition.queues.read_waiters) < 30
    cluster.network.run_for(200)
    assert len(client.answers) == 100


# --- ends -------------------------------------------------------------------------------------------------------------


def test_a_fetch_stops_waiting_when_its_connection_is_gone(cluster):
    client, partition = Raw(cluster), led_by_one(cluster)
    for _ in range(50):
        client.send(fetch(partition, FOREVER_MS), 4)
    cluster.network.run_for(1)
    assert len(partition.queues.read_waiters) == 50
    client.connection.close()
    cluster.network.run_for(1)
    assert len(partition.queues.read_waiters) == 0


def test_nobody_waits_for_weeks(cluster):
    client, partition = Raw(cluster), led_by_one(cluster)
    client.send(fetch(partition, FOREVER_MS), 4)
    cluster.network.run_for(400)
    assert len(client.answers) == 1


def test_a_silent_connection_ends_and_a_waiting_or_talking_one_does_not(cluster):
    silent, waiting, talking = Raw(cluster), Raw(cluster), Raw(cluster)
    partition = led_by_one(cluster)
    waiting.send(fetch(partition, 300_000), 4)
    for _ in range(14):
        talking.ask(MetadataRequest(topics=()), 9)
        cluster.network.run_for(60)
    assert silent.closed_for is not None
    assert waiting.closed_for is None
    assert talking.closed_for is None
    assert len(cluster.brokers[1].registry.get(INSTANCE).connections) == 2


def test_who_does_not_authenticate_is_shown_the_door(cluster):
    stranger = Raw(cluster, INTERNAL_PORT)
    cluster.network.run_for(5)
    assert stranger.closed_for is None
    cluster.network.run_for(10)
    assert stranger.closed_for is not None


# --- quota ------------------------------------------------------------------------------------------------------------


def test_who_connects_anew_for_every_request_has_the_same_limit(cluster):
    limit(cluster, produce_bytes_per_s=MIB)
    partition = led_by_one(cluster)
    cluster.network.run_for(10)  # without a master it is left with its initial share
    rate = cluster.brokers[1].registry.get(INSTANCE).produce_bucket.rate
    began = cluster.network.clock.monotonic()
    sent = 0
    while cluster.network.clock.monotonic() - began < 60:
        client = Raw(cluster)
        assert client.ask(produce(partition, 500_000), 9) is not None
        sent += 500_000
        client.connection.close()
    assert sent <= rate * 60 * 1.1 + 500_000
    assert sent >= rate * 60 * 0.8


@pytest.mark.parametrize("size", [10_000, 300_000])
def test_many_connections_at_once_have_the_limit_of_one(cluster, size):
    sizes, rate = sizes_under_load(cluster, connections=60, size=size)
    in_30_s = [later - now for now, later in zip(sizes, sizes[30:], strict=False)]
    assert max(in_30_s) <= rate * 30 * 1.1
    assert min(in_30_s) >= rate * 30 * 0.8


def sizes_under_load(cluster, connections, size, seconds=90):
    """Of broker 1's log at every second, while so many connections send five times what the limit lets in; and its rate."""
    limit(cluster, produce_bytes_per_s=MIB)
    partition = led_by_one(cluster)
    cluster.network.run_for(10)  # without a master it is left with its initial share
    rate = cluster.brokers[1].registry.get(INSTANCE).produce_bucket.rate
    clients = [Raw(cluster) for _ in range(connections)]
    sizes = [partition.log.size_bytes]
    for client in clients:
        for _ in range(5 * rate * seconds // (connections * size)):
            client.send(produce(partition, size), 9)
    for _ in range(seconds):
        cluster.network.run_for(1)
        sizes.append(partition.log.size_bytes)
    return sizes, rate


def test_what_groups_store_is_limited_too(cluster):
    cluster.run(cluster.client.commit("warm", "orders", 0, 0, [1, 2, 3]))
    replicas = cluster.brokers[1].replicas

    def stored():
        return sum(p.log.size_bytes for p in replicas.registry.partitions() if p.topic == "__consumer_offsets")

    before, began = stored(), cluster.network.clock.monotonic()
    rows = tuple(OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in range(3))
    for number in range(30):  # six megabytes for the partitions of this broker
        client = Raw(cluster)
        for step in range(200):
            group = f"{number}-{step}-".ljust(900, "g")
            client.send(OffsetCommitRequest(group, topics=(OffsetCommitRequestTopic("orders", rows),)), 5)
    cluster.network.run_for(1)
    seconds = cluster.network.clock.monotonic() - began
    limit_bytes = cluster.brokers[1].config.settings.group_bytes_per_s_per_instance
    assert before < stored() <= before + (seconds + 1) * limit_bytes


def test_parked_requests_keep_their_order(cluster):
    limit(cluster, produce_bytes_per_s=MIB)
    partition = led_by_one(cluster)
    first, other = Raw(cluster), Raw(cluster)
    order = []
    replicas = cluster.brokers[1].replicas
    append = replicas.appending.append

    def noted(partition, batch, acks, **more):
        order.append(len(batch))
        return append(partition, batch, acks, **more)

    replicas.appending.append = noted
    for number in range(8):
        first.send(produce(partition, 200_000 + number), 9)
        other.send(produce(partition, 100_000), 9)
    cluster.network.run_for(60)
    mine = [size for size in order if size > 150_000]
    assert len(mine) == 8
    assert mine == sorted(mine)


# --- topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [("segment.bytes", "14"), ("retention.ms", "9" * 5_000), ("min.insync.replicas", "\u0663")]
)
def test_settings_that_would_hurt_others_are_refused(cluster, name, value):
    topic = CreatableTopic("small", 1, 1, (), (CreatableTopicConfig(name, value),))
    controller = cluster.brokers[1].metadata.controller_id

    async def ask():
        return await cluster.client.call(controller, CreateTopicsRequest(topics=(topic,), timeout_ms=5_000), 5)

    assert cluster.run(ask()).topics[0].error_code == ErrorCode.INVALID_CONFIG


def test_a_request_for_a_million_partitions_is_refused_before_they_are_placed(cluster, monkeypatch):
    limit(cluster, partitions=100)
    controller = cluster.brokers[1].metadata.controller_id
    placed = []

    def counted(racks, partitions, *more):
        placed.append(partitions)
        return place(racks, partitions, *more)

    monkeypatch.setattr("dataplane.controller.decisions.creation.place", counted)
    topics = tuple(CreatableTopic(f"t{number}", 10_000, 3) for number in range(1_000))

    async def ask():
        return await cluster.client.call(controller, CreateTopicsRequest(topics=topics, timeout_ms=5_000), 5)

    answer = cluster.run(ask())
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert 10_000 not in placed  # topics of the cluster's own are placed meanwhile
