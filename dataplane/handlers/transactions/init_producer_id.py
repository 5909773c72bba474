"""InitProducerId: a producer id for an idempotent producer (KIP-98, KIP-360). Transactions come later."""

from __future__ import annotations

from dataplane.doors import ZooKeeperError
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from dataplane.tenancy.access import Operation, of_transactional_id


async def handle_init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new id at epoch 0, as Kafka also for one that names an id it had: without a transactional id nothing ties it to it."""
    named = request.transactional_id
    denied = ErrorCode.NONE if named is not None else ctx.idempotence_refusal()
    if denied:
        return _refusal(denied)
    is_empty = named is not None and not ctx.session.names.transactional_id_out(named)  # as its producer wrote it
    if is_empty or (request.producer_id < 0) != (request.producer_epoch < 0):
        return _refusal(ErrorCode.INVALID_REQUEST)
    if named is not None:
        # No coordinator keeps transactional ids yet, and handing out an id would promise fencing that nobody does.
        refusal = ctx.refusal(Operation.WRITE, of_transactional_id(named))
        return _refusal(refusal or ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        producer_id = await ctx.broker.producer_ids.next()
    except ZooKeeperError:
        return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
