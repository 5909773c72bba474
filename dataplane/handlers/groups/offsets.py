"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.

Version 0 of the first two keeps offsets in ZooKeeper (`dataplane.groups.legacy`). In the others a partition that was
never committed has the offset -1 and no error. A topic that a whitelist refuses says so when it is named, and is left
out of a list of everything.

Many offsets are committed, removed and told with other requests served between: committed and removed in portions, each
with its own answers, so a reader may see one portion and not yet the next, as it may of two commits. Whether the session
may see a topic, and whether it exists, is asked when the turn of its portion comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dataplane.groups import legacy
from dataplane.groups.commits import Commit, Offset
from dataplane.handlers.groups.membership import has_no_name, is_too_long
from dataplane.handlers.groups.rows import (
    NAME_US,
    OFFSET_US,
    each_portion,
    in_portions,
    partition_problem,
    told,
)
from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.group_records import OffsetCommitValue
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from dataplane.records.steps import Pace, each
from dataplane.tenancy.access import Operation, of_topic

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.handlers.context import RequestContext
    from dataplane.handlers.groups.rows import Errors, TopicPartition
    from dataplane.handlers.outcome import Reply
    from dataplane.records.steps import Steps

Wanted = Iterable[tuple[str, tuple[int, ...]]]
"""Topics with their partitions, as asked."""
Found = list[tuple[str, list[tuple[int, OffsetCommitValue, ErrorCode]]]]
"""Topics with the offset of each partition, as answered."""
T = TypeVar("T")

_GROUP_US = 12
_TOP_LEVEL_ERROR_SINCE = 2
_SEVERAL_GROUPS_SINCE = 8
_EPOCHS_SINCE = 9  # of members (KIP-848)
NEVER_COMMITTED = OffsetCommitValue(offset=-1)


# --- OffsetCommit -----------------------------------------------------------------------------------------------------


async def handle_offset_commit(ctx: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Answered when every in-sync replica has it."""
    errors = await in_portions(ctx, request.topics, partial(_commit, ctx, request))
    return OffsetCommitResponse(
        topics=await told(ctx, request, errors, OffsetCommitResponseTopic, OffsetCommitResponsePartition)
    )


async def _commit(
    ctx: RequestContext, request: OffsetCommitRequest, rows: dict[TopicPartition, OffsetCommitRequestPartition]
) -> Errors:
    """One portion: decided now, over when it is committed."""
    offsets = {
        key: Offset(p.committed_offset, p.committed_leader_epoch, p.committed_metadata or "", p.commit_timestamp)
        for key, p in rows.items()
    }
    errors = {key: partition_problem(ctx, Operation.READ, *key) for key in offsets}
    refusal = ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        errors = dict.fromkeys(offsets, refusal)
    elif is_too_long(request.group_id):
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
            knows_epochs=ctx.version >= _EPOCHS_SINCE,
        )
        errors.update(await ctx.broker.groups.commit(request.group_id, ask))
    return errors


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


def handle_offset_fetch(ctx: RequestContext, request: OffsetFetchRequest) -> Reply:
    """One group, or (v8) several."""
    if ctx.version == 0:
        return _fetch_legacy(ctx, request)
    return _fetch_groups(ctx, request) if ctx.version >= _SEVERAL_GROUPS_SINCE else _fetch_group(ctx, request)


def _fetch_groups(ctx: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    pace = Pace()
    # Named more than once, a group is answered once: everything it has, twenty thousand times, would be too much.
    asked: dict[Any, OffsetFetchRequestGroup] = {}
    for g in reversed(request.groups):
        if pace.over(NAME_US * (1 + len(g.topics or ()))):
            yield None
        key = (
            (g.group_id, g.topics) if len(request.groups) > 1 else g.group_id
        )  # twenty thousand names take long to hash
        asked.pop(key, None)  # answered where it is named first
        asked[key] = g
    groups = []
    while asked:
        if pace.over(_GROUP_US):
            yield None
        _, g = asked.popitem()  # in the order of the request; freed whole, thousands of keys would take a millisecond
        problem = _member_problem(ctx, g)
        if problem:
            groups.append(OffsetFetchResponseGroup(g.group_id, (), problem))
            continue
        found, error = yield from _fetch(ctx, request, g.group_id, _wanted(g.topics), pace)
        topics = yield from _topics(found, OffsetFetchResponseTopics, OffsetFetchResponsePartitions, pace)
        groups.append(OffsetFetchResponseGroup(g.group_id, topics, error))
    return OffsetFetchResponse(groups=tuple(groups))


def _member_problem(ctx: RequestContext, asked: OffsetFetchRequestGroup) -> ErrorCode:
    """Who asks as a member, and is none any more, must not go on from there. Whether it may ask at all comes first."""
    if ctx.version < _EPOCHS_SINCE or ctx.group_refusal(Operation.DESCRIBE, asked.group_id):
        return ErrorCode.NONE
    return ctx.broker.groups.fetch_problem(asked.group_id, asked.member_id, asked.member_epoch)


def _fetch_group(ctx: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    pace = Pace()
    found, error = yield from _fetch(ctx, request, request.group_id, _wanted(request.topics), pace)
    if error != ErrorCode.NONE and ctx.version < _TOP_LEVEL_ERROR_SINCE:  # no place for an error but the partitions
        found = yield from _refused(_wanted(request.topics), error, pace)
    topics = yield from _topics(found, OffsetFetchResponseTopic, OffsetFetchResponsePartition, pace)
    return OffsetFetchResponse(error_code=error, topics=topics)


async def _fetch_legacy(ctx: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    found = await _fetch_from_zookeeper(ctx, request.group_id, _wanted(request.topics) or ())
    made = _topics(found, OffsetFetchResponseTopic, OffsetFetchResponsePartition, Pace())
    return OffsetFetchResponse(topics=await ctx.broker.slices.run(ctx.owner, made))


def _wanted(topics: Iterable[T] | None) -> Wanted | None:
    return None if topics is None else ((t.name, t.partition_indexes) for t in topics)  # type: ignore[attr-defined]


def _refused(wanted: Wanted | None, error: ErrorCode, pace: Pace) -> Steps[Found]:
    found: Found = []
    for topic, partitions in wanted or ():
        if pace.over(NAME_US):
            yield None
        found.append((topic, (yield from each(partitions, lambda p: (p, NEVER_COMMITTED, error), NAME_US, pace))))
    return found


def _fetch(
    ctx: RequestContext, request: OffsetFetchRequest, group_id: str, wanted: Wanted | None, pace: Pace
) -> Steps[tuple[Found, ErrorCode]]:
    denied = ctx.group_refusal(Operation.DESCRIBE, group_id)
    if denied:
        return [], denied
    committed = ctx.broker.groups.committed(group_id)
    if isinstance(committed, ErrorCode):
        return [], committed
    is_unstable = ctx.broker.groups.unstable(group_id)

    def one(topic: str, partition: int) -> tuple[int, OffsetCommitValue, ErrorCode]:
        refusal = ctx.topic_refusal(Operation.DESCRIBE, topic)
        if refusal:
            return partition, NEVER_COMMITTED, refusal
        if request.require_stable and is_unstable((topic, partition)):
            return partition, NEVER_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT
        return partition, committed.get((topic, partition), NEVER_COMMITTED), ErrorCode.NONE

    asked = (yield from _everything(ctx, list(committed), pace)) if wanted is None else wanted
    found = []
    for topic, partitions in asked:
        if pace.over(NAME_US):
            yield None
        answers = yield from each(partitions, partial(one, topic), OFFSET_US, pace)
        found.append((topic, answers))
    return found, ErrorCode.NONE


def _everything(ctx: RequestContext, committed: list[TopicPartition], pace: Pace) -> Steps[Wanted]:
    """All topics of the group that this session may see."""
    topics: dict[str, list[int]] = {}
    for topic, partition in committed:
        if pace.over(OFFSET_US):
            yield None
        if ctx.owns(topic) and ctx.may(Operation.DESCRIBE, of_topic(topic)):
            topics.setdefault(topic, []).append(partition)
    return [(topic, tuple(partitions)) for topic, partitions in topics.items()]


async def _fetch_from_zookeeper(ctx: RequestContext, group_id: str, wanted: Wanted) -> Found:
    run = partial(ctx.broker.slices.run, ctx.owner)
    problem = ctx.group_refusal(Operation.DESCRIBE, group_id) or legacy.group_problem(group_id)
    found: Found = []
    for topic, partitions in wanted:
        problems = await run(each(partitions, partial(partition_problem, ctx, Operation.DESCRIBE, topic), OFFSET_US))
        answers = []
        for partition, own_problem in zip(partitions, problems, strict=True):
            offset, error = legacy.NO_OFFSET, problem or own_problem
            if error == ErrorCode.NONE:
                offset, error = await legacy.fetch(ctx.broker.doors.zookeeper, group_id, topic, partition)
            answers.append((partition, OffsetCommitValue(offset=offset), error))
        found.append((topic, answers))
    return found


def _topics(
    found: Found, topic_type: Callable[..., T], partition_type: Callable[..., Any], pace: Pace
) -> Steps[tuple[T, ...]]:
    """As messages, which for one group and for several differ in their types only. Uses `found` up.

    Freed whole, what was found of 20,000 topics would take 5 ms.
    """
    topics = []
    found.reverse()
    while found:
        name, answers = found.pop()
        rows = yield from each(
            answers,
            lambda row: partition_type(row[0], row[1].offset, row[1].leader_epoch, row[1].metadata, row[2]),
            OFFSET_US,
            pace,
        )
        topics.append(topic_type(name, as_array(rows)))
    return tuple(topics)


# --- OffsetDelete -----------------------------------------------------------------------------------------------------


async def handle_offset_delete(ctx: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Offsets of topics that the group does not read at the moment."""
    refusal = ctx.group_refusal(Operation.DELETE, request.group_id)
    if refusal:
        return OffsetDeleteResponse(error_code=refusal)
    if has_no_name(ctx, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    errors: Errors = {}
    async for error, results in each_portion(ctx, request.topics, partial(_delete, ctx, request.group_id)):
        is_gone_with_them = error == ErrorCode.GROUP_ID_NOT_FOUND and bool(errors)
        if error != ErrorCode.NONE and not is_gone_with_them:
            return OffsetDeleteResponse(error_code=error)
        errors.update(results)
    topics = await told(ctx, request, errors, OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)
    return OffsetDeleteResponse(topics=topics)


async def _delete(ctx: RequestContext, group_id: str, rows: dict[TopicPartition, Any]) -> tuple[ErrorCode, Errors]:
    """One portion."""
    errors = {key: partition_problem(ctx, Operation.READ, *key) for key in rows}
    valid = [key for key, error in errors.items() if error == ErrorCode.NONE]
    error, results = await ctx.broker.groups.delete_offsets(group_id, valid)
    return error, {**errors, **results}
