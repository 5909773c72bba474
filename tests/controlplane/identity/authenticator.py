"""An authenticator of our own: it makes passkeys and answers challenges, and does wrong whatever a test has it do wrong."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor
from fido2.cose import ES256
from fido2.utils import websafe_decode, websafe_encode

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass
class Authenticator:
    """One passkey, once `make` was called."""

    origin: str = "https://sluice.example.com"
    site: str = "sluice.example.com"
    count: int = 0
    counts: bool = True
    flags: int = PRESENT | VERIFIED
    cross_origin: bool = False
    id: bytes = field(default_factory=lambda: os.urandom(32))
    handle: str = ""
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def make(self, options: dict[str, Any]) -> str:
        self.handle = options["user"]["id"]
        key = cbor.encode(dict(ES256.from_cryptography_key(self.key.public_key())))
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + key
        data = self._data(self.flags | ATTESTED) + attested
        attestation = cbor.encode({"fmt": "none", "authData": data, "attStmt": {}})
        client = self._client("webauthn.create", options["challenge"])
        return self._answer({"clientDataJSON": client, "attestationObject": attestation})

    def show(self, options: dict[str, Any], *, handle: str | None = None, kind: str = "webauthn.get") -> str:
        if self.counts:
            self.count += 1
        data, client = self._data(self.flags), self._client(kind, options["challenge"])
        signature = self.key.sign(data + sha256(client).digest(), ec.ECDSA(SHA256()))
        response = {"clientDataJSON": client, "authenticatorData": data, "signature": signature}
        shown = self.handle if handle is None else handle
        if shown:
            response["userHandle"] = websafe_decode(shown)
        return self._answer(response)

    def _data(self, flags: int) -> bytes:
        return sha256(self.site.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, challenge: str) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": self.cross_origin}
        return json.dumps(said).encode()

    def _answer(self, response: dict[str, bytes]) -> str:
        own = websafe_encode(self.id)
        shown = {name: websafe_encode(value) for name, value in response.items()}
        return json.dumps({"id": own, "rawId": own, "type": "public-key", "response": shown})
