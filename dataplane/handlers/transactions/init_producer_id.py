"""InitProducerId: a producer id and epoch (KIP-98, KIP-360).

Without a transactional id a new id is all that there is to give. With one, the id's coordinator gives an epoch that fences every
producer before; where one of those has left a transaction open, it is aborted first, and the client asks again meanwhile.
"""

from __future__ import annotations

from dataplane.doors import ZooKeeperError
from dataplane.handlers.context import RequestContext
from dataplane.handlers.transaction_charges import charge
from dataplane.handlers.transactions.fencing import as_the_version_says, has_no_id
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import InitProducerIdRequest, InitProducerIdResponse
from dataplane.tenancy.access import Operation, of_transactional_id
from dataplane.transactions.events import Initialise


async def handle_init_producer_id(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """The access that Kafka asks for: to write the transactional id, or else to produce idempotently."""
    named = request.transactional_id
    refusal = ctx.idempotence_refusal() if named is None else ctx.refusal(Operation.WRITE, of_transactional_id(named))
    if refusal:
        return _refusal(refusal)
    if (request.producer_id < 0) != (request.producer_epoch < 0) or (named is not None and has_no_id(ctx, named)):
        return _refusal(ErrorCode.INVALID_REQUEST)
    return await (_new_id(ctx) if named is None else _next_epoch(ctx, named, request))


async def _new_id(ctx: RequestContext) -> InitProducerIdResponse:
    """At epoch 0, as Kafka also for one that names an id it had: without a transactional id nothing ties it to it."""
    try:
        producer_id = await ctx.broker.producer_ids.next()
    except ZooKeeperError:
        return _refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _next_epoch(ctx: RequestContext, named: str, request: InitProducerIdRequest) -> InitProducerIdResponse:
    charge(ctx, named)
    known = None if request.producer_id < 0 else (request.producer_id, request.producer_epoch)
    ask = Initialise(request.transaction_timeout_ms, known)
    result = await ctx.broker.transactions.initialise(named, ask, is_tenants=ctx.session.instance is not None)
    return InitProducerIdResponse(
        error_code=as_the_version_says(ctx, result.error),
        producer_id=result.producer_id,
        producer_epoch=result.producer_epoch,
    )


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)
