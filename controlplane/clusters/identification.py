"""How this process proves to a cluster's brokers and masters who it is: by its certificate, or by its credential in plaintext.

``SLUICE_CLUSTER_SECURITY`` says which (`quota.contracts.internal_security`), ``SLUICE_CLUSTER_TLS`` where the certificate is
(`quota.tls.material`). Both are looked at each time: what has been renewed is used by the next connection.

At the other end has to be the host that was meant: its certificate names it, and only those of brokers and masters may be shown
by who is connected to.
"""

from __future__ import annotations

import functools
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from controlplane.core.errors import ClusterUnavailable
from quota.contracts.identity import CONTROL_PLANE
from quota.contracts.internal_security import InternalSecurity
from quota.tls.contexts import client_context
from quota.tls.material import AUTHORITIES, CERTIFICATE, KEY, Material, read_material

USER = CONTROL_PLANE.name


@dataclass(frozen=True, slots=True)
class Identification:
    """What a connection to a broker begins with. Equal ones are as good as each other."""

    credential: str = field(default="", repr=False)
    folder: Path | None = None  # None: in plaintext, by the credential
    material: Material | None = field(default=None, repr=False)  # what was in it

    def of_librdkafka(self) -> dict[str, str | int | float | bool]:
        """Its settings. It reads the files when a client is made."""
        if self.folder is None:
            return {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": USER,
                "sasl.password": self.credential,
            }
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / AUTHORITIES),
            "ssl.certificate.location": str(self.folder / CERTIFICATE),
            "ssl.key.location": str(self.folder / KEY),
        }

    def connected(self, address: tuple[str, int], *, timeout_s: float) -> socket.socket:
        """A connection to a broker; over TLS it is known there whose it is. Raises OSError, ClusterUnavailable."""
        connection = socket.create_connection(address, timeout=timeout_s)
        if self.material is None:
            return connection
        try:
            return context_of(self.material).wrap_socket(connection, server_hostname=address[0])
        except BaseException:
            connection.close()
            raise


def to_brokers() -> Identification:
    """This process's. Raises ClusterUnavailable: it has nothing to prove itself with."""
    if settings.ENVIRONMENT.cluster_security.connects_with_tls:
        return Identification(folder=_folder(), material=material())
    credential = settings.ENVIRONMENT.keys().own(CONTROL_PLANE)
    if credential is None:
        raise ClusterUnavailable("this process has no credential for the cluster")
    return Identification(credential)


def material() -> Material | None:
    """Its certificate and whom it believes, read now; None: it speaks plaintext only. Raises ClusterUnavailable."""
    if settings.ENVIRONMENT.cluster_security is InternalSecurity.SASL_PLAINTEXT:
        return None
    try:
        return read_material(str(_folder()), lambda path: Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ClusterUnavailable("this process's certificate for the cluster cannot be read") from error


@functools.lru_cache(maxsize=2)
def context_of(found: Material) -> ssl.SSLContext:
    """For connections to brokers and masters, whose hosts are looked at. Raises ClusterUnavailable."""
    try:
        return client_context(found, checks_host=True)
    except ValueError as error:
        raise ClusterUnavailable("this process's certificate for the cluster cannot be used") from error


def _folder() -> Path:
    folder: Path | None = settings.ENVIRONMENT.cluster_tls
    if folder is None:
        raise ClusterUnavailable("SLUICE_CLUSTER_TLS does not say where this process's certificate is")
    return folder
