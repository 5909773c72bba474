"""Logging in to A as a user of B: told as of a user that nobody has, whatever the password is.

A connection each, since a failure ends it. Of SCRAM's first answer two parts are no answer to who was asked for: the nonce, and
the salt, which for a name that does not exist is made of the name. Their lengths and everything else have to be equal.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.leaks.client import Address, Network
from tests.leaks.planting import PASSWORD, Facts
from tests.leaks.values import absent_of

_HANDSHAKE, _AUTHENTICATE = APIS[ApiKey.SASL_HANDSHAKE], APIS[ApiKey.SASL_AUTHENTICATE]
_NONCE = "leaksnonceleaksnonce"
_PARTS = re.compile(rb"r=([^,]*),s=([^,]*),i=")


@dataclass(frozen=True)
class Login:
    """One cell."""

    version: int
    where: str
    foreign: list[bytes | None]
    absent: list[bytes | None]


def cells(network: Network, address: Address, others: Facts) -> Iterator[Login]:
    """Each mechanism at each version."""
    for version in range(3):
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            foreign, absent = (
                _logged_in(network, address, mechanism, version, user, others)
                for user in (others.user, absent_of(others.user))
            )
            swapped = [
                None if answer is None else answer.replace(absent_of(others.user).encode(), others.user.encode())
                for answer in absent
            ]
            yield Login(version, f"{mechanism}: B's user with its password", foreign, swapped)


def _logged_in(
    network: Network, address: Address, mechanism: str, version: int, user: str, others: Facts
) -> list[bytes | None]:
    """The frames that were answered, None for the end."""
    if mechanism == "PLAIN":
        tokens = [f"\0{user}\0{PASSWORD}".encode()]
    else:
        tokens = [f"n,,n={user},r={_NONCE}".encode(), f"c=biws,r={_NONCE},p={'A' * 43}=".encode()]
    line = network.open(address, apart=False)
    told: list[bytes | None] = []
    try:
        line.send(encode_request(_HANDSHAKE, 1, 1, "leaks", SaslHandshakeRequest(mechanism)))
        told.append(line.frame())
        for token in tokens:
            line.send(encode_request(_AUTHENTICATE, version, 1, "leaks", SaslAuthenticateRequest(token)))
            told.append(_without_chosen(line.frame(), version, others))
    finally:
        line.close()
    return told


def _without_chosen(answer: bytes | None, version: int, others: Facts) -> bytes | None:
    if answer is None:
        return None
    said = bytes(decode_response(_AUTHENTICATE, version, answer)[1].auth_bytes)
    found = _PARTS.match(said)
    if found is None or base64.b64encode(others.salt) == found[2]:
        return answer
    return answer.replace(found[1], b"n" * len(found[1])).replace(found[2], b"s" * len(found[2]))
