"""SASL/PLAIN with the cluster secret: the only way into the internal listener (RFC 4616)."""

from __future__ import annotations

import hmac

from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

MECHANISM = "PLAIN"


def handle_sasl_handshake(_ctx: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Agree on the mechanism."""
    error = ErrorCode.NONE if request.mechanism == MECHANISM else ErrorCode.UNSUPPORTED_SASL_MECHANISM
    return SaslHandshakeResponse(error_code=error, mechanisms=(MECHANISM,))


def handle_sasl_authenticate(ctx: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """``[authzid] NUL authcid NUL password``; the password is compared in constant time."""
    parts = request.auth_bytes.split(b"\0")
    secret = ctx.broker.config.cluster_secret.encode()
    if len(parts) == 3 and parts[0] in (b"", parts[1]) and secret and hmac.compare_digest(parts[2], secret):
        ctx.session.authenticated = True
        ctx.session.principal = "User:" + parts[1].decode(errors="replace")
        return SaslAuthenticateResponse()
    return SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed: wrong name or password"
    )
