"""What a producer is called that is not the latest of its transactional id: older versions know no PRODUCER_FENCED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext

_KNOWN_SINCE = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}


def as_the_version_says(ctx: RequestContext, error: ErrorCode) -> ErrorCode:
    """INVALID_PRODUCER_EPOCH in place of PRODUCER_FENCED, as Kafka, to clients that would not understand it."""
    if error == ErrorCode.PRODUCER_FENCED and ctx.version < _KNOWN_SINCE[ctx.api_key]:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def has_no_id(ctx: RequestContext, transactional_id: str) -> bool:
    """Whether the client's name of the transactional id is empty, or longer than anybody needs: every change writes it."""
    return not ctx.session.names.transactional_id_out(transactional_id) or len(transactional_id) > MAX_TRANSACTIONAL_ID


MAX_TRANSACTIONAL_ID = 1_000
"""Of its physical name, as of a group's."""
