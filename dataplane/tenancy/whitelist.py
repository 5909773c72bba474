"""Which client addresses a list of CIDRs lets in.

An empty list lets nobody in; everybody is ``0.0.0.0/0`` and ``::/0``, said explicitly. An IPv4 client on an IPv6 socket
(``::ffff:10.0.0.1``) is judged by its IPv4 address.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_REMEMBERED = 10_000


class Whitelist:
    """A list of networks; answers are remembered per address."""

    __slots__ = ("_answers", "_networks")

    def __init__(self, cidrs: Iterable[str]) -> None:
        self._networks = [ip_network(cidr) for cidr in cidrs]
        self._answers: dict[str, bool] = {}

    def allows(self, address: str) -> bool:
        """Whether a client's address is in one of the networks."""
        answer = self._answers.get(address)
        if answer is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            answer = self._answers[address] = self._judge(address)
        return answer

    def _judge(self, text: str) -> bool:
        address: IPv4Address | IPv6Address = ip_address(text.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks if network.version == address.version)
