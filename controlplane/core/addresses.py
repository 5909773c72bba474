"""Which addresses are public: the one judgement for every connection that a tenant may have us make. Pure.

A tenant names a server (of keys, of webhooks), and the control plane, which stands inside the network, connects to it. What is
not public may be a metadata service, a broker or a database: loopback, private, link-local, shared (CGNAT), multicast, reserved
and documentation addresses are refused. So is an IPv6 address that stands for an IPv4 one (compatible, NAT64, 6to4, Teredo,
ISATAP): where it leads is decided by a router that we do not know. An IPv4-mapped one is judged as the IPv4 address.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Network = IPv4Network | IPv6Network

_UNICAST = IPv6Network("2000::/3")
"""All of IPv6 that is given out as public; what is outside (site-local, unique local, NAT64's own prefix) is not."""
_NOT_PUBLIC = (
    IPv6Network("2001::/23"),  # protocols: Teredo, ORCHID, benchmarks
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4
    IPv6Network("3fff::/20"),  # documentation
)
_NOT_PUBLIC_4 = (
    IPv4Network("192.0.0.0/24"),  # protocols
    IPv4Network("192.88.99.0/24"),  # the relays of 6to4
)
_OWN: tuple[IPv4Network | IPv6Network, ...] = (
    *map(
        IPv4Network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10")
    ),
    *map(IPv6Network, ("::1/128", "fc00::/7", "fe80::/10")),
)
"""Loopback, private, link-local and shared addresses."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""The first half of an interface identifier whose second half is an IPv4 address."""


def address_of(text: str) -> IPv4Address | IPv6Address:
    """What a look-up gave, without its zone; an IPv4-mapped address as the IPv4 address that it is. Raises ValueError."""
    found = ip_address(text.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def is_public(text: str) -> bool:
    """Whether anybody on the internet may have it. Raises ValueError: it is no address."""
    found = address_of(text)
    if found.is_multicast or found.is_reserved or not found.is_global:
        return False
    if isinstance(found, IPv4Address):
        return not any(found in network for network in _NOT_PUBLIC_4)
    if found not in _UNICAST or any(found in network for network in _NOT_PUBLIC):
        return False
    return (int(found) >> 32) & 0xFFFFFFFF not in _ISATAP


def is_own(text: str) -> bool:
    """Whether only whoever is on the same network comes from there. Raises ValueError: it is no address.

    Not the opposite of `is_public`: an address that stands for an IPv4 one (NAT64, 6to4, Teredo) is neither, and anybody's.
    """
    return is_within(text, _OWN)


def is_within(text: str, networks: Iterable[Network]) -> bool:
    """Whether one of these networks holds it. Raises ValueError: it is no address."""
    found = address_of(text)
    return any(found in network for network in networks if network.version == found.version)
