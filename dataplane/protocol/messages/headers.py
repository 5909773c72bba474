"""Request and response headers. Declarations only; see `dataplane.protocol.schema`."""

from __future__ import annotations

from dataplane.protocol.schema import (
    int16,
    int32,
    message,
    string,
)


@message(versions="0-2", flexible="2+")
class RequestHeader:
    """In front of every request."""

    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string("1+", nullable="1+", flexible=False)


@message(versions="0-1", flexible="1+")
class ResponseHeader:
    """In front of every response."""

    correlation_id: int = int32()
