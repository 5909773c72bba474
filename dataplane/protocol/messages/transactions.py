"""Transactions. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@struct
class AddPartitionsToTxnTopic:
    name: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = string("4+", entity="transactional_id")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "4+")


@message(api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3", entity="transactional_id")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "0-3")


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: int = int32()
    partition_error_code: int = int16()


@struct
class AddPartitionsToTxnTopicResult:
    name: str = string(entity="topic")
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = array(AddPartitionsToTxnPartitionResult)


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = string("4+", entity="transactional_id")
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = array(AddPartitionsToTxnTopicResult, "4+")


@message(api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16("4+")
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = array(
        AddPartitionsToTxnTopicResult, "0-3"
    )


@message(api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string(entity="group")


@message(api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()


@message(api_key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(api_key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1)
    producer_epoch: int = int16("5+", default=-1)


@struct
class WritableTxnMarkerTopic:
    name: str = string(entity="topic")
    partition_indexes: tuple[int, ...] = array("int32")


@struct
class WritableTxnMarker:
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: tuple[WritableTxnMarkerTopic, ...] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+", default=0)


@message(api_key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest:
    markers: tuple[WritableTxnMarker, ...] = array(WritableTxnMarker)


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult:
    name: str = string(entity="topic")
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = array(WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult:
    producer_id: int = int64()
    topics: tuple[WritableTxnMarkerTopicResult, ...] = array(WritableTxnMarkerTopicResult)


@message(api_key=27, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse:
    markers: tuple[WritableTxnMarkerResult, ...] = array(WritableTxnMarkerResult)


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@struct
class TxnOffsetCommitRequestTopic:
    name: str = string(entity="topic")
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = array(TxnOffsetCommitRequestPartition)


@message(api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    transactional_id: str = string(entity="transactional_id")
    group_id: str = string(entity="group")
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = array(TxnOffsetCommitRequestTopic)


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic:
    name: str = string(entity="topic")
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = array(TxnOffsetCommitResponsePartition)


@message(api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    throttle_time_ms: int = int32()
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = array(TxnOffsetCommitResponseTopic)


@message(api_key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    transactional_ids: tuple[str, ...] = array("string", entity="transactional_id")


@struct
class DescribeTransactionsResponseTopicData:
    topic: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@struct
class DescribeTransactionsResponseTransactionState:
    error_code: int = int16()
    transactional_id: str = string(entity="transactional_id")
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: tuple[DescribeTransactionsResponseTopicData, ...] = array(DescribeTransactionsResponseTopicData)


@message(api_key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    throttle_time_ms: int = int32()
    transaction_states: tuple[DescribeTransactionsResponseTransactionState, ...] = array(
        DescribeTransactionsResponseTransactionState
    )


@message(api_key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    state_filters: tuple[str, ...] = array("string")
    producer_id_filters: tuple[int, ...] = array("int64")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


@struct
class ListTransactionsResponseTransactionState:
    transactional_id: str = string(entity="transactional_id")
    producer_id: int = int64()
    transaction_state: str = string()


@message(api_key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: tuple[str, ...] = array("string")
    transaction_states: tuple[ListTransactionsResponseTransactionState, ...] = array(
        ListTransactionsResponseTransactionState
    )


@message(api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@message(api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
