"""The rows of requests about offsets: one for each topic and partition, worked on a portion after the other, then answered."""

from __future__ import annotations

from collections import deque
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.offsets import OffsetCommitRequest
from dataplane.protocol.release import emptied
from dataplane.records.steps import Pace, each, run_through
from dataplane.tasks import Task

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator

    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.offsets import OffsetDeleteRequest
    from dataplane.protocol.messages.transactions import TxnOffsetCommitRequest
    from dataplane.records.steps import Steps
    from dataplane.tenancy.access import Operation

TopicPartition = tuple[str, int]
Errors = dict[TopicPartition, ErrorCode]
Rows = dict[TopicPartition, Any]
T = TypeVar("T")

PORTION = 8
"""Of many offsets, those that are committed or removed together: 0.2 ms of work, and 0.2 ms more at the end of the turn."""
_FEW = 64
_partitions = attrgetter("partitions")
NAME_US, OFFSET_US = 1, 6
_RECORD_BYTES = 150
_BYTES_IN_ZOOKEEPER = 32 * 2**10


def stored_bytes(request: OffsetCommitRequest | TxnOffsetCommitRequest, version: int) -> int:
    """About what a commit leaves behind: a record per partition, with the group's and the topic's names in each.

    A node of ZooKeeper (version 0 of OffsetCommit) stands for far more: all of it lives in memory, for everybody.
    """
    is_in_zookeeper = version == 0 and isinstance(request, OffsetCommitRequest)
    one = _BYTES_IN_ZOOKEEPER if is_in_zookeeper else _RECORD_BYTES + len(request.group_id)
    return one * sum(map(len, map(_partitions, request.topics)))


def partition_problem(ctx: RequestContext, operation: Operation, topic: str, partition: int) -> ErrorCode:
    """Why a session has nothing to do with a partition: it may not, or there is none."""
    refusal = ctx.topic_refusal(operation, topic)
    if refusal:
        return refusal
    known = ctx.broker.metadata.partition(topic, partition) is not None
    return ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def rows_of(topics: Iterable[Any]) -> Steps[Rows]:
    """The rows of a request by topic and partition: what is said last of one holds."""
    pace = Pace()
    rows = {}
    for topic in topics:
        for row in topic.partitions:
            if pace.over(NAME_US):
                yield None
            rows[topic.name, row.partition_index] = row
    return rows


def portions(rows: Rows) -> Iterator[Rows]:
    """At least one. They are taken out of `rows`: twenty thousand that are let go of at once hold up everybody for 10 ms."""
    left = deque(rows)
    while True:
        keys = [left.popleft() for _ in range(min(PORTION, len(left)))]
        yield {key: rows.pop(key) for key in keys}
        if not left:
            return


def _are_few(topics: Iterable[Any]) -> bool:
    count = 0
    for topic in topics:
        count += len(topic.partitions) or 1  # twenty thousand that name none are many
        if count > _FEW:
            return False
    return True


async def each_portion(
    ctx: RequestContext, topics: Iterable[Any], begin: Callable[[Rows], Coroutine[Any, Any, T]]
) -> AsyncIterator[T]:
    """What `begin` answers about each portion of many rows, one after the other.

    The next one begins in a turn of its own, behind the others who are served in it: what a portion costs is not only what
    `begin` does at once, but a batch that is written, read again by replicas, and taken into the group.
    """
    run = partial(ctx.broker.slices.run, ctx.owner)
    rows = await run(rows_of(topics))
    try:
        for portion in portions(rows):
            (begun,) = await run(each([portion], lambda rows: Task(begin(rows)), OFFSET_US), at_once=False)
            yield await begun
    finally:
        if rows:  # it ends before: whole they would take two milliseconds
            run(emptied(rows))


async def in_portions(
    ctx: RequestContext, topics: Iterable[Any], commit: Callable[[Rows], Coroutine[Any, Any, Errors]]
) -> Errors:
    """What becomes of each row when `commit` has been asked for all of them, of many one portion after the other."""
    if _are_few(topics):
        return await commit(run_through(rows_of(topics)))
    errors: Errors = {}
    async for answered in each_portion(ctx, topics, commit):
        errors.update(answered)
    return errors


async def told(
    ctx: RequestContext,
    request: OffsetCommitRequest | OffsetDeleteRequest | TxnOffsetCommitRequest,
    errors: Errors,
    topic_type: Callable[..., T],
    partition_type: Callable[..., Any],
) -> tuple[T, ...]:
    """What became of each offset, in the order of the request: commits and removals differ in their types only.

    It lets go of `errors`.
    """
    answers = _told(request.topics, errors, topic_type, partition_type)
    return run_through(answers) if _are_few(request.topics) else await ctx.broker.slices.run(ctx.owner, answers)


def _told(
    topics: Iterable[Any], errors: Errors, topic_type: Callable[..., T], partition_type: Callable[..., Any]
) -> Steps[tuple[T, ...]]:
    pace = Pace()
    answers = []
    for topic in topics:
        rows = []
        for p in topic.partitions:
            if pace.over(OFFSET_US):
                yield None
            rows.append(partition_type(p.partition_index, errors[topic.name, p.partition_index]))
        answers.append(topic_type(topic.name, as_array(rows)))
    yield from emptied(errors)
    return tuple(answers)
