"""DescribeProducers: who has written to a partition with a producer id, as its leader remembers."""

from __future__ import annotations

from dataplane.handlers.context import RequestContext
from dataplane.handlers.metadata import name_problem
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from dataplane.storage import producers

_NO_COORDINATOR = -1  # it has ended no transaction


def handle_describe_producers(ctx: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Each partition by itself, and once, however often it is named."""
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(name, tuple(_partition(ctx, name, index) for index in indexes))
            for name, indexes in asked.items()
        )
    )


def _partition(ctx: RequestContext, topic: str, index: int) -> PartitionResponse:
    if ctx.topic_denied(topic):
        return PartitionResponse(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    problem = name_problem(topic)
    if problem is not None:
        return PartitionResponse(index, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if not ctx.broker.metadata.has_topic(topic):
        return PartitionResponse(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist")
    partition = ctx.broker.replicas.leader(topic, index)
    if isinstance(partition, ErrorCode):
        return PartitionResponse(index, partition)
    now_ms = ctx.broker.doors.clock.now_ms()
    states = partition.log.producers.states(now_ms)
    return PartitionResponse(index, active_producers=tuple(_state(state) for state in states))


def _state(state: producers.ProducerState) -> ProducerState:
    """The time is when the last batch came, as the log sees it: not what its sender claims."""
    return ProducerState(
        producer_id=state.producer_id,
        producer_epoch=state.epoch,
        last_sequence=state.batches[-1].last_sequence if state.batches else -1,
        last_timestamp=state.seen_ms,
        coordinator_epoch=_NO_COORDINATOR,
    )
