"""Log directories. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@struct
class DescribableLogDirTopic:
    topic: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@message(api_key=35, versions="0-4", flexible="2+")
class DescribeLogDirsRequest:
    topics: tuple[DescribableLogDirTopic, ...] | None = array(DescribableLogDirTopic, nullable="0+")


@struct
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@struct
class DescribeLogDirsTopic:
    name: str = string(entity="topic")
    partitions: tuple[DescribeLogDirsPartition, ...] = array(DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: tuple[DescribeLogDirsTopic, ...] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1)
    usable_bytes: int = int64("4+", default=-1)


@message(api_key=35, versions="0-4", flexible="2+")
class DescribeLogDirsResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16("3+")
    results: tuple[DescribeLogDirsResult, ...] = array(DescribeLogDirsResult)


@struct
class AlterReplicaLogDirTopic:
    name: str = string(entity="topic")
    partitions: tuple[int, ...] = array("int32")


@struct
class AlterReplicaLogDir:
    path: str = string()
    topics: tuple[AlterReplicaLogDirTopic, ...] = array(AlterReplicaLogDirTopic)


@message(api_key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest:
    dirs: tuple[AlterReplicaLogDir, ...] = array(AlterReplicaLogDir)


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = string(entity="topic")
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = array(AlterReplicaLogDirPartitionResult)


@message(api_key=34, versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = int32()
    results: tuple[AlterReplicaLogDirTopicResult, ...] = array(AlterReplicaLogDirTopicResult)
