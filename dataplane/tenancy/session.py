"""Who is on a connection: whose it is, by which route it came, and what names mean on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from quota.contracts.identity import Identity
from quota.contracts.namespace import Names

if TYPE_CHECKING:
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.logins import Login
    from quota.contracts.token_issuers import TokenIssuer


_USER = "User:"
ANONYMOUS = "User:ANONYMOUS"
"""Who is on a connection that need not log in, as Kafka calls him."""


class SessionNames(Names, Protocol):
    """The names of a session, and which physical names belong to it."""

    def owns(self, physical: str) -> bool: ...


@dataclass(slots=True)
class Session:
    """One connection, for as long as it lives. Nothing that a client sends changes `instance` or `route`."""

    instance: Instance | None  # None: the internal listener
    route: str
    names: SessionNames
    peer: str  # the address, without the port
    authenticated: bool  # whether it has said who it is, or need not
    principal: str = ANONYMOUS
    expires_s: float | None = None  # monotonic: from then on it has to log in again (KIP-368); None: never
    mechanism: str | None = None  # of SASL, by which it logged in; None: it has not
    issuer: TokenIssuer | None = None  # of the token by which it logged in, as it was then; None: it was a password
    login: Login | None = None  # an exchange that is under way (`logins`)
    began_s: float = 0.0  # monotonic: when the last one did
    identity: Identity | None = None  # of the cluster's own, on the internal listener; once it is known it stays
    software: tuple[str, str] = ("", "")  # name and version of the client, where it has said them (KIP-511)
    number: int = 0  # on the internal listener, and within an instance: a connection that came later has a larger one

    @property
    def user(self) -> str | None:
        """The name by which it logged in; None: it did not by SASL."""
        return None if self.mechanism is None else self.principal.removeprefix(_USER)

    @property
    def signed_in(self) -> str | None:
        """The name by which it did, by SASL or by a certificate; None: it has not, or need not."""
        if not self.authenticated or self.principal == ANONYMOUS:
            return None
        return self.principal.removeprefix(_USER)

    def log_in(self, user: str, mechanism: str, expires_s: float | None, issuer: TokenIssuer | None = None) -> None:
        """The exchange is over, and this is who it was; `issuer`: who has vouched for it by a token."""
        self.principal, self.mechanism, self.expires_s, self.issuer = _USER + user, mechanism, expires_s, issuer
        self.authenticated, self.login = True, None

    @property
    def is_internal(self) -> bool:
        """Whether this is another broker, the control plane, or an operator."""
        return self.instance is None

    @property
    def access_generation(self) -> int:
        """What was permitted in another generation has to be asked again (`access`)."""
        return 0 if self.instance is None else self.instance.permit.generation

    @property
    def account(self) -> str:
        """Whose time and memory its requests take: an instance's, by its key, or the cluster's own."""
        return "" if self.instance is None else self.instance.names.key
