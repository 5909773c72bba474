"""The client's side of SCRAM, as RFC 5802 writes it, and users to log in with: small, and apart from what is tested."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field

from quota.contracts.users import Credential, ScramMechanism, User
from quota.core.scram import derived

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
SECRET = b"a secret of the cluster's own...."


def credential(password: str, mechanism=SHA_256, salt=b"s" * 24, iterations=4096, until_ms=None) -> Credential:
    found = derived(password, mechanism=mechanism, salt=salt, iterations=iterations)
    return Credential(mechanism, salt, iterations, found.stored_key, found.server_key, until_ms)


def users(*made: User) -> dict[str, User]:
    return {user.name: user for user in made}


@dataclass
class ScramClient:
    """`first` -> the server's answer -> `final`; `is_right` is what it makes of the server's last message."""

    name: str
    password: str
    mechanism: ScramMechanism = SHA_256
    nonce: str = "fyko+d2lbbFgONRv9qkxdawL"
    header: str = "n,,"
    _auth: str = field(default="", repr=False)
    _salted: bytes = b""

    @property
    def _hash(self) -> str:
        return "sha256" if self.mechanism is SHA_256 else "sha512"

    @property
    def bare(self) -> str:
        return f"n={self.name.replace('=', '=3D').replace(',', '=2C')},r={self.nonce}"

    def first(self) -> bytes:
        return (self.header + self.bare).encode()

    def final(self, answer: bytes, **instead: str) -> bytes:
        parts = dict(part.split("=", 1) for part in answer.decode().split(","))
        self._salted = hashlib.pbkdf2_hmac(
            self._hash, self.password.encode(), base64.b64decode(parts["s"]), int(parts["i"])
        )
        client_key = hmac.digest(self._salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        binding = instead.get("c", base64.b64encode(self.header.encode()).decode())
        without = f"c={binding},r={instead.get('r', parts['r'])}"
        self._auth = f"{self.bare},{answer.decode()},{without}"
        signature = hmac.digest(stored_key, self._auth.encode(), self._hash)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        return f"{without},p={instead.get('p', proof)}".encode()

    def is_right(self, last: bytes) -> bool:
        server_key = hmac.digest(self._salted, b"Server Key", self._hash)
        return last == b"v=" + base64.b64encode(hmac.digest(server_key, self._auth.encode(), self._hash))
