"""PLAIN (RFC 4616): ``[authzid] NUL authcid NUL password`` in one message, verified by what verifies SCRAM.

No password is kept anywhere, so that what was sent has to be salted as SCRAM would do: milliseconds of work for each login.
"""

from __future__ import annotations

import hmac
from typing import ClassVar

from dataplane.security.exchange import OTHER_AUTHZID, Proof, SaslError, Verified, text_of
from dataplane.security.known import KnownUsers
from quota.contracts.users import LONGEST_NAME
from quota.core.scram import derived

LONGEST_PASSWORD = 1_024
"""Characters. It waits in memory for its turn."""
_LONGEST_MESSAGE = 4 * (2 * LONGEST_NAME + LONGEST_PASSWORD) + 2


class Plain:
    """One message."""

    mechanism: ClassVar[str] = "PLAIN"

    def __init__(self, known: KnownUsers) -> None:
        self._known = known

    def take(self, token: bytes) -> Proof:
        """As `exchange.Exchange`."""
        parts = text_of(token, _LONGEST_MESSAGE).split("\0")
        if len(parts) != 3:
            raise SaslError("not three parts", f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authzid, name, password = parts
        if not name:
            raise SaslError("no name", "Authentication failed: username not specified")
        if not password:
            raise SaslError("no password", "Authentication failed: password not specified")
        if authzid not in ("", name):
            raise SaslError("another authorization id", OTHER_AUTHZID)
        if len(name) > LONGEST_NAME or len(password) > LONGEST_PASSWORD:
            raise SaslError("a longer name or password than there is")
        known = self._known

        def verify(now_ms: int) -> Verified | None:
            credentials = known.of_any(name, now_ms)
            first = credentials[0]
            found = derived(password, mechanism=first.mechanism, salt=first.salt, iterations=first.iterations)
            fits = [one for one in credentials if hmac.compare_digest(one.stored_key, found.stored_key)]
            return Verified(b"", fits[0]) if fits else None

        return Proof(name, verify, takes_long=True)
