"""Which peers may say whose connection it is: the load balancers that `broker.toml` names (`proxy_protocol.peers`).

A header is believed where a route asks for one and a peer of this list says it; nobody is on the list who is not named.
"""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.network.proxy_header import MOST_HEADER_BYTES, ProxyHeader, parse_proxy_header
from dataplane.tenancy.whitelist import Whitelist

WITHIN_S = 5.0
"""The specification's least is 3: one lost packet, sent again."""


class Proxies:
    """PROXY headers of these peers (`doors.Preface`)."""

    most_bytes = MOST_HEADER_BYTES
    within_s = WITHIN_S

    def __init__(self, peers: Iterable[str]) -> None:
        self._peers = Whitelist(peers)

    def admits(self, peer: str) -> bool:
        """Whether a header from this address is believed."""
        return self._peers.allows(peer)

    def read(self, data: bytes) -> ProxyHeader | None:
        """What `data` begins with. Raises ProxyHeaderError."""
        return parse_proxy_header(data)


NO_PROXIES = Proxies(())
