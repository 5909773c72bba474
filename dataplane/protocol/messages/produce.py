"""Produce and producer ids. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.primitives import Buffer, Splice
from dataplane.protocol.schema import (
    array,
    int16,
    int32,
    int64,
    message,
    records,
    string,
    struct,
    structure,
)


@struct
class PartitionProduceData:
    index: int = int32()
    records: Buffer | Splice | None = records(nullable="0+")


@struct
class TopicProduceData:
    name: str = string(entity="topic")
    partition_data: tuple[PartitionProduceData, ...] = array(PartitionProduceData)


@message(api_key=0, versions="0-12", flexible="9+")
class ProduceRequest:
    transactional_id: str | None = string("3+", nullable="3+", default=None, entity="transactional_id")
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: tuple[TopicProduceData, ...] = array(TopicProduceData)


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


@struct
class ProduceResponseLeaderIdAndEpoch:
    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


@struct
class PartitionProduceResponse:
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = array(BatchIndexAndErrorMessage, "8+")
    error_message: str | None = string("8+", nullable="8+", default=None)
    current_leader: ProduceResponseLeaderIdAndEpoch = structure(
        ProduceResponseLeaderIdAndEpoch, "10+", tagged="10+", tag=0
    )


@struct
class TopicProduceResponse:
    name: str = string(entity="topic")
    partition_responses: tuple[PartitionProduceResponse, ...] = array(PartitionProduceResponse)


@struct
class ProduceResponseNodeEndpoint:
    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


@message(api_key=0, versions="0-12", flexible="9+")
class ProduceResponse:
    responses: tuple[TopicProduceResponse, ...] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+")
    node_endpoints: tuple[ProduceResponseNodeEndpoint, ...] = array(
        ProduceResponseNodeEndpoint, "10+", tagged="10+", tag=0
    )


@message(api_key=22, versions="0-5", flexible="2+")
class InitProducerIdRequest:
    transactional_id: str | None = string(nullable="0+", entity="transactional_id")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


@message(api_key=22, versions="0-5", flexible="2+")
class InitProducerIdResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()


@struct
class DescribeProducersRequestTopicRequest:
    name: str = string(entity="topic")
    partition_indexes: tuple[int, ...] = array("int32")


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    topics: tuple[DescribeProducersRequestTopicRequest, ...] = array(DescribeProducersRequestTopicRequest)


@struct
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@struct
class PartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: tuple[ProducerState, ...] = array(ProducerState)


@struct
class TopicResponse:
    name: str = string(entity="topic")
    partitions: tuple[PartitionResponse, ...] = array(PartitionResponse)


@message(api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    throttle_time_ms: int = int32()
    topics: tuple[TopicResponse, ...] = array(TopicResponse)
