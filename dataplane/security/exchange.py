"""A SASL exchange as a server sees it: tokens in, until the client has said something that can be verified.

::

    exchange = Scram(...)
    exchange.take(b"n,,n=alice,r=...")   -> bytes: say this, and give me what comes then
    exchange.take(b"c=biws,r=...,p=...") -> Proof: verify it; it is the end

Some mechanisms have the server say why before they fail: `Proof.refusal`. Then the client answers once more, and that is the end.

Nothing in here knows the world: who drives an exchange decides when a proof is verified, and where, since that may take
milliseconds (`Proof.takes_long`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from quota.contracts.token_issuers import TokenIssuer
from quota.contracts.users import Credential


class SaslError(Exception):
    """The exchange has failed. `told` is a sentence that the client may hear; None: nothing but that it failed."""

    def __init__(self, why: str, told: str | None = None) -> None:
        super().__init__(why)
        self.told = told


OTHER_AUTHZID = "Authentication failed: Client requested an authorization id that is different from username"
"""In Kafka's words."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Somebody is who he says he is, by this credential (None: it was not one of a user's that is kept here)."""

    said: bytes  # the server's last token
    credential: Credential | None = None
    expires_ms: int | None = None  # of the wall's clock; None: it does not say
    issuer: TokenIssuer | None = None  # who vouches for him; None: nobody but a credential


@dataclass(frozen=True, slots=True)
class Wrong:
    """He is not, for a reason that the owner of the instance may know from its audit. Who tries is told nothing of it."""

    why: str


Judged = Verified | Wrong | None
"""None: he is not, and there is no more to say."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a client has said of itself at the end of an exchange."""

    user: str
    verify: Callable[[int], Judged]  # of the wall's milliseconds. Changes nothing
    takes_long: bool  # too long for the loop
    refusal: bytes | None = None  # what to say where it is wrong, before the failure itself


class Exchange(Protocol):
    """One of a mechanism."""

    @property
    def mechanism(self) -> str: ...

    def take(self, token: bytes) -> bytes | Proof:
        """What the client says next: what to answer, or the end of it. Raises SaslError."""
        ...


def text_of(token: bytes, longest: int) -> str:
    """A token that has to be text. Raises SaslError."""
    if len(token) > longest:
        raise SaslError(f"a message of {len(token)} bytes, where {longest} may come")
    try:
        return token.decode()
    except UnicodeDecodeError as error:
        raise SaslError("a message that is not UTF-8") from error
