"""Secrets of webhooks, sealed in their rows with the control plane's secret key, as private keys of certificates are.

That key is replaced now and then. What an earlier one has sealed is opened as long as it is named
(`Environment.accepted_secret_keys`), and sealed anew meanwhile (`upkeep.seal_anew`).
"""

from __future__ import annotations

import os

from django.conf import settings

from controlplane.core.errors import Unavailable
from quota.contracts.sealing import NONCE_BYTES, opened_by_any, sealed, unsealed


def sealed_here(key: bytes, receiver_id: str) -> bytes:
    """For a row."""
    return sealed(key, secret=settings.SECRET_KEY, purpose=_purpose(receiver_id), nonce=os.urandom(NONCE_BYTES))


def opened_here(data: bytes, receiver_id: str) -> bytes:
    """What stands in a row. Raises Unavailable: no secret key that is known has sealed it."""
    secrets = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    try:
        return opened_by_any(data, secrets=secrets, purpose=_purpose(receiver_id))
    except ValueError as error:
        raise Unavailable("the secret of this webhook cannot be opened any more: make another one") from error


def sealed_anew(data: bytes, receiver_id: str) -> bytes | None:
    """What an earlier secret key has sealed, sealed with the present one; None: it is already. Raises Unavailable."""
    try:
        unsealed(data, secret=settings.SECRET_KEY, purpose=_purpose(receiver_id))
    except ValueError:
        return sealed_here(opened_here(data, receiver_id), receiver_id)
    return None


def _purpose(receiver_id: str) -> str:
    return f"sluice webhook {receiver_id}"
