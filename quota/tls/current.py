"""What a process's TLS is made with now: read at the start, and again when its files have changed (`material`)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from quota.contracts.identity import Identity
from quota.tls.contexts import client_context, server_context
from quota.tls.material import Material, Read, read_material
from quota.tls.shown import DEFAULT_RULES, Own, Rules, own_certificate

WARN_BEFORE = timedelta(days=14)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Made:
    """Of one set of files. Replaced as a whole, so that nobody sees a part of it."""

    material: Material
    own: Own
    client: ssl.SSLContext  # looks at no host name: whose a certificate is has to be asked (`shown.refusal`)
    server: ssl.SSLContext  # whoever shows no certificate is refused
    open_server: ssl.SSLContext  # who shows one has to show a good one, and nobody need


class Current:
    """See the file's text. `expected`: whose the certificate has to be. Raises OSError, ValueError: not usable."""

    def __init__(self, folder: str, expected: Identity, read: Read, rules: Rules = DEFAULT_RULES) -> None:
        self._folder, self._expected, self._read, self.rules = folder, expected, read, rules
        self._said = ""  # of files that cannot be used
        self._warned: datetime | None = None
        self.made = self._made(read_material(folder, read))

    def look(self, now_ms: int) -> list[str]:
        """Read again what has changed; what an operator has to know of it, in sentences. It may take some milliseconds."""
        return [*self._look_again(), *self._warn(datetime.fromtimestamp(now_ms / 1000, UTC))]

    def _look_again(self) -> Iterator[str]:
        try:
            material = read_material(self._folder, self._read)
            if material != self.made.material:
                self.made = self._made(material)
                yield f"{self._folder} is read again: the certificate is good until {self.made.own.not_after:%Y-%m-%d %H:%M}"
            self._said = ""
        except (OSError, ValueError) as error:
            said, self._said = self._said, f"{self._folder}: {error}; what was read before stays in use"
            if said != self._said:
                yield self._said

    def _warn(self, now: datetime) -> Iterator[str]:
        not_after = self.made.own.not_after
        if not_after - now < WARN_BEFORE and (self._warned is None or now - self._warned >= _DAY):
            self._warned = now
            yield f"WARNING: the certificate in {self._folder} ends on {not_after:%Y-%m-%d %H:%M}: renew it"

    def _made(self, material: Material) -> Made:
        own = own_certificate(material.chain, self.rules)
        if own.identity != self._expected:
            raise ValueError(f"the certificate is {own.identity.name}'s, and this is {self._expected.name}")
        return Made(
            material,
            own,
            client_context(material, checks_host=False),
            server_context(material),
            server_context(material, requires_client=False),
        )
