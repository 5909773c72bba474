"""Whether the cluster's own processes speak TLS to each other, and the steps from plaintext to TLS.

================  =========================  ============================================
value             its listener takes         it connects with
================  =========================  ============================================
sasl_plaintext    plaintext                  plaintext
ssl_accepted      plaintext and TLS          plaintext
ssl_said          plaintext and TLS          TLS
ssl               TLS                        TLS
================  =========================  ============================================

Each step is a rolling restart of all brokers, and one step apart any two brokers understand each other. In plaintext a process
proves who it is by SASL, over TLS by its certificate. A master takes one or the other; the URL in its node says which.
"""

from __future__ import annotations

from enum import StrEnum


class InternalSecurity(StrEnum):
    """See the file's text."""

    SASL_PLAINTEXT = "sasl_plaintext"
    SSL_ACCEPTED = "ssl_accepted"
    SSL_SAID = "ssl_said"
    SSL = "ssl"

    @property
    def has_tls(self) -> bool:
        """Whether the process needs a certificate."""
        return self is not InternalSecurity.SASL_PLAINTEXT

    @property
    def takes_plaintext(self) -> bool:
        """Whether others may still come without TLS, and it may go to those that have none."""
        return self is not InternalSecurity.SSL

    @property
    def connects_with_tls(self) -> bool:
        """Whether it speaks TLS to brokers by itself."""
        return self in (InternalSecurity.SSL_SAID, InternalSecurity.SSL)


def internal_security(text: object) -> InternalSecurity:
    """Raises ValueError with what it may be."""
    if text not in tuple(InternalSecurity):
        raise ValueError(f"internal_security must be one of {', '.join(InternalSecurity)}, not {text!r}")
    return InternalSecurity(str(text))
