"""Blocks of addresses, as whitelists and the hosts of ACLs have them: ``10.0.0.0/8``, or one address alone.

A zone (``fe80::1%eth0``) is refused. It is an interface of one machine, and its name means something there only: Python takes
such a block and leaves the zone out when it compares, so the rule would be about that address wherever it is.

What was stored before zones were refused is read all the same, as the address that it always was when it was compared: one
such line must not make everything else that stands in its document illegible, which would lock everybody out.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

ZONE = "%"
NO_ZONES = "an address with a zone (%) cannot be matched: write it without"


def network_of(text: str, *, strict: bool = False) -> IPv4Network | IPv6Network:
    """The block; `strict`: no bits are set beyond its prefix. Raises ValueError, TypeError."""
    if ZONE in text:
        raise ValueError(f"{text!r}: {NO_ZONES}")
    return ip_network(text, strict=strict)


def without_zone(text: str) -> str:
    """A stored block as it is meant: ``fe80::1%eth0`` is ``fe80::1``, and ``fe80::%1/64`` is ``fe80::/64``."""
    address, slash, bits = text.partition("/")
    return address.partition(ZONE)[0] + slash + bits if ZONE in address else text
