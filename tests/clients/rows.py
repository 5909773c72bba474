"""The rows of the matrix: each way by which a client may come.

A mechanism more is a row more for each security, the mechanism in `MECHANISMS`, and what the clients' programs need to log in by
it; a client that does not have it says so in `clients`.
"""

from __future__ import annotations

from dataclasses import dataclass

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@dataclass(frozen=True)
class Row:
    """A route of the instance, by its id, and how a client comes by it."""

    route: str
    security: str
    mechanism: str = ""
    shows_certificate: bool = False

    @property
    def name(self) -> str:
        return f"{self.route} {self.mechanism}".strip()

    @property
    def wants_sasl(self) -> bool:
        return bool(self.mechanism)

    @property
    def wants_tls(self) -> bool:
        return self.security.endswith("ssl")


ROWS = (
    Row("plaintext", "plaintext"),
    *(Row("sasl_plaintext", "sasl_plaintext", mechanism) for mechanism in MECHANISMS),
    Row("ssl", "ssl"),
    Row("mtls", "ssl", shows_certificate=True),
    *(Row("sasl_ssl", "sasl_ssl", mechanism) for mechanism in MECHANISMS),
)
