"""SASL: who a tenant's client is (`tenancy.logins`), and the way into the internal listener: PLAIN with an identity's credential.

Codes and sentences are Kafka's. Whatever refuses a client also ends its connection, which `requests.introduction` does by what
the session has become.
"""

from __future__ import annotations

from typing import Any

from dataplane.handlers.context import RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Reply
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from dataplane.security.attempts import LEAST_DELAY_S
from dataplane.tenancy.logins import Answer, offered
from quota.contracts.identity import ANYBODY

MECHANISM = "PLAIN"
"""The internal listener's only one."""


def handle_sasl_handshake(ctx: RequestContext, request: SaslHandshakeRequest) -> Reply:
    """Agree on the mechanism."""
    session = ctx.session
    if session.instance is None:
        error = ErrorCode.NONE if request.mechanism == MECHANISM else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=error, mechanisms=(MECHANISM,))
    if session.login is not None:
        raise CloseConnectionError("a handshake within an exchange")
    route = session.instance.route(session.route)
    mechanisms = offered(route) if route.wants_sasl else ()
    if not route.wants_sasl or (session.mechanism is not None and not ctx.broker.logins.may_begin(session)):
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if request.mechanism not in mechanisms:
        session.authenticated = False
        refusal = SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms)
        return ctx.broker.logins.tell_later(session, LEAST_DELAY_S, lambda: refusal, _handshake_dropped)  # type: ignore[no-any-return]
    ctx.broker.logins.begin(session, request.mechanism, is_raw=ctx.version == 0, client_id=ctx.client_id or "")
    return SaslHandshakeResponse(mechanisms=mechanisms)


def handle_sasl_authenticate(ctx: RequestContext, request: SaslAuthenticateRequest) -> Reply:
    """The next token of an exchange."""
    session = ctx.session
    if session.instance is None:
        return _internal(ctx, request)
    if session.login is None:
        if not session.authenticated:
            raise CloseConnectionError("SaslAuthenticate before SaslHandshake")
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    return ctx.broker.logins.take(session, request.auth_bytes, _said)  # type: ignore[no-any-return]


def _said(answer: Answer) -> SaslAuthenticateResponse:
    if answer.is_dropped:
        raise CloseConnectionError("too many wait to be told that they failed")
    if answer.error is not None:
        return SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, answer.error)
    return SaslAuthenticateResponse(auth_bytes=answer.token, session_lifetime_ms=answer.lifetime_ms)


def _handshake_dropped(_answer: Answer) -> Any:
    raise CloseConnectionError("too many wait to be told that they failed")


def _internal(ctx: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """``[authzid] NUL authcid NUL password``; the password is compared in constant time.

    Said again, it may not be another's: what the connection has begun was permitted to the one that it was. Who was anybody
    until now, as all are at a listener without authentication, may say who it is.
    """
    session = ctx.session
    authzid, *said = (part.decode(errors="surrogateescape") for part in request.auth_bytes.split(b"\0"))
    identity = None
    if len(said) == 2 and authzid in ("", said[0]):
        identity = ctx.broker.config.keys.proven(said[0], said[1])
    if identity is not None and session.identity in (None, ANYBODY, identity):
        session.authenticated, session.identity = True, identity
        session.principal = f"User:{identity.name}"
        return SaslAuthenticateResponse()
    if session.identity is not None:
        raise CloseConnectionError("a connection of the cluster's stays who it was")
    return SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed: wrong name or password"
    )
