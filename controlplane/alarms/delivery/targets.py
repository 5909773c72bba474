"""What the address of a webhook may be: https, to a public address, on a port of its own kind. Pure.

An installation can name networks of its own (`SLUICE_WEBHOOK_NETWORKS`): an address within them is allowed, over http as
well. That is for development, and for receivers inside; without it the control plane connects to public addresses only,
inside TLS.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from controlplane.core.addresses import is_public, is_within

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Network, IPv6Network

    Networks = Sequence[IPv4Network | IPv6Network]

LONGEST_URL = 500
LONGEST_HOST = 253
_PORTS = {"https": 443, "http": 80}
LEAST_PORT = 1024
"""Below it only that of the scheme: mail servers and the like are nobody's receivers of webhooks."""


_INSIDE = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home.arpa", "invalid")
"""Names, and all below them, that nobody's public server has (RFC 6761, 6762, 8375): said where they are typed."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a webhook goes."""

    scheme: str
    host: str  # lower case; an IPv6 address without brackets
    port: int
    path: str  # and query

    @property
    def is_tls(self) -> bool:
        """Whether the certificate has to be the host's."""
        return self.scheme == "https"

    def allows(self, address: str, networks: Networks) -> bool:
        """Whether the host may have this address."""
        return is_within(address, networks) or (self.is_tls and is_public(address))


def networks_of(text: str) -> Networks:
    """The networks of an installation's setting, comma-separated. Raises ValueError with the one at fault."""
    return tuple(ip_network(entry.strip()) for entry in text.split(",") if entry.strip())


def target_of(url: str, networks: Networks) -> Target:
    """Where this is. Raises ValueError with a sentence."""
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"must be a URL of up to {LONGEST_URL} characters without spaces")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError as error:
        raise ValueError("is no URL") from error
    if parts.scheme not in _PORTS or not host or len(host) > LONGEST_HOST or "%" in host:
        raise ValueError("must begin with https:// and a host")
    if parts.scheme == "http" and not networks:
        raise ValueError("must begin with https://: what is sent in clear can be read on its way")
    if "@" in parts.netloc or parts.fragment:
        raise ValueError("must have no user, password or fragment")
    number = _PORTS[parts.scheme] if port is None else port
    if number != _PORTS[parts.scheme] and number < LEAST_PORT:
        raise ValueError(f"must have port {_PORTS[parts.scheme]}, or one from {LEAST_PORT} on")
    target = Target(parts.scheme, host, number, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    try:
        is_allowed = target.allows(host, networks)
    except ValueError:
        if not networks and _is_inside(host):
            raise ValueError(NOT_PUBLIC.format(host=host)) from None
        return target  # a name, whose addresses are judged when it is looked up
    if not is_allowed:
        raise ValueError(NOT_PUBLIC.format(host=host))
    return target


def _is_inside(name: str) -> bool:
    """Whether it can be no public server's. One without a dot is looked up in the service's own domain."""
    return "." not in name or any(name == each or name.endswith(f".{each}") for each in _INSIDE)


NOT_PUBLIC = "{host} has no public address"
"""Said of names that nobody has, too: what names there are inside is nobody's business."""
