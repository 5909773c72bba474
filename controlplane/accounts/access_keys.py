"""Access keys: a SecretId that is sent and a SecretKey that signs, for APIs where the secret itself never travels. Pure.

Whoever verifies a signature needs the secret, so that a hash will not do as it does for API keys. It is not stored either:
it is derived from the SecretId with a key of the installation that stands outside the database (docs/decisions/0020)::

    SecretKey = base64url(HMAC-SHA256(installation key, "sluice access key 1" 0x00 SecretId))

`access_key_secret` of the secrets file holds one installation key, or several separated by spaces: the first makes new access
keys, the others still verify old ones. A row keeps the fingerprint of the one that made it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING

from controlplane.core import ids

if TYPE_CHECKING:
    from collections.abc import Sequence

LETTERS = 24
LEAST_INSTALLATION_KEY = 32
"""Characters; `secrets.token_urlsafe(32)` has 43."""
_SECRET_ID = re.compile(rf"slak[a-z0-9]{{{LETTERS}}}")
_PURPOSE = b"sluice access key 1\0"
_FINGERPRINT = b"sluice access key fingerprint\0"


def secret_id(source: ids.RandomSource) -> str:
    """Such as ``slak8zk2m4x0q1ab8zk2m4x0q1ab``."""
    return "slak" + ids.letters(source, LETTERS)


def is_secret_id(text: str) -> bool:
    """Whether a row can have it at all."""
    return _SECRET_ID.fullmatch(text) is not None


def secret_of(installation_key: str, identity: str) -> str:
    """The SecretKey that belongs to a SecretId: 43 characters."""
    digest = hmac.new(installation_key.encode(), _PURPOSE + identity.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def fingerprint(installation_key: str) -> str:
    """Tells installation keys apart, and nothing about them."""
    return hashlib.sha256(_FINGERPRINT + installation_key.encode()).hexdigest()[:16]


def installation_keys(text: str | None) -> Sequence[str]:
    """Those of the secrets file. One too short to be a secret is left out: it would be guessed."""
    return [key for key in (text or "").split() if len(key) >= LEAST_INSTALLATION_KEY]
