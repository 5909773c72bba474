"""ApiVersions: what this listener answers (KIP-35, KIP-511), and which features are in force (KIP-584).

There is one: transactions whose ends raise the epoch (`transaction.version` 2, KIP-890). Only who is told so uses the versions
of requests that belong to it. Clients before version 4 cannot read of a feature that may be at 0: they are not told which
levels there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from dataplane.handlers.context import RequestContext
from dataplane.protocol.api import Api
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from dataplane.transactions.model import RAISING

SAYS_WHO_SINCE = 3
_READS_ZERO_SINCE = 4
_TRANSACTIONS = "transaction.version"
_FEATURES_EPOCH = 1
"""It would rise when what is in force changes."""
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What KIP-511 allows for the name and for the version of a client."""
MOST_SOFTWARE = 100
"""Characters of either that are kept."""


class Offered(Protocol):
    """A row of the table of handlers (`table.Handler`), which refers to this module and so is handed in."""

    @property
    def api(self) -> Api: ...

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...


def handle_api_versions(
    ctx: RequestContext, request: ApiVersionsRequest, served: Callable[..., Sequence[Offered]]
) -> ApiVersionsResponse:
    """The rows of the table that this kind of listener serves."""
    if ctx.version >= SAYS_WHO_SINCE:
        said = (request.client_software_name, request.client_software_version)
        if not all(map(_SOFTWARE.fullmatch, said)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        ctx.session.software = said[0][:MOST_SOFTWARE], said[1][:MOST_SOFTWARE]
    return _offer(served, tenant=not ctx.session.is_internal, reads_zero=ctx.version >= _READS_ZERO_SINCE)


@cache  # every connection begins with this question, and some clients ask it again and again
def _offer(served: Callable[..., Sequence[Offered]], *, tenant: bool, reads_zero: bool) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=tuple(map(_version, served(tenant=tenant))),
        supported_features=(SupportedFeatureKey(_TRANSACTIONS, 0, RAISING),) if reads_zero else (),
        finalized_features_epoch=_FEATURES_EPOCH,
        finalized_features=(FinalizedFeatureKey(_TRANSACTIONS, RAISING, RAISING),),
    )


def unsupported_version(row: Offered) -> ApiVersionsResponse:
    """The answer, in layout 0, to a version of ApiVersions that we do not know: which ones we do (KIP-511). `row` is its own."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(_version(row),))


def _version(row: Offered) -> ApiVersion:
    return ApiVersion(row.api.key, row.low, row.high)
