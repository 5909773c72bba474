"""The certificates of an instance's routes, at ``/sluice/certificates/<id>``.

::

    {"version": 3, "items": [{"route": "public", "chain": "<PEM>", "key": "<base64>", "client_ca": "<PEM>"}]}

The control plane writes it by compare-and-set; `version` counts these writes. An item with "route" empty is for every route
that has none of its own. "key" is the private key, sealed with what is made of the cluster's secret (`quota.contracts.sealing`),
for this instance and route: whoever reads ZooKeeper alone has no key, and a node copied elsewhere is of no use. Either of
"chain" with "key" and "client_ca" may be empty: a route takes from the other item what its own does not say.

A missing node is no certificates. Without one, or with one that is not legible, routes that want TLS are not open; others are.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EVERY_ROUTE = ""
LARGEST_CERTIFICATES = 900_000
"""Bytes of the document: it is a node of ZooKeeper."""
LARGEST_PEM = 64 * 2**10
"""Bytes of one chain, or of one bundle of CAs."""


@dataclass(frozen=True, slots=True)
class RouteCertificate:
    """What one route shows its clients, and whose certificates it takes of them."""

    route: str  # its id; empty: of every route
    chain: str = ""  # PEM, the route's own certificate first
    key: bytes = b""  # sealed
    client_ca: str = ""  # PEM

    def document(self) -> dict[str, str]:
        return {
            "route": self.route,
            "chain": self.chain,
            "key": base64.b64encode(self.key).decode(),
            "client_ca": self.client_ca,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RouteCertificate:
        """Raises KeyError, TypeError, ValueError."""
        route, chain, client_ca = document["route"], document["chain"], document["client_ca"]
        if not isinstance(route, str) or not isinstance(chain, str) or not isinstance(client_ca, str):
            raise TypeError("route, chain and client_ca are texts")
        return cls(route, chain, base64.b64decode(document["key"], validate=True), client_ca)


@dataclass(frozen=True, slots=True)
class CertificateSet:
    """All certificates of an instance."""

    version: int = 0
    items: tuple[RouteCertificate, ...] = ()

    def of(self, route: str) -> RouteCertificate:
        """What holds for a route, which may be nothing; its chain and key say `route` or `EVERY_ROUTE` by `sealed_for`."""
        return next((item for item in self.items if item.route == route), RouteCertificate(route))

    def chain_of(self, route: str) -> RouteCertificate | None:
        """The item whose chain and key a route shows; None: it has none."""
        return next((item for item in (self.of(route), self.of(EVERY_ROUTE)) if item.chain and item.key), None)

    def client_ca_of(self, route: str) -> str:
        """Whose certificates a route takes of its clients; empty: of nobody."""
        return self.of(route).client_ca or self.of(EVERY_ROUTE).client_ca

    def changed(self, items: Sequence[RouteCertificate]) -> CertificateSet:
        """What to write in place of this one."""
        return CertificateSet(self.version + 1, tuple(sorted(items, key=lambda item: item.route)))

    def to_json(self) -> bytes:
        """The document of their node."""
        document = {"version": self.version, "items": [item.document() for item in self.items]}
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> CertificateSet:
        """Raises KeyError, TypeError, ValueError."""
        version = document["version"]
        if type(version) is not int:
            raise TypeError("version is a whole number")
        return cls(version, tuple(RouteCertificate.from_document(item) for item in document["items"]))

    @classmethod
    def from_json(cls, data: bytes | None) -> CertificateSet:
        """Those of a node; None: there is none. Raises ValueError."""
        if data is None:
            return cls()
        try:
            return cls.from_document(json.loads(data))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"its certificates are not legible: {type(error).__name__}: {error}") from error


def certificates_problem(items: Sequence[RouteCertificate]) -> str | None:
    """Why these cannot be an instance's, in a sentence; None: they can."""
    if any(max(len(item.chain), len(item.client_ca), len(item.key)) > LARGEST_PEM for item in items):
        return f"a chain, a key and a bundle of CAs may take {LARGEST_PEM} bytes each"
    size = len(CertificateSet(2**63, tuple(items)).to_json())
    return (
        f"the certificates of an instance may take {LARGEST_CERTIFICATES} bytes, not {size}"
        if size > LARGEST_CERTIFICATES
        else None
    )
