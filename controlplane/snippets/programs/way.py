"""How a client comes to an instance: the addresses, what it shows and what it trusts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

USER, PASSWORD, TOKEN = "USER", "PASSWORD", "TOKEN"
TOKENS, CLIENT, SECRET = "https://TOKENS", "CLIENT", "SECRET"
"""For the reader to replace; the last three where tokens are asked for."""
AUTHORITY = "ca.pem"
CERTIFICATE, KEY, BOTH = "client.crt", "client.key", "client.pem"
"""Files of the reader's, the last three of a client that shows a certificate; Java wants key and certificate in one."""
GROUP = "my-group"
"""Of consumers."""
PREFERRED = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
BEARER = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a program: its name, with the folders that it has to stand in, and what is in it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Way:
    """A route of an instance, as a client of it sees it. `shows`: it wants a certificate of each client."""

    bootstrap: str
    topic: str
    security: str
    mechanism: str  # empty: nobody logs in
    shows: bool = False

    @property
    def brokers(self) -> list[str]:
        """Host and port each."""
        return self.bootstrap.split(",")

    @property
    def is_tls(self) -> bool:
        """Whether what is sent is encrypted."""
        return self.security.endswith("ssl")

    @property
    def has_password(self) -> bool:
        """Whether a user and a password are sent, or proven."""
        return bool(self.mechanism) and self.mechanism != BEARER
