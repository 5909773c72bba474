"""From the controller to brokers, and from brokers to the controller.

Declarations only; see `dataplane.protocol.schema`.
"""

from __future__ import annotations

from uuid import UUID

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
    uuid,
)


@struct
class LeaderAndIsrPartitionState:
    topic_name: str = string("0-1", entity="topic")
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: tuple[int, ...] = array("int32")
    partition_epoch: int = int32()
    replicas: tuple[int, ...] = array("int32")
    adding_replicas: tuple[int, ...] = array("int32", "3+")
    removing_replicas: tuple[int, ...] = array("int32", "3+")
    is_new: bool = boolean("1+")
    leader_recovery_state: int = int8("6+")


@struct
class LeaderAndIsrTopicState:
    topic_name: str = string("2+", entity="topic")
    topic_id: UUID = uuid("5+")
    partition_states: tuple[LeaderAndIsrPartitionState, ...] = array(LeaderAndIsrPartitionState, "2+")


@struct
class LeaderAndIsrLiveLeader:
    broker_id: int = int32()
    host_name: str = string()
    port: int = int32()


@message(api_key=4, versions="0-7", flexible="4+")
class LeaderAndIsrRequest:
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("7+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("2+", default=-1)
    type: int = int8("5+")
    ungrouped_partition_states: tuple[LeaderAndIsrPartitionState, ...] = array(LeaderAndIsrPartitionState, "0-1")
    topic_states: tuple[LeaderAndIsrTopicState, ...] = array(LeaderAndIsrTopicState, "2+")
    live_leaders: tuple[LeaderAndIsrLiveLeader, ...] = array(LeaderAndIsrLiveLeader)


@struct
class LeaderAndIsrPartitionError:
    topic_name: str = string("0-4", entity="topic")
    partition_index: int = int32()
    error_code: int = int16()


@struct
class LeaderAndIsrTopicError:
    topic_id: UUID = uuid("5+")
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = array(LeaderAndIsrPartitionError, "5+")


@message(api_key=4, versions="0-7", flexible="4+")
class LeaderAndIsrResponse:
    error_code: int = int16()
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = array(LeaderAndIsrPartitionError, "0-4")
    topics: tuple[LeaderAndIsrTopicError, ...] = array(LeaderAndIsrTopicError, "5+")


@struct
class StopReplicaPartitionV0:
    topic_name: str = string("0", entity="topic")
    partition_index: int = int32("0")


@struct
class StopReplicaTopicV1:
    name: str = string("1-2", entity="topic")
    partition_indexes: tuple[int, ...] = array("int32", "1-2")


@struct
class StopReplicaPartitionState:
    partition_index: int = int32("3+")
    leader_epoch: int = int32("3+", default=-1)
    delete_partition: bool = boolean("3+")


@struct
class StopReplicaTopicState:
    topic_name: str = string("3+", entity="topic")
    partition_states: tuple[StopReplicaPartitionState, ...] = array(StopReplicaPartitionState, "3+")


@message(api_key=5, versions="0-4", flexible="2+")
class StopReplicaRequest:
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("4+")
    controller_epoch: int = int32()
    broker_epoch: int = int64("1+", default=-1)
    delete_partitions: bool = boolean("0-2")
    ungrouped_partitions: tuple[StopReplicaPartitionV0, ...] = array(StopReplicaPartitionV0, "0")
    topics: tuple[StopReplicaTopicV1, ...] = array(StopReplicaTopicV1, "1-2")
    topic_states: tuple[StopReplicaTopicState, ...] = array(StopReplicaTopicState, "3+")


@struct
class StopReplicaPartitionError:
    topic_name: str = string(entity="topic")
    partition_index: int = int32()
    error_code: int = int16()


@message(api_key=5, versions="0-4", flexible="2+")
class StopReplicaResponse:
    error_code: int = int16()
    partition_errors: tuple[StopReplicaPartitionError, ...] = array(StopReplicaPartitionError)


@struct
class UpdateMetadataPartitionState:
    topic_name: str = string("0-4", entity="topic")
    partition_index: int = int32()
    controller_epoch: int = int32()
    leader: int = int32()
    leader_epoch: int = int32()
    isr: tuple[int, ...] = array("int32")
    zk_version: int = int32()
    replicas: tuple[int, ...] = array("int32")
    offline_replicas: tuple[int, ...] = array("int32", "4+")


@struct
class UpdateMetadataTopicState:
    topic_name: str = string("5+", entity="topic")
    topic_id: UUID = uuid("7+")
    partition_states: tuple[UpdateMetadataPartitionState, ...] = array(UpdateMetadataPartitionState, "5+")


@struct
class UpdateMetadataEndpoint:
    port: int = int32("1+")
    host: str = string("1+")
    listener: str = string("3+")
    security_protocol: int = int16("1+")


@struct
class UpdateMetadataBroker:
    id: int = int32()
    v0_host: str = string("0")
    v0_port: int = int32("0")
    endpoints: tuple[UpdateMetadataEndpoint, ...] = array(UpdateMetadataEndpoint, "1+")
    rack: str | None = string("2+", nullable="0+")


@message(api_key=6, versions="0-8", flexible="6+")
class UpdateMetadataRequest:
    controller_id: int = int32()
    is_k_raft_controller: bool = boolean("8+")
    type: int = int8("8+", tagged="8+", tag=0)
    controller_epoch: int = int32()
    broker_epoch: int = int64("5+", default=-1)
    ungrouped_partition_states: tuple[UpdateMetadataPartitionState, ...] = array(UpdateMetadataPartitionState, "0-4")
    topic_states: tuple[UpdateMetadataTopicState, ...] = array(UpdateMetadataTopicState, "5+")
    live_brokers: tuple[UpdateMetadataBroker, ...] = array(UpdateMetadataBroker)


@message(api_key=6, versions="0-8", flexible="6+")
class UpdateMetadataResponse:
    error_code: int = int16()


@message(api_key=7, versions="0-3", flexible="3+")
class ControlledShutdownRequest:
    broker_id: int = int32()
    broker_epoch: int = int64("2+", default=-1)


@struct
class RemainingPartition:
    topic_name: str = string(entity="topic")
    partition_index: int = int32()


@message(api_key=7, versions="0-3", flexible="3+")
class ControlledShutdownResponse:
    error_code: int = int16()
    remaining_partitions: tuple[RemainingPartition, ...] = array(RemainingPartition)


@struct
class BrokerState:
    broker_id: int = int32("3+")
    broker_epoch: int = int64("3+", default=-1)


@struct
class AlterPartitionRequestPartitionData:
    partition_index: int = int32()
    leader_epoch: int = int32()
    new_isr: tuple[int, ...] = array("int32", "0-2")
    new_isr_with_epochs: tuple[BrokerState, ...] = array(BrokerState, "3+")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32()


@struct
class AlterPartitionRequestTopicData:
    topic_name: str = string("0-1", entity="topic")
    topic_id: UUID = uuid("2+")
    partitions: tuple[AlterPartitionRequestPartitionData, ...] = array(AlterPartitionRequestPartitionData)


@message(api_key=56, versions="0-3", flexible="0+")
class AlterPartitionRequest:
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    topics: tuple[AlterPartitionRequestTopicData, ...] = array(AlterPartitionRequestTopicData)


@struct
class AlterPartitionResponsePartitionData:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    isr: tuple[int, ...] = array("int32")
    leader_recovery_state: int = int8("1+")
    partition_epoch: int = int32()


@struct
class AlterPartitionResponseTopicData:
    topic_name: str = string("0-1", entity="topic")
    topic_id: UUID = uuid("2+")
    partitions: tuple[AlterPartitionResponsePartitionData, ...] = array(AlterPartitionResponsePartitionData)


@message(api_key=56, versions="0-3", flexible="0+")
class AlterPartitionResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    topics: tuple[AlterPartitionResponseTopicData, ...] = array(AlterPartitionResponseTopicData)
