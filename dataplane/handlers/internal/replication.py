"""What only the controller sends: who leads, who follows, who stops. Internal listener only (see the table).

It is obeyed in the order in which it comes, together with UpdateMetadata (`Metadata.words`); what names many partitions in
steps, between which others are served.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dataplane.cluster.in_order import at_once
from dataplane.doors import ZooKeeperError
from dataplane.replication.leadership import leader_and_isr_applied, replicas_stopped

if TYPE_CHECKING:
    from dataplane.cluster.in_order import Run
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.control import (
        LeaderAndIsrRequest,
        LeaderAndIsrResponse,
        StopReplicaRequest,
        StopReplicaResponse,
    )

_AT_ONCE = 8
"""Partitions."""


async def handle_leader_and_isr(ctx: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Roles of replicas on this broker.

    What is configured for topics that are new here is read first: their leader must know `min.insync.replicas` before
    it takes the first record.
    """
    broker = ctx.broker
    new = [
        topic.topic_name for topic in request.topic_states if not broker.replicas.registry.hosts_topic(topic.topic_name)
    ]
    if new:
        with suppress(ZooKeeperError):  # the last known configuration holds; changes are read when ZooKeeper is back
            await broker.topic_configs.refresh(new)
    steps = leader_and_isr_applied(broker.replicas, request)
    return await broker.metadata.words.add(steps, _runner(ctx, request))


async def handle_stop_replica(ctx: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    """Replicas that this broker gives up."""
    return await ctx.broker.metadata.words.add(replicas_stopped(ctx.broker.replicas, request), _runner(ctx, request))


def _runner(ctx: RequestContext, request: LeaderAndIsrRequest | StopReplicaRequest) -> Run:
    """What is short is over at once, as long as nothing is before it."""
    if sum(len(topic.partition_states) for topic in request.topic_states) <= _AT_ONCE:
        return at_once
    slices = ctx.broker.slices
    return lambda steps: slices.run("", steps)
