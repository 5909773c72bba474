"""The files by which one process of the cluster proves who it is, and knows the others.

A folder holds them under the names that Kubernetes' secrets and cert-manager give them, so that one may be mounted as it is::

    tls.crt     the process's certificate, and behind it those between it and the authority; PEM
    tls.key     its private key, PEM, not encrypted
    ca.crt      the authorities whose certificates are believed; several while one takes the place of another

They are read again when they change: new connections have the new ones, and connections that are open stay. While they cannot
be used (a key that is not the certificate's: the folder is being written) the ones before stay in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

CERTIFICATE, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
COMBINED = "tls-combined.pem"
"""Key and certificate in one file, which Java wants; nothing here reads it."""
LOOK_EVERY_S = 5.0
"""Whether they have changed."""

Read = Callable[[str], bytes]
"""A whole file, by its path. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Material:
    """What was in the files, as text."""

    chain: str
    key: str = field(repr=False)
    authorities: str


def read_material(folder: str, read: Read) -> Material:
    """Raises OSError, ValueError: a file is missing, or no text."""
    chain, key, authorities = (read(f"{folder}/{name}").decode() for name in (CERTIFICATE, KEY, AUTHORITIES))
    return Material(chain, key, authorities)
