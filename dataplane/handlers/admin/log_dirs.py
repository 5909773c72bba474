"""DescribeLogDirs and AlterReplicaLogDirs: where the replicas of this broker are on its disks.

A tenant sees how large its own partitions are, all of them in one directory of no meaning: which disks there are, and
how full, is the service's affair. As in Kafka who may describe the cluster may ask, of every topic whose whitelist holds it.

Describing is done in steps: there may be ten thousand replicas. Each is as it was when it was looked at; what came or
went meanwhile may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from dataplane.records.steps import Pace, grouped, taken_out
from dataplane.replication.replica.partition import Partition
from dataplane.storage.log import Log
from dataplane.storage.moving import home_of
from dataplane.tenancy.access import Operation, is_kept_from

if TYPE_CHECKING:
    from dataplane.records.steps import Steps

_NAME_US, _REPLICA_US, _LOG_US, _TOPIC_US, _MOVE_US = 2, 4, 8, 2, 8
TENANTS_DIRECTORY = "/kafka-logs"
_Topics = dict[str, list[DescribeLogDirsPartition]]


# --- describing -------------------------------------------------------------------------------------------------------


def handle_describe_log_dirs(ctx: RequestContext, request: DescribeLogDirsRequest) -> Steps[DescribeLogDirsResponse]:
    """The named partitions that are here, or (null) all; what is not here is not mentioned."""
    refusal = ctx.cluster_refusal(Operation.DESCRIBE)
    if refusal:
        return DescribeLogDirsResponse(error_code=refusal)
    pace = Pace()
    found: Iterable[Partition] = ctx.broker.replicas.registry.partitions()
    if request.topics is not None:
        found = yield from _named(ctx, request.topics, pace)
    by_directory: dict[str, _Topics] = {}
    for replica in found:
        if pace.over(_REPLICA_US):
            yield None
        if ctx.owns(replica.topic) and not is_kept_from(ctx.session, replica.topic):
            for path, log in _places(ctx, replica):
                if pace.over(_LOG_US):
                    yield None
                topics = by_directory.setdefault(path, {})
                topics.setdefault(replica.topic, []).append(_partition(replica, log))
    if not ctx.session.is_internal:
        return DescribeLogDirsResponse(results=((yield from _directory(TENANTS_DIRECTORY, by_directory, pace)),))
    results: list[DescribeLogDirsResult] = []
    for path, error in ctx.broker.logs.directories():
        if error is None:
            directory = yield from _directory(path, by_directory, pace)
            results.append(_with_space(ctx, directory))
        else:
            results.append(DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path))
    return DescribeLogDirsResponse(results=tuple(results))


def _named(ctx: RequestContext, topics: Iterable[DescribableLogDirTopic], pace: Pace) -> Steps[list[Partition]]:
    """Those that are here, each once."""
    found: dict[tuple[str, int], Partition] = {}
    for topic in topics:
        for index in topic.partitions:
            if pace.over(_NAME_US):
                yield None
            replica = ctx.broker.replicas.registry.get(topic.topic, index)
            if replica is not None:
                found[topic.topic, index] = replica
    return list(found.values())


def _places(ctx: RequestContext, replica: Partition) -> list[tuple[str, Log]]:
    """The logs of a replica, its own and the copy that is to take its place, with what their directory is called."""
    if not ctx.session.is_internal:
        return [(TENANTS_DIRECTORY, replica.log)]
    logs = (replica.log, ctx.broker.replicas.moves.future(replica))
    return [(home_of(log.directory), log) for log in logs if log is not None]


def _with_space(ctx: RequestContext, result: DescribeLogDirsResult) -> DescribeLogDirsResult:
    try:
        total, usable = ctx.broker.doors.files.space(result.log_dir)
    except OSError:
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, result.log_dir)
    return replace(result, total_bytes=total, usable_bytes=usable)


def _directory(path: str, by_directory: dict[str, _Topics], pace: Pace) -> Steps[DescribeLogDirsResult]:
    topics = yield from grouped(taken_out(by_directory.get(path, {})), DescribeLogDirsTopic, _TOPIC_US, pace)
    return DescribeLogDirsResult(log_dir=path, topics=topics)


def _partition(replica: Partition, log: Log) -> DescribeLogDirsPartition:
    """The lag is Kafka's: what is committed and not in this log yet; of a copy, what it has yet to get."""
    is_future = log is not replica.log
    lag = (replica.log.end_offset if is_future else replica.state.high_watermark) - log.end_offset
    return DescribeLogDirsPartition(replica.index, log.size_bytes, max(0, lag), is_future)


# --- moving -----------------------------------------------------------------------------------------------------------


def handle_alter_replica_log_dirs(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    """Each replica by itself: it goes on serving, and is there when DescribeLogDirs says so."""
    pace = Pace()
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            rows = results.setdefault(topic.name, [])
            for index in topic.partitions:
                if pace.over(_MOVE_US):
                    yield None
                code = _move(ctx, directory.path, topic.name, index)
                rows.append(AlterReplicaLogDirPartitionResult(index, code))
    told = yield from grouped(taken_out(results), AlterReplicaLogDirTopicResult, _TOPIC_US, pace)
    return AlterReplicaLogDirsResponse(results=told)


def _move(ctx: RequestContext, path: str, topic: str, index: int) -> ErrorCode:
    directories = dict(ctx.broker.logs.directories())
    if path not in directories:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directories[path] is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    replica = ctx.broker.replicas.registry.get(topic, index)
    if replica is None:
        known = ctx.broker.metadata.partition(topic, index) is not None
        return ErrorCode.REPLICA_NOT_AVAILABLE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if replica.state.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ctx.broker.replicas.moves.begin(replica, path)
