"""DescribeProducers: who has written to a partition with a producer id, as the replica here remembers, leader or follower.

In steps: a partition may remember thousands. Each partition is as it was when its turn came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery.metadata import name_problem
from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from dataplane.protocol.release import emptied
from dataplane.records.steps import Pace, each
from dataplane.storage.checkpoints import producers
from dataplane.storage.log import producing
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.records.steps import Steps

_NAME_US, _PARTITION_US, _STATE_US = 1, 16, 3


def handle_describe_producers(
    ctx: RequestContext, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    """Each partition by itself, and once, however often it is named."""
    pace = Pace()
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        indexes = asked.setdefault(topic.name, {})
        for index in topic.partition_indexes:
            if pace.over(_NAME_US):
                yield None
            indexes[index] = None
    topics = []
    for name, indexes in asked.items():
        rows: list[PartitionResponse] = []
        for index in indexes:
            row = yield from _partition(ctx, name, index, pace)
            rows.append(row)
        topics.append(TopicResponse(name, as_array(rows)))
        yield from emptied(indexes)
    return DescribeProducersResponse(topics=tuple(topics))


def _partition(ctx: RequestContext, topic: str, index: int, pace: Pace) -> Steps[PartitionResponse]:
    if pace.over(_PARTITION_US):
        yield None
    problem = name_problem(topic)
    if problem is not None:
        return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    refusal = ctx.topic_refusal(Operation.READ, topic)
    if refusal:
        return PartitionResponse(index, refusal)
    if not ctx.broker.metadata.has_topic(topic):
        return PartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist")
    partition = ctx.broker.replicas.registry.readable(topic, index, leader_only=False)
    if isinstance(partition, ErrorCode):
        return PartitionResponse(index, partition)
    now_ms = ctx.broker.doors.clock.now_ms()
    states = producing.producers_of(partition.log).states(now_ms)
    rows = yield from each(states, _state, _STATE_US, pace)
    return PartitionResponse(index, active_producers=as_array(rows))


def _state(state: producers.ProducerState) -> ProducerState:
    """The time is when the last batch came, as the log sees it: not what its sender claims."""
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.batches[-1].last_sequence if state.batches else -1,
        last_timestamp=state.seen_ms,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=state.first_offset,
    )
