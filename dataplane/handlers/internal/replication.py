"""What only the controller sends: who leads, who follows, who stops. Internal listener only (see the table).

It is obeyed in the order in which it comes, together with UpdateMetadata (`Metadata.words`); what names many partitions in
steps, between which others are served.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dataplane.cluster.in_order import at_once
from dataplane.doors import ZooKeeperError
from dataplane.handlers.internal.control import is_overtaken
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import LeaderAndIsrResponse, StopReplicaResponse
from dataplane.records.steps import run_through
from dataplane.replication.leadership import already_refused, leader_and_isr_applied, replicas_stopped

if TYPE_CHECKING:
    from dataplane.cluster.in_order import Run
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.control import (
        LeaderAndIsrRequest,
        StopReplicaRequest,
    )
    from dataplane.records.steps import Steps
    from dataplane.replication.manager import Replicas

_AT_ONCE = 8
"""Partitions."""
_LOOKED_AT_PER_STEP = 128
"""Topics."""


async def handle_leader_and_isr(ctx: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Roles of replicas on this broker.

    What is configured for topics that are new here is read first: their leader must know `min.insync.replicas` before
    it takes the first record.
    """
    broker = ctx.broker
    refused = already_refused(broker.replicas, request)
    if refused is ErrorCode.NONE and is_overtaken(ctx, request):
        refused = ErrorCode.STALE_BROKER_EPOCH
    if refused is not ErrorCode.NONE:  # nothing is read for it
        return LeaderAndIsrResponse(error_code=refused)
    looking = _new_topics(broker.replicas, request)
    # What is short goes on in this turn, before whatever the controller says next.
    new = await in_slices(ctx, looking) if ctx.is_long else run_through(looking)
    if new:
        with suppress(ZooKeeperError):  # the last known configuration holds; changes are read when ZooKeeper is back
            await broker.topic_configs.refresh(new)
    if is_overtaken(ctx, request):  # in the meantime
        return LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    steps = leader_and_isr_applied(broker.replicas, request)
    return await broker.metadata.words.add(steps, _runner(ctx, request))


def _new_topics(replicas: Replicas, request: LeaderAndIsrRequest) -> Steps[list[str]]:
    """Those of which this broker gets its first replica."""
    new = []
    for number, topic in enumerate(request.topic_states, 1):
        is_ours = any(replicas.broker_id in state.replicas for state in topic.partition_states)
        if is_ours and not replicas.registry.hosts_topic(topic.topic_name):
            new.append(topic.topic_name)
        if number % _LOOKED_AT_PER_STEP == 0:
            yield None
    return new


async def handle_stop_replica(ctx: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    """Replicas that this broker gives up."""
    if is_overtaken(ctx, request):
        return StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    return await ctx.broker.metadata.words.add(replicas_stopped(ctx.broker.replicas, request), _runner(ctx, request))


def _runner(ctx: RequestContext, request: LeaderAndIsrRequest | StopReplicaRequest) -> Run:
    """What is short is over at once, as long as nothing is before it."""
    topics = request.topic_states
    if len(topics) <= _AT_ONCE and sum(len(topic.partition_states) for topic in topics) <= _AT_ONCE:
        return at_once
    return lambda steps: in_slices(ctx, steps)
