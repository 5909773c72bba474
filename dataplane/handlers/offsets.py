"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.

Version 0 of the first two keeps offsets in ZooKeeper (`dataplane.groups.legacy`). In the others a partition that was
never committed has the offset -1 and no error. A topic that a whitelist refuses says so when it is named, and is left
out of a list of everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dataplane.groups import legacy
from dataplane.groups.commits import Commit, Offset
from dataplane.handlers.groups import has_no_name, is_too_long
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import OffsetCommitValue
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.handlers.context import RequestContext

TopicPartition = tuple[str, int]
Wanted = list[tuple[str, tuple[int, ...]]]
"""Topics with their partitions, as asked."""
Found = list[tuple[str, list[tuple[int, OffsetCommitValue, ErrorCode]]]]
"""Topics with the offset of each partition, as answered."""
T = TypeVar("T")

_RECORD_BYTES = 150
_BYTES_IN_ZOOKEEPER = 32 * 2**10
NEVER_COMMITTED = OffsetCommitValue(offset=-1)


def _partition_problem(ctx: RequestContext, topic: str, partition: int) -> ErrorCode:
    if ctx.topic_denied(topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    known = ctx.broker.metadata.partition(topic, partition) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def stored_bytes(request: OffsetCommitRequest, version: int) -> int:
    """About what a commit leaves behind: a record per partition, with the group's and the topic's names in each.

    A node of ZooKeeper (version 0) stands for far more: all of it lives in memory, for everybody.
    """
    one = _BYTES_IN_ZOOKEEPER if version == 0 else _RECORD_BYTES + len(request.group_id)
    return one * sum(len(topic.partitions) for topic in request.topics)


# --- OffsetCommit -----------------------------------------------------------------------------------------------------


async def handle_offset_commit(ctx: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Answered when every in-sync replica has it."""
    offsets = {
        (topic.name, p.partition_index): Offset(
            p.committed_offset, p.committed_leader_epoch, p.committed_metadata or "", p.commit_timestamp
        )
        for topic in request.topics
        for p in topic.partitions
    }
    errors = {key: _partition_problem(ctx, *key) for key in offsets}
    if is_too_long(request.group_id):
        errors = dict.fromkeys(offsets, ErrorCode.INVALID_GROUP_ID)
    valid = {key: offset for key, offset in offsets.items() if errors[key] == ErrorCode.NONE}
    if ctx.version == 0:
        errors.update(await _commit_in_zookeeper(ctx, request.group_id, valid))
    elif valid:
        ask = Commit(
            valid,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            request.retention_time_ms,
        )
        errors.update(await ctx.broker.groups.commit(request.group_id, ask))
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                topic.name,
                tuple(
                    OffsetCommitResponsePartition(p.partition_index, errors[(topic.name, p.partition_index)])
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


async def _commit_in_zookeeper(
    ctx: RequestContext, group_id: str, offsets: dict[TopicPartition, Offset]
) -> dict[TopicPartition, ErrorCode]:
    problem = legacy.group_problem(group_id)
    if problem != ErrorCode.NONE:
        return dict.fromkeys(offsets, problem)
    longest, errors = ctx.broker.groups.settings.offset_metadata_max_bytes, {}
    for key, offset in offsets.items():
        if len(offset.metadata) > longest:
            errors[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            errors[key] = await legacy.commit(ctx.broker.doors.zookeeper, group_id, *key, offset.offset)
    return errors


# --- OffsetFetch ------------------------------------------------------------------------------------------------------


async def handle_offset_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """One group, or (v8) several."""
    if ctx.version >= 8:
        # Named more than once, a group is answered once: everything it has, twenty thousand times, would be too much.
        asked = {(g.group_id, g.topics): g for g in request.groups}.values()
        groups = [(g.group_id, *_fetch(ctx, request, g.group_id, _wanted(g.topics))) for g in asked]
        return OffsetFetchResponse(
            groups=tuple(
                OffsetFetchResponseGroup(group_id, _topics_of_group(found), error) for group_id, found, error in groups
            )
        )
    wanted = _wanted(request.topics)
    if ctx.version == 0:
        return OffsetFetchResponse(topics=_topics(await _fetch_from_zookeeper(ctx, request.group_id, wanted or [])))
    found, error = _fetch(ctx, request, request.group_id, wanted)
    if error != ErrorCode.NONE and ctx.version < 2:  # no place for an error but the partitions
        found = [(name, [(p, NEVER_COMMITTED, error) for p in partitions]) for name, partitions in wanted or []]
    return OffsetFetchResponse(error_code=error, topics=_topics(found))


def _wanted(topics: Iterable[T] | None) -> Wanted | None:
    return None if topics is None else [(t.name, t.partition_indexes) for t in topics]  # type: ignore[attr-defined]


def _fetch(
    ctx: RequestContext, request: OffsetFetchRequest, group_id: str, wanted: Wanted | None
) -> tuple[Found, ErrorCode]:
    committed = ctx.broker.groups.committed(group_id)
    if isinstance(committed, ErrorCode):
        return [], committed
    unstable = ctx.broker.groups.unstable(group_id) if request.require_stable else frozenset()

    def one(topic: str, partition: int) -> tuple[int, OffsetCommitValue, ErrorCode]:
        if ctx.topic_denied(topic):
            return partition, NEVER_COMMITTED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if (topic, partition) in unstable:
            return partition, NEVER_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return partition, committed.get((topic, partition), NEVER_COMMITTED), ErrorCode.NONE

    asked = _everything(ctx, committed) if wanted is None else wanted
    return [(topic, [one(topic, p) for p in partitions]) for topic, partitions in asked], ErrorCode.NONE


def _everything(ctx: RequestContext, committed: Iterable[TopicPartition]) -> Wanted:
    """All topics of the group that this session may see."""
    topics: dict[str, tuple[int, ...]] = {}
    for topic, partition in committed:
        if ctx.owns(topic) and not ctx.topic_denied(topic):
            topics[topic] = (*topics.get(topic, ()), partition)
    return list(topics.items())


async def _fetch_from_zookeeper(ctx: RequestContext, group_id: str, wanted: Wanted) -> Found:
    problem = legacy.group_problem(group_id)
    found: Found = []
    for topic, partitions in wanted:
        answers = []
        for partition in partitions:
            offset, error = legacy.NO_OFFSET, problem or _partition_problem(ctx, topic, partition)
            if error == ErrorCode.NONE:
                offset, error = await legacy.fetch(ctx.broker.doors.zookeeper, group_id, topic, partition)
            answers.append((partition, OffsetCommitValue(offset=offset), error))
        found.append((topic, answers))
    return found


def _topics(found: Found) -> tuple[OffsetFetchResponseTopic, ...]:
    return tuple(
        OffsetFetchResponseTopic(
            name, tuple(OffsetFetchResponsePartition(p, v.offset, v.leader_epoch, v.metadata, e) for p, v, e in answers)
        )
        for name, answers in found
    )


def _topics_of_group(found: Found) -> tuple[OffsetFetchResponseTopics, ...]:
    return tuple(
        OffsetFetchResponseTopics(
            name,
            tuple(OffsetFetchResponsePartitions(p, v.offset, v.leader_epoch, v.metadata, e) for p, v, e in answers),
        )
        for name, answers in found
    )


# --- OffsetDelete -----------------------------------------------------------------------------------------------------


async def handle_offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Offsets of topics that the group does not read at the moment."""
    if has_no_name(ctx, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    keys = [(topic.name, p.partition_index) for topic in request.topics for p in topic.partitions]
    errors = {key: _partition_problem(ctx, *key) for key in keys}
    valid = [key for key, error in errors.items() if error == ErrorCode.NONE]
    error, results = await ctx.broker.groups.delete_offsets(request.group_id, valid)
    if error != ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=error)
    errors.update(results)
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                topic.name,
                tuple(
                    OffsetDeleteResponsePartition(p.partition_index, errors[(topic.name, p.partition_index)])
                    for p in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
