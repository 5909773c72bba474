"""Between controller and brokers: UpdateMetadata, AlterPartition, ControlledShutdown. Internal listener only."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


def is_overtaken(
    ctx: RequestContext, request: UpdateMetadataRequest | LeaderAndIsrRequest | StopReplicaRequest
) -> bool:
    """Whether it lay in a connection that has ended for the controller, which has said more on another since.

    The answer (STALE_BROKER_EPOCH: say it again) will find nobody.
    """
    metadata = ctx.broker.metadata
    return metadata.is_overtaken(request.controller_id, request.controller_epoch, ctx.session.number)


async def handle_update_metadata(ctx: RequestContext, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
    """What the controller tells of the cluster; refused where it was meant for an earlier life of this broker, or comes late."""
    if not ctx.broker.membership.accepts(request.broker_epoch) or is_overtaken(ctx, request):
        return UpdateMetadataResponse(ErrorCode.STALE_BROKER_EPOCH)
    return UpdateMetadataResponse(await ctx.broker.metadata.take(request, lambda steps: in_slices(ctx, steps)))


def handle_alter_partition(
    ctx: RequestContext, request: AlterPartitionRequest
) -> Coroutine[Any, Any, AlterPartitionResponse]:
    """A leader proposes ISRs; only the controller writes them."""
    return ctx.broker.controller.alter_partition(request, ctx.version)


def handle_controlled_shutdown(
    ctx: RequestContext, request: ControlledShutdownRequest
) -> Coroutine[Any, Any, ControlledShutdownResponse]:
    """A broker that is about to stop gives its leadership away."""
    return ctx.broker.controller.controlled_shutdown(request)
