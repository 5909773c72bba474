"""SCRAM, the server's side (RFC 5802; RFC 7677 for SHA-256, the same with SHA-512 as Kafka has it).

::

    C: n,,n=alice,r=<client's nonce>                       first
    S: r=<client's nonce><server's nonce>,s=<salt>,i=<n>
    C: c=<base64 of "n,,">,r=<both nonces>,p=<proof>       final
    S: v=<signature>

There is no channel binding here (no ``-PLUS`` mechanism): "p=" is refused, "y" means that the client could and sees that we
cannot. A name is taken as it is: neither Kafka's clients nor its broker prepare it (SASLprep). Extensions are skipped; the one
that must not be skipped, ``m=``, is refused. The nonce of the final message has to be the one that was sent, whole
(CVE-2024-56128); librdkafka before 2.6.1 repeats its own part in front of it, which takes nothing from ours and is let pass.
To verify a proof takes a few hashes; the salted password was the client's work.
"""

from __future__ import annotations

import base64
import hmac
import re
from binascii import Error as Base64Error

from dataplane.security.exchange import OTHER_AUTHZID, Proof, SaslError, Verified, text_of
from dataplane.security.known import KnownUsers
from quota.contracts.users import LONGEST_NAME, Credential, ScramMechanism
from quota.core.scram import proves, server_signature

LONGEST_MESSAGE = 8_192
"""Bytes: a name of 255 characters, each of them escaped or of four bytes, and a nonce and extensions beside it."""
NONCE_BYTES = 18
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = r"(?:,(?!m=)[A-Za-z]+=[^,\0]+)*"
_FIRST = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<authzid>[^,\0]+))?,)(?P<bare>n=(?P<name>[^,\0]+),r=(?P<nonce>{_NONCE}){_EXTENSIONS})"
)
_FINAL = re.compile(
    rf"(?P<without>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_NAME = re.compile(r"(?:[^=]|=2C|=3D)+")


class Scram:
    """Two messages. `nonce`: this many bytes that nobody can guess (`NONCE_BYTES`), used for this exchange only."""

    def __init__(self, mechanism: ScramMechanism, known: KnownUsers, nonce: bytes, now_ms: int) -> None:
        self._mechanism, self._known, self._now_ms = mechanism, known, now_ms
        self._nonce = base64.b64encode(nonce).decode()
        self._header = self._bare = self._answer = self._user = self._client_nonce = ""
        self._credentials: tuple[Credential, ...] = ()

    @property
    def mechanism(self) -> str:
        return self._mechanism.value

    def take(self, token: bytes) -> bytes | Proof:
        """As `exchange.Exchange`."""
        text = text_of(token, LONGEST_MESSAGE)
        return self._final(text) if self._answer else self._first(text)

    def _first(self, text: str) -> bytes:
        found = _FIRST.fullmatch(text)
        if found is None:
            raise SaslError("not a first message")
        self._user = _name(found["name"])
        if found["authzid"] is not None and _name(found["authzid"]) != self._user:
            raise SaslError("another authorization id", OTHER_AUTHZID)
        self._header, self._bare = found["header"], found["bare"]
        self._client_nonce = found["nonce"]
        self._nonce = found["nonce"] + self._nonce
        self._credentials = self._known.of(self._user, self._mechanism, self._now_ms)
        salt, iterations = base64.b64encode(self._credentials[0].salt).decode(), self._credentials[0].iterations
        self._answer = f"r={self._nonce},s={salt},i={iterations}"
        return self._answer.encode()

    def _final(self, text: str) -> Proof:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise SaslError("not a final message")
        nonce, twice = self._nonce, self._client_nonce + self._nonce
        if not (hmac.compare_digest(found["nonce"], nonce) or hmac.compare_digest(found["nonce"], twice)):
            raise SaslError("another nonce")
        if not hmac.compare_digest(_decoded(found["binding"]), self._header.encode()):
            raise SaslError("another channel binding than was said at first")
        proof = _decoded(found["proof"])
        message = f"{self._bare},{self._answer},{found['without']}".encode()
        credentials = self._credentials

        def verify(now_ms: int) -> Verified | None:
            fits = [one for one in credentials if proves(one, message, proof)]
            good = [one for one in fits if one.until_ms is None or now_ms < one.until_ms]
            return Verified(b"v=" + base64.b64encode(server_signature(good[0], message)), good[0]) if good else None

        return Proof(self._user, verify, takes_long=False)


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise SaslError("a name with an escape that is none")
    name = text.replace("=2C", ",").replace("=3D", "=")
    if len(name) > LONGEST_NAME:
        raise SaslError("a longer name than there is")
    return name


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except Base64Error as error:
        raise SaslError("not base64") from error
