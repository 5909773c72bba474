"""What only the controller sends: who leads, who follows, who stops. Internal listener only (see the table)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dataplane.doors import ZooKeeperError

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.control import (
        LeaderAndIsrRequest,
        LeaderAndIsrResponse,
        StopReplicaRequest,
        StopReplicaResponse,
    )


async def handle_leader_and_isr(ctx: RequestContext, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    """Roles of replicas on this broker.

    What is configured for topics that are new here is read first: their leader must know `min.insync.replicas` before
    it takes the first record.
    """
    broker = ctx.broker
    new = [topic.topic_name for topic in request.topic_states if not broker.replicas.hosts_topic(topic.topic_name)]
    if new:
        with suppress(ZooKeeperError):  # the last known configuration holds; changes are read when ZooKeeper is back
            await broker.topic_configs.refresh(new)
    return broker.replicas.apply_leader_and_isr(request)


def handle_stop_replica(ctx: RequestContext, request: StopReplicaRequest) -> StopReplicaResponse:
    """Replicas that this broker gives up."""
    return ctx.broker.replicas.stop_replicas(request)
