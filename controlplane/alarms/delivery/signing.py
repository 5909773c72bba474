"""The signature of a webhook, as Standard Webhooks 1.0 has it, so that receivers can verify it with a library. Pure.

::

    webhook-id: dlv-8zk2m4x0q1ab                 the message's; the same at every attempt
    webhook-timestamp: 1763712063                of this attempt, in seconds since 1970
    webhook-signature: v1,K5oZfzN95Z9UVu1EsfQm…  one or, while the secret is being replaced, two, with a space between

A signature is base64 of HMAC-SHA256 over ``<id>.<timestamp>.<body>``. A secret is ``whsec_`` and the base64 of its key. Receivers
compare in constant time, refuse a timestamp that is minutes away, and take an id once.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "whsec_"
KEY_BYTES = 32


def secret_text(key: bytes) -> str:
    """As its receiver is shown it, once."""
    return PREFIX + base64.b64encode(key).decode()


def signature(key: bytes, *, message_id: str, timestamp: int, body: bytes) -> str:
    """By one key."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(keys: Sequence[bytes], *, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """What a message is sent with; the present key first."""
    found = (signature(key, message_id=message_id, timestamp=timestamp, body=body) for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(found),
    }
