"""DescribeLogDirs and AlterReplicaLogDirs: where the replicas of this broker are on its disks.

A tenant sees how large its own partitions are, all of them in one directory of no meaning: which disks there are, and
how full, is the service's affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from dataplane.replication.partition import Partition
from dataplane.storage.log import Log
from dataplane.storage.moving import home_of

TENANTS_DIRECTORY = "/kafka-logs"
Place = tuple[Partition, Log]
"""A replica, and one of the logs that it has: its own, or the copy that is to take its place."""


# --- describing -------------------------------------------------------------------------------------------------------


def handle_describe_log_dirs(ctx: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """The named partitions that are here, or (null) all; what is not here is not mentioned."""
    replicas = list(_asked(ctx, request))
    if not ctx.session.is_internal:
        places = [(replica, replica.log) for replica in replicas]
        return DescribeLogDirsResponse(results=(_directory(TENANTS_DIRECTORY, places),))
    by_directory: dict[str, list[Place]] = {}
    for replica in replicas:
        future = ctx.broker.replicas.moves.future(replica)
        for log in (replica.log, future):
            if log is not None:
                by_directory.setdefault(home_of(log.directory), []).append((replica, log))
    return DescribeLogDirsResponse(
        results=tuple(
            _with_space(ctx, _directory(path, by_directory.get(path, [])))
            if error is None
            else DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path)
            for path, error in ctx.broker.logs.directories()
        )
    )


def _with_space(ctx: RequestContext, result: DescribeLogDirsResult) -> DescribeLogDirsResult:
    try:
        total, usable = ctx.broker.doors.files.space(result.log_dir)
    except OSError:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, result.log_dir)
    return replace(result, total_bytes=total, usable_bytes=usable)


def _asked(ctx: RequestContext, request: DescribeLogDirsRequest) -> Iterator[Partition]:
    if request.topics is None:
        found: Iterable[Partition] = ctx.broker.replicas.partitions()
    else:
        named = {(topic.topic, index): None for topic in request.topics for index in topic.partitions}
        found = (replica for key in named if (replica := ctx.broker.replicas.get(*key)) is not None)
    for replica in found:
        if ctx.owns(replica.topic) and not ctx.topic_denied(replica.topic):
            yield replica


def _directory(path: str, places: list[Place]) -> DescribeLogDirsResult:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for replica, log in places:
        by_topic.setdefault(replica.topic, []).append(_partition(replica, log))
    topics = tuple(DescribeLogDirsTopic(topic, tuple(found)) for topic, found in by_topic.items())
    return DescribeLogDirsResult(log_dir=path, topics=topics)


def _partition(replica: Partition, log: Log) -> DescribeLogDirsPartition:
    """The lag is Kafka's: what is committed and not in this log yet; of a copy, what it has yet to get."""
    is_future = log is not replica.log
    lag = (replica.log.end_offset if is_future else replica.high_watermark) - log.end_offset
    return DescribeLogDirsPartition(replica.index, log.size_bytes, max(0, lag), is_future)


# --- moving -----------------------------------------------------------------------------------------------------------


def handle_alter_replica_log_dirs(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Each replica by itself: it goes on serving, and is there when DescribeLogDirs says so."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = _move(ctx, directory.path, topic.name, index)
                results.setdefault(topic.name, []).append(AlterReplicaLogDirPartitionResult(index, code))
    return AlterReplicaLogDirsResponse(
        results=tuple(AlterReplicaLogDirTopicResult(topic, tuple(found)) for topic, found in results.items())
    )


def _move(ctx: RequestContext, path: str, topic: str, index: int) -> ErrorCode:
    directories = dict(ctx.broker.logs.directories())
    if path not in directories:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directories[path] is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    replica = ctx.broker.replicas.get(topic, index)
    if replica is None:
        known = ctx.broker.metadata.partition(topic, index) is not None
        return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if replica.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ctx.broker.replicas.moves.begin(replica, path)
