"""Addresses that are read from ZooKeeper are looked at before anything connects to them.

ZooKeeper is where processes find each other, and what stands there is what somebody has written. So an address is a host and a
port that one can connect to, over TCP or HTTP and in no other scheme, and never where no process of a cluster is: link-local
addresses (there clouds answer who a machine is, and with which rights), multicast, broadcast, and "any address".
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from quota.contracts.instance import ContractError, address_text, parse_address

HIGHEST_PORT = 65_535
_HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_][A-Za-z0-9_-]{0,62}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?")
_A_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)\.?")


def checked(host: object, port: object) -> tuple[str, int]:
    """Host and port as they are. Raises ContractError."""
    if not isinstance(host, str) or type(port) is not int or not 1 <= port <= HIGHEST_PORT:
        raise ContractError(f"{host!r} and {port!r} are no host and no port from 1 to {HIGHEST_PORT}")
    try:
        address = ip_address(host)
    except ValueError:
        # Resolvers take other spellings of addresses (2852039166, 0xa9.254.43518): their last part is a number, no name's is.
        if not _HOST_NAME.fullmatch(host) or _A_NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
            raise ContractError(f"{host!r} is no host") from None
        return host, port
    mapped = getattr(address, "ipv4_mapped", None)
    for each in (address, *((mapped,) if mapped else ())):
        if each.is_link_local or each.is_multicast or each.is_unspecified or str(each) == "255.255.255.255":
            raise ContractError(f"no process of a cluster is at {host}")
    return host, port


def checked_address(text: object) -> tuple[str, int]:
    """Of ``host:port``. Raises ContractError."""
    if not isinstance(text, str):
        raise ContractError(f"{text!r} is no address")
    return checked(*parse_address(text))


def checked_http(text: object) -> str:
    """The URL of a server, ``http://host:port`` or ``https://host:port``, without a slash behind it. Raises ContractError."""
    if not isinstance(text, str):
        raise ContractError(f"{text!r} is no URL")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ContractError(f"{text!r} is no URL: {error}") from error
    host, number = checked(parts.hostname, port)
    url = f"{parts.scheme}://{address_text((host, number))}"
    if parts.scheme not in ("http", "https") or url != text.removesuffix("/").lower():
        raise ContractError(f"{text!r} is not the URL of a server")
    return url
