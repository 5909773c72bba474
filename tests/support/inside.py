"""Certificates of a cluster's own processes, for tests: an authority of `quota.tls`, and what one proves oneself with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quota.contracts.identity import identity_of
from quota.tls.contexts import client_context
from quota.tls.material import AUTHORITIES, CERTIFICATE, COMBINED, KEY, Material, read_material
from quota.tls.store import Store

if TYPE_CHECKING:
    import ssl

    from tests.support.certificates import Issued


def read(path: str) -> bytes:
    return Path(path).read_bytes()


class Certificates:
    """The folder of an authority, which issues what it is asked for."""

    def __init__(self, folder: Path, name: str = "CA of the cluster") -> None:
        self.store = Store(folder, lambda: datetime.now(UTC))
        self.store.ensure_authority(name)

    def folder(self, name: str) -> Path:
        identity = identity_of(name)
        assert identity is not None, name
        return self.store.ensure(identity, ["127.0.0.1", "localhost"])

    def material(self, name: str) -> Material:
        return read_material(str(self.folder(name)), read)

    def context(self, name: str) -> ssl.SSLContext:
        """For who connects as this one, and looks at the host."""
        return client_context(self.material(name), checks_host=True)

    def librdkafka(self, name: str) -> dict[str, str]:
        folder = self.folder(name)
        return {
            "security.protocol": "ssl",
            "ssl.ca.location": str(folder / AUTHORITIES),
            "ssl.certificate.location": str(folder / CERTIFICATE),
            "ssl.key.location": str(folder / KEY),
        }


def put(folder: Path, issued: Issued, authorities: str) -> Path:
    """What anybody's authority has issued, as a process finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CERTIFICATE).write_text(issued.pem)
    (folder / KEY).write_text(issued.key_pem)
    (folder / COMBINED).write_text(issued.key_pem + issued.pem)
    (folder / AUTHORITIES).write_text(authorities)
    return folder
