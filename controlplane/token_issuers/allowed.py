"""From where keys of token issuers may be fetched: what the operator has listed, and nothing else. Pure.

A tenant names an address, and the control plane, which stands inside the network, connects to it: without a list every tenant
could have it ask metadata services, brokers and databases. So the operator lists hosts, comma-separated::

    login.example.com               https, port 443, at whatever public addresses the name has
    *.okta.com                      every name that ends so
    id.example.com:8443             another port
    keycloak.internal=10.3.0.0/16   a name whose addresses have to be in these networks ("+" between several)
    http://127.0.0.1:8080           without TLS, for a stack on one machine; an address allows itself

A name is looked up once for each fetch, and the address that was judged is the one that is connected to: a name that points to
an address inside is refused, whatever it pointed to before. Without networks of its own an entry allows public addresses only:
`controlplane.core.addresses` says which those are.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from controlplane.core.addresses import is_public, is_within

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_URL = 500
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of the list."""

    scheme: str
    host: str  # lower case; with "*." in front: whatever ends so
    port: int
    networks: tuple[IPv4Network | IPv6Network, ...] = ()  # empty: public addresses

    def holds(self, scheme: str, host: str, port: int) -> bool:
        """Whether this is one of its addresses, by name."""
        if (scheme, port) != (self.scheme, self.port):
            return False
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host

    def allows(self, address: str) -> bool:
        """Whether the name may have this address."""
        return is_within(address, self.networks) if self.networks else is_public(address)


@dataclass(frozen=True, slots=True)
class KeyAddress:
    """Where keys are, and what allows to fetch them there."""

    host: str
    port: int
    target: str  # path and query
    place: Place


def places_of(text: str) -> tuple[Place, ...]:
    """The operator's list. Raises ValueError with the entry at fault."""
    return tuple(_place(entry.strip()) for entry in text.split(",") if entry.strip())


def _place(entry: str) -> Place:
    address, _, blocks = entry.partition("=")
    if "://" not in address:
        address = f"https://{address}"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        networks = tuple(ip_network(block) for block in blocks.split("+")) if blocks else _itself(host)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{entry!r} is no host, nor host:port, nor host=network: {error}") from error
    if not host or parts.path or parts.query or parts.fragment or "@" in parts.netloc or "*" in host.removeprefix("*."):
        raise ValueError(f"{entry!r} is no host, nor host:port, nor host=network")
    return Place(parts.scheme, host, port, networks)


def _itself(host: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return (ip_network(ip_address(host)),)
    except ValueError:
        return ()


def key_address(url: str, places: Sequence[Place]) -> KeyAddress:
    """Where this is. Raises ValueError with a sentence, where it is nowhere or not on the list."""
    # A browser takes a backslash for "/": the host would end before it, and be another than is looked up here.
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError(f"must be a URL of up to {LONGEST_URL} characters without spaces")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError as error:
        raise ValueError("is no URL") from error
    if parts.scheme not in _PORTS or not host:
        raise ValueError("must begin with https:// and a host")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("must have no user, password or fragment")
    number = _PORTS[parts.scheme] if port is None else port
    place = next((each for each in places if each.holds(parts.scheme, host, number)), None)
    if place is None:
        raise ValueError(
            f"keys may not be fetched from {parts.scheme}://{host}:{number}: ask the operators of this service to list it"
        )
    return KeyAddress(host, number, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), place)
