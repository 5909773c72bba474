"""The folder of an authority: its key, and one folder for each identity, ready to be copied to its machine.

::

    authority/tls.crt tls.key     what issues now
    authority/next.crt next.key   what is going to, while one authority takes the place of another
    authority/ca.crt              whose certificates are believed: one, or both
    <identity>/tls.crt tls.key ca.crt tls-combined.pem   (`quota.tls.material`)

Replacing the authority has three steps, and between two of them everybody has to have the files of the one before:
`replace` (all believe both), `renew` (all show what the new one has issued), `forget` (nobody believes the old one).

Files have mode 0600, folders 0700. Each file is replaced as a whole. A reader may see a new certificate beside an old key for
a moment: whoever reads them looks again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from quota.contracts.identity import Identity, identity_of
from quota.tls.authority import ISSUED_FOR, Pair, authority_made, hosts_of, is_due, is_issued_by, issued
from quota.tls.material import AUTHORITIES, CERTIFICATE, COMBINED, KEY

_NEXT = "next.crt", "next.key"
_CURRENT = CERTIFICATE, KEY


class StoreError(Exception):
    """What was asked for cannot be done; the text says why."""


class Store:
    """See the file's text. `now` says the time, with its zone."""

    def __init__(self, folder: Path, now: Callable[[], datetime]) -> None:
        self._folder, self._now = folder, now
        self._authority = folder / "authority"

    def folder_of(self, identity: Identity) -> Path:
        """Where a process finds what is its own."""
        return self._folder / identity.name

    def ensure_authority(self, name: str) -> bool:
        """Make the authority unless there is one; whether it was made."""
        if (self._authority / KEY).exists():
            return False
        made = authority_made(name, self._now())
        self._write_pair(self._authority, _CURRENT, made)
        self._write(self._authority / AUTHORITIES, made.certificate)
        return True

    def issue(self, identity: Identity, hosts: Sequence[str], lasts: timedelta = ISSUED_FOR) -> Path:
        """A new certificate and key; the folder that they are in. Raises StoreError."""
        made = issued(self._issuing(), identity, hosts, self._now(), lasts)
        folder = self.folder_of(identity)
        self._write_pair(folder, _CURRENT, made)
        self._write(folder / COMBINED, made.key + made.certificate)
        self._write(folder / AUTHORITIES, self._believed())
        return folder

    def ensure(self, identity: Identity, hosts: Sequence[str], lasts: timedelta = ISSUED_FOR) -> Path:
        """What the process has, if it is good for a while and names these hosts; else it is issued anew. Raises StoreError."""
        folder = self.folder_of(identity)
        certificate = folder / CERTIFICATE
        if all((folder / name).exists() for name in (CERTIFICATE, KEY, COMBINED, AUTHORITIES)):
            text = certificate.read_text()
            is_good = not self._is_due(text) and set(hosts_of(text, identity)) >= set(hosts)
            if is_good and (folder / AUTHORITIES).read_text() == self._believed():
                return folder
        return self.issue(identity, hosts, lasts)

    def renew(self, *, everything: bool = False) -> list[Identity]:
        """Issue anew what ends soon or is the authority's before the last step; whose that is. Raises StoreError."""
        if (self._authority / _NEXT[0]).exists():
            self._write_pair(self._authority, _CURRENT, self._pair(_NEXT))
            for name in _NEXT:
                (self._authority / name).unlink()
        renewed = []
        for identity in self._known():
            text = (self.folder_of(identity) / CERTIFICATE).read_text()
            if everything or self._is_due(text):
                self.issue(identity, hosts_of(text, identity))
                renewed.append(identity)
        return renewed

    def replace(self, name: str) -> None:
        """Make another authority, and have it believed beside the one that issues. Raises StoreError."""
        if (self._authority / _NEXT[0]).exists():
            raise StoreError("another authority is on its way in already: renew, and then forget the old one")
        self._issuing()
        made = authority_made(name, self._now())
        self._write_pair(self._authority, _NEXT, made)
        self._believe(self._believed() + made.certificate)

    def forget(self) -> None:
        """Believe nobody but the authority that issues now. Raises StoreError: somebody shows what another has issued."""
        if (self._authority / _NEXT[0]).exists():
            raise StoreError("the new authority has issued nothing yet: renew first")
        issuing = self._issuing()
        others = [
            identity.name
            for identity in self._known()
            if not is_issued_by((self.folder_of(identity) / CERTIFICATE).read_text(), issuing)
        ]
        if others:
            raise StoreError(f"{', '.join(others)}: the certificate is another authority's; renew first")
        self._believe(issuing.certificate)

    # --- files --------------------------------------------------------------------------------------------------------

    def _is_due(self, certificate: str) -> bool:
        return is_due(certificate, self._now()) or not is_issued_by(certificate, self._issuing())

    def _known(self) -> Iterator[Identity]:
        for folder in sorted(self._folder.iterdir()):
            identity = identity_of(folder.name)
            if identity is not None and (folder / CERTIFICATE).exists():
                yield identity

    def _issuing(self) -> Pair:
        return self._pair(_CURRENT)

    def _pair(self, names: tuple[str, str]) -> Pair:
        try:
            certificate, key = ((self._authority / name).read_text() for name in names)
        except FileNotFoundError as error:
            raise StoreError(f"{error.filename} is missing: there is no authority in {self._folder}") from error
        return Pair(certificate, key)

    def _believed(self) -> str:
        return (self._authority / AUTHORITIES).read_text()

    def _believe(self, authorities: str) -> None:
        self._write(self._authority / AUTHORITIES, authorities)
        for identity in self._known():
            self._write(self.folder_of(identity) / AUTHORITIES, authorities)

    def _write_pair(self, folder: Path, names: tuple[str, str], pair: Pair) -> None:
        self._write(folder / names[1], pair.key)
        self._write(folder / names[0], pair.certificate)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
