"""Secrets of webhooks, sealed in their rows with the control plane's secret key, as private keys of certificates are.

When that key is replaced, `upkeep.seal_anew` seals them anew.
"""

from __future__ import annotations

from controlplane import sealing
from controlplane.core.errors import Unavailable

_LOST = "the secret of this webhook cannot be opened any more: make another one"


def sealed_here(key: bytes, receiver_id: str) -> bytes:
    """For a row."""
    return sealing.sealed_here(key, _purpose(receiver_id))


def opened_here(data: bytes, receiver_id: str) -> bytes:
    """What stands in a row. Raises Unavailable: no secret key that is known has sealed it."""
    try:
        return sealing.opened_here(data, _purpose(receiver_id))
    except ValueError as error:
        raise Unavailable(_LOST) from error


def sealed_anew(data: bytes, receiver_id: str) -> bytes | None:
    """What an earlier secret key has sealed, sealed with the present one; None: it is already. Raises Unavailable."""
    try:
        return sealing.sealed_anew(data, _purpose(receiver_id))
    except ValueError as error:
        raise Unavailable(_LOST) from error


def _purpose(receiver_id: str) -> str:
    return f"sluice webhook {receiver_id}"
