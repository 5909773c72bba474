"""What requests that bring a group's offsets are told of their transaction, by what clients of their version know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext

_ABORTABLE_SINCE = {ApiKey.ADD_OFFSETS_TO_TXN: 4, ApiKey.TXN_OFFSET_COMMIT: 4}


def for_offsets(ctx: RequestContext, error: ErrorCode) -> ErrorCode:
    """TRANSACTION_ABORTABLE where the transaction has to be aborted and its producer can go on, to those that know it.

    Of an instance that may have no more open transactions older ones are told POLICY_VIOLATION, which clients take for the
    end of the producer here, where for partitions they abort the transaction. Of a partition that is not in the transaction
    they are told INVALID_TXN_STATE, as Kafka's.
    """
    if ctx.version >= _ABORTABLE_SINCE[ctx.api_key]:
        return ErrorCode.TRANSACTION_ABORTABLE if error == ErrorCode.POLICY_VIOLATION else error
    return ErrorCode.INVALID_TXN_STATE if error == ErrorCode.TRANSACTION_ABORTABLE else error
