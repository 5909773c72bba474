"""Who is on a connection: whose it is, by which route it came, and what names mean on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from quota.contracts.namespace import Names

if TYPE_CHECKING:
    from dataplane.tenancy.instance import Instance


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
    principal: str = "User:ANONYMOUS"
    authenticated: bool = True

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
