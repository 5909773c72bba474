"""EndTxn: a transaction is committed or aborted. Answered when that is decided for good; its partitions hear it later.

From version 5 on the producer goes on with the id and epoch of the answer (KIP-890, part 2).
"""

from __future__ import annotations

from dataplane.handlers.context import RequestContext
from dataplane.handlers.transaction_charges import charge
from dataplane.handlers.transactions.fencing import as_the_version_says, has_no_id
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import EndTxnRequest, EndTxnResponse
from dataplane.tenancy.access import Operation, of_transactional_id
from dataplane.transactions.events import EndAndRaise, EndTransaction

_RAISES_SINCE = 5


async def handle_end_txn(ctx: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """See the file's text."""
    named = request.transactional_id
    refusal = ctx.refusal(Operation.WRITE, of_transactional_id(named))
    if refusal:
        return EndTxnResponse(error_code=refusal)
    if has_no_id(ctx, named):
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    charge(ctx, named, records=2)  # the decision, and that it is complete
    if ctx.version >= _RAISES_SINCE:
        raising = EndAndRaise(request.producer_id, request.producer_epoch, request.committed)
        result = await ctx.broker.transactions.end_and_raise(named, raising)
        return EndTxnResponse(
            error_code=result.error, producer_id=result.producer_id, producer_epoch=result.producer_epoch
        )
    ask = EndTransaction(request.producer_id, request.producer_epoch, request.committed)
    return EndTxnResponse(error_code=as_the_version_says(ctx, await ctx.broker.transactions.end(named, ask)))
