"""What stands sealed in a row: with the control plane's secret key, for one purpose.

That key is replaced now and then. What an earlier one has sealed is opened as long as it is named
(`Environment.accepted_secret_keys`), and sealed anew meanwhile by whoever keeps it.
"""

from __future__ import annotations

import os

from django.conf import settings

from quota.contracts.sealing import NONCE_BYTES, opened_by_any, sealed, unsealed


def sealed_here(text: bytes, purpose: str) -> bytes:
    """For a row."""
    return sealed(text, secret=settings.SECRET_KEY, purpose=purpose, nonce=os.urandom(NONCE_BYTES))


def opened_here(data: bytes, purpose: str) -> bytes:
    """What stands in a row. Raises ValueError: no secret key that is known has sealed it."""
    return opened_by_any(data, secrets=(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS), purpose=purpose)


def sealed_anew(data: bytes, purpose: str) -> bytes | None:
    """What an earlier secret key has sealed, sealed with the present one; None: it is already. Raises ValueError."""
    try:
        unsealed(data, secret=settings.SECRET_KEY, purpose=purpose)
    except ValueError:
        return sealed_here(opened_here(data, purpose), purpose)
    return None
