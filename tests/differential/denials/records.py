"""Records and what is known of topics."""

from __future__ import annotations

from typing import Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestTopicRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from dataplane.protocol.messages.fetch import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.records.legacy import Message, write_message_set
from tests.differential.asking import START_MS, batch
from tests.differential.denials import NOWHERE, ORDERS, OTHER, World, case, cluster, topic

NAMES = (ORDERS, OTHER, NOWHERE)
BATCHES, IDS_IN_FETCH, IDS_IN_METADATA = 3, 13, 10
"""Versions: of Produce that takes them; that name topics by their ids."""


@case(ApiKey.PRODUCE, topic("WRITE"))
def produce(world: World) -> Any:
    return ProduceRequest(
        None, -1, 10_000, tuple(TopicProduceData(name, (PartitionProduceData(0, _data(world)),)) for name in NAMES)
    )


@case(ApiKey.PRODUCE, topic("WRITE"))
def produce_alone(world: World) -> Any:
    data = TopicProduceData(ORDERS, (PartitionProduceData(0, _data(world)),))
    return ProduceRequest(None, 1, 10_000, (data,))


def _data(world: World) -> bytes:
    if world.version >= BATCHES:
        return batch(2)
    magic = int(world.version == 2)
    return bytes(write_message_set([Message(0, magic, 0, START_MS if magic else -1, b"k", b"v")], 0))


def _fetch(world: World, names: tuple[str, ...]) -> FetchRequest:
    parts = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100_000),)
    by_id = world.version >= IDS_IN_FETCH
    topics = [
        FetchTopic(topic_id=world.topic_ids[name], partitions=parts) if by_id else FetchTopic(name, partitions=parts)
        for name in names
    ]
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=tuple(topics))


@case(ApiKey.FETCH, topic("READ"))
def fetch(world: World) -> Any:
    return _fetch(world, NAMES)


@case(ApiKey.FETCH, topic("READ"))
def fetch_alone(world: World) -> Any:
    return _fetch(world, (ORDERS,))


@case(ApiKey.LIST_OFFSETS, topic("DESCRIBE"))
def list_offsets(_: World) -> Any:
    parts = (ListOffsetsPartition(0, -1, -1),)
    return ListOffsetsRequest(-1, 0, tuple(ListOffsetsTopic(name, parts) for name in NAMES))


@case(ApiKey.OFFSET_FOR_LEADER_EPOCH, topic("DESCRIBE"))
@case(ApiKey.OFFSET_FOR_LEADER_EPOCH, cluster("CLUSTER_ACTION"))
def offset_for_leader_epoch(_: World) -> Any:
    parts = (OffsetForLeaderPartition(0, -1, 0),)
    return OffsetForLeaderEpochRequest(-1, tuple(OffsetForLeaderTopic(name, parts) for name in NAMES))


@case(ApiKey.DELETE_RECORDS, topic("DELETE"))
def delete_records(_: World) -> Any:
    parts = (DeleteRecordsPartition(0, 0),)
    return DeleteRecordsRequest(tuple(DeleteRecordsTopic(name, parts) for name in NAMES), 10_000)


@case(ApiKey.INIT_PRODUCER_ID, cluster("IDEMPOTENT_WRITE"))
@case(ApiKey.INIT_PRODUCER_ID, topic("WRITE"))
def init_producer_id(_: World) -> Any:
    return InitProducerIdRequest(None, 60_000)


@case(ApiKey.DESCRIBE_PRODUCERS, topic("READ"))
def describe_producers(_: World) -> Any:
    return DescribeProducersRequest(tuple(DescribeProducersRequestTopicRequest(name, (0,)) for name in NAMES))


@case(ApiKey.METADATA, topic("DESCRIBE"))
@case(ApiKey.METADATA, topic("READ"), cluster("CREATE"))
def metadata_by_name(world: World) -> Any:
    topics = tuple(MetadataRequestTopic(name=name) for name in NAMES)
    with_operations = world.version >= 8
    return MetadataRequest(topics, True, with_operations and world.version <= 10, with_operations)


@case(ApiKey.METADATA, topic("WRITE"))
def metadata_of_all(world: World) -> Any:
    return MetadataRequest(None if world.version else (), include_topic_authorized_operations=world.version >= 8)


@case(ApiKey.METADATA, topic("DESCRIBE"))
def metadata_by_id(world: World) -> Any:
    if world.version < 12:
        return MetadataRequest((MetadataRequestTopic(name=OTHER),))
    return MetadataRequest(tuple(MetadataRequestTopic(topic_id=world.topic_ids[name], name=None) for name in NAMES))


@case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, topic("DESCRIBE"))
def describe_topic_partitions(_: World) -> Any:
    return DescribeTopicPartitionsRequest(tuple(DescribeTopicPartitionsRequestTopicRequest(name) for name in NAMES))


@case(ApiKey.API_VERSIONS)
def api_versions(_: World) -> Any:
    return ApiVersionsRequest("denials", "1")


@case(ApiKey.DESCRIBE_CLUSTER, cluster("ALTER"))
def describe_cluster(_: World) -> Any:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)
