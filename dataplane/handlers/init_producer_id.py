"""InitProducerId: a producer id for an idempotent producer (KIP-98, KIP-360). Transactions come later."""

from __future__ import annotations

from dataplane.doors import ZooKeeperError
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import InitProducerIdRequest, InitProducerIdResponse

_LAST_EPOCH = 32_766
"""The epoch after which a producer gets a new id: 32767 would wrap."""


async def handle_init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new id at epoch 0; a producer that names its own id and epoch gets the next epoch of it."""
    if request.transactional_id is not None:
        # No coordinator keeps transactional ids yet, and handing out an id would promise fencing that nobody does.
        return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.producer_id >= 0 and 0 <= request.producer_epoch < _LAST_EPOCH:
        return InitProducerIdResponse(producer_id=request.producer_id, producer_epoch=request.producer_epoch + 1)
    try:
        producer_id = await ctx.broker.producer_ids.next()
    except ZooKeeperError:
        return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
