"""ApiVersions: what this listener answers (KIP-35, KIP-511)."""

from __future__ import annotations

import re

from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

SAYS_WHO_SINCE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What KIP-511 allows for the name and for the version of a client."""


def handle_api_versions(ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """The rows of the table that this kind of listener serves."""
    from dataplane.handlers.table import served  # noqa: PLC0415 - the table refers to this function

    error = ErrorCode.NONE
    said = (request.client_software_name, request.client_software_version)
    if ctx.version >= SAYS_WHO_SINCE and not all(map(_SOFTWARE.fullmatch, said)):
        error = ErrorCode.INVALID_REQUEST
    rows = served(tenant=not ctx.session.is_internal) if error is ErrorCode.NONE else []
    keys = tuple(ApiVersion(row.api.key, row.low, row.high) for row in rows)
    return ApiVersionsResponse(error_code=error, api_keys=keys)


def unsupported_version() -> ApiVersionsResponse:
    """The answer, in layout 0, to a version of ApiVersions that we do not know: which ones we do (KIP-511)."""
    from dataplane.handlers.table import HANDLERS  # noqa: PLC0415 - the table refers to this module

    row = HANDLERS[18]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(ApiVersion(row.api.key, row.low, row.high),)
    )
