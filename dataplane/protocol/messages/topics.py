"""Creating, deleting and growing topics. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from uuid import UUID

from dataplane.protocol.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    message,
    string,
    struct,
    uuid,
)


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: tuple[int, ...] = array("int32")


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic:
    name: str = string(entity="topic")
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: tuple[CreatableReplicaAssignment, ...] = array(CreatableReplicaAssignment)
    configs: tuple[CreatableTopicConfig, ...] = array(CreatableTopicConfig)


@message(api_key=19, versions="0-7", flexible="5+")
class CreateTopicsRequest:
    topics: tuple[CreatableTopic, ...] = array(CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean("1+")


@struct
class CreatableTopicConfigs:
    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1)
    is_sensitive: bool = boolean("5+")


@struct
class CreatableTopicResult:
    name: str = string(entity="topic")
    topic_id: UUID = uuid("7+")
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="0+")
    topic_config_error_code: int = int16("5+", tagged="5+", tag=0)
    num_partitions: int = int32("5+", default=-1)
    replication_factor: int = int16("5+", default=-1)
    configs: tuple[CreatableTopicConfigs, ...] | None = array(CreatableTopicConfigs, "5+", nullable="5+")


@message(api_key=19, versions="0-7", flexible="5+")
class CreateTopicsResponse:
    throttle_time_ms: int = int32("2+")
    topics: tuple[CreatableTopicResult, ...] = array(CreatableTopicResult)


@struct
class DeleteTopicState:
    name: str | None = string("6+", nullable="6+", default=None, entity="topic")
    topic_id: UUID = uuid("6+")


@message(api_key=20, versions="0-6", flexible="4+")
class DeleteTopicsRequest:
    topics: tuple[DeleteTopicState, ...] = array(DeleteTopicState, "6+")
    topic_names: tuple[str, ...] = array("string", "0-5", entity="topic")
    timeout_ms: int = int32()


@struct
class DeletableTopicResult:
    name: str | None = string(nullable="6+", entity="topic")
    topic_id: UUID = uuid("6+")
    error_code: int = int16()
    error_message: str | None = string("5+", nullable="5+", default=None)


@message(api_key=20, versions="0-6", flexible="4+")
class DeleteTopicsResponse:
    throttle_time_ms: int = int32("1+")
    responses: tuple[DeletableTopicResult, ...] = array(DeletableTopicResult)


@struct
class CreatePartitionsAssignment:
    broker_ids: tuple[int, ...] = array("int32")


@struct
class CreatePartitionsTopic:
    name: str = string(entity="topic")
    count: int = int32()
    assignments: tuple[CreatePartitionsAssignment, ...] | None = array(CreatePartitionsAssignment, nullable="0+")


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    topics: tuple[CreatePartitionsTopic, ...] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@struct
class CreatePartitionsTopicResult:
    name: str = string(entity="topic")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    throttle_time_ms: int = int32()
    results: tuple[CreatePartitionsTopicResult, ...] = array(CreatePartitionsTopicResult)
