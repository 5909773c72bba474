"""The keys that seal what stands in rows. Pure, but for the nonces.

The file of keys has one a line: 32 random bytes in base64url, 43 characters. The first seals, each of them opens, so that one is
replaced by writing another before it. Empty lines say nothing, nor do those that begin with ``#``.

A sealed text:

=========  =============================================================================================================
1 byte     2. Sealed texts of releases before, which Django's secret key has sealed, begin with 1 (`fields`)
8 bytes    which key it was: the beginning of a SHA-256 of it, which tells nothing about it
the rest   what `quota.contracts.sealing` makes: AES-256-GCM with a key that HKDF derives of ours for one purpose. The purpose
           is authenticated as well, so that the text is good for this purpose alone
=========  =============================================================================================================
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from dataclasses import dataclass, field

from quota.contracts import sealing

VERSION, VERSION_BEFORE = b"\x02", b"\x01"
NAME_BYTES = 8
_HEAD = len(VERSION) + NAME_BYTES
_LEAST = 1 + sealing.NONCE_BYTES + 16
"""Bytes of an empty text that is sealed: version, nonce, tag."""
_KEY = re.compile(r"[A-Za-z0-9_-]{43}=?")
_NAMING = b"sluice encryption key\0"


class Unreadable(ValueError):  # noqa: N818  # reads as what it is
    """A sealed text that no key here opens: of another key, for another row, or changed."""


class KeysProblem(Unreadable):
    """There are no keys to seal or open with. The text says why, and holds no key."""


@dataclass(frozen=True, slots=True)
class Key:
    """One of them."""

    text: str = field(repr=False)
    name: bytes  # 8 bytes, as in what it seals

    @classmethod
    def of(cls, text: str) -> Key:
        """Of a line. Raises KeysProblem."""
        if not _KEY.fullmatch(text):
            raise KeysProblem("a key is 43 characters of base64url, as `manage.py secrets draw` prints it")
        text = text.rstrip("=")
        return cls(text, hashlib.sha256(_NAMING + text.encode()).digest()[:NAME_BYTES])


@dataclass(frozen=True, slots=True)
class Keyring:
    """The first seals, each of them opens."""

    keys: tuple[Key, ...]

    @classmethod
    def parse(cls, text: str) -> Keyring:
        """What a file of keys says. Raises KeysProblem."""
        keys = []
        for number, line in enumerate(text.splitlines(), start=1):
            said = line.strip()
            if said and not said.startswith("#"):
                try:
                    keys.append(Key.of(said))
                except KeysProblem as problem:
                    raise KeysProblem(f"line {number}: {problem}") from None
        if not keys:
            raise KeysProblem("it holds no key")
        return cls(tuple(keys))

    def sealed(self, text: bytes, purpose: str) -> bytes:
        """With the first key."""
        key = self.keys[0]
        nonce = os.urandom(sealing.NONCE_BYTES)
        return VERSION + key.name + sealing.sealed(text, secret=key.text, purpose=purpose, nonce=nonce)

    def opened(self, data: bytes, purpose: str) -> bytes:
        """What was sealed for this purpose, with whichever key it was. Raises Unreadable."""
        name = key_name(data)
        if name is None:
            raise Unreadable("not sealed")
        for key in self.keys:
            if key.name == name:
                try:
                    return sealing.unsealed(data[_HEAD:], secret=key.text, purpose=purpose)
                except ValueError:
                    raise Unreadable("sealed for another row, or changed") from None
        raise Unreadable(f"sealed with the key {name.hex()}, which is not among the keys")

    def is_newest(self, data: bytes) -> bool:
        """Whether the first key has sealed this."""
        return key_name(data) == self.keys[0].name


def key_name(data: bytes) -> bytes | None:
    """The name of the key that has sealed this; None: none of ours."""
    return data[1:_HEAD] if data[:1] == VERSION and len(data) >= _HEAD + _LEAST else None


def is_of_before(data: bytes) -> bool:
    """Whether it looks as if Django's secret key had sealed it, in a release before."""
    return data[:1] == VERSION_BEFORE and len(data) >= _LEAST


def drawn() -> str:
    """A new key, as a line of the file."""
    return secrets.token_urlsafe(32)
