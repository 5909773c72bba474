"""Why a connection to an instance was refused, or ended before anything could be done on it: brokers count, tenants are told.

It goes as a text in the answer about an instance's connections (`dataplane.protocol.messages.connections`). A reader takes one
that it does not know for what it is: a newer broker has a reason more.
"""

from __future__ import annotations

from enum import StrEnum


class Refused(StrEnum):
    """The reasons."""

    WHITELIST = "whitelist"  # no whitelist of the instance and the route holds the address
    CONNECTIONS = "connections"  # as many are open as may be: of the instance, of the route or of the address
    RATE = "rate"  # too many begin at once
    BROKER = "broker"  # the broker has no more room
    SASL = "sasl"  # a login that failed
    NO_LOGIN = "no_login"  # requests without a login, where there has to be one
    TLS_IN_CLEAR = "tls_in_clear"  # TLS, where none is spoken
    NOT_TLS = "not_tls"  # no TLS, where it has to be
    HANDSHAKE = "handshake"  # a handshake of TLS that failed
    CERTIFICATE = "certificate"  # the client's certificate is none that lets in
