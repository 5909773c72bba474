"""What is secret of receivers: what signs a webhook's messages, the path of its address, the code that confirms one of mail."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from controlplane.alarms.models import Receiver
from controlplane.core import sealed
from controlplane.core.errors import Unavailable

if TYPE_CHECKING:
    from datetime import datetime


def address_sealed(receiver: Receiver, url: str) -> None:
    """Into a row, which shows from then on where it is and no more. Raises Unavailable."""
    receiver.sealed_address = sealed.sealed(Receiver, "sealed_address", url.encode(), id=receiver.pk)
    receiver.address = public_part(url)


def code_sealed(receiver: Receiver, code: str) -> None:
    """Into a row; only messages of this kind go there until it was given back. Raises Unavailable."""
    receiver.sealed_code = sealed.sealed(Receiver, "sealed_code", code.encode(), id=receiver.pk)


def code_of(receiver: Receiver) -> str:
    """What confirms the address; empty: it is. Raises Unavailable."""
    lost = Unavailable("the code that confirms this address cannot be read any more: make another receiver")
    return sealed.opened(receiver, "sealed_code", lost).decode()


def secret_sealed(receiver: Receiver, key: bytes) -> None:
    """Into a row. Raises Unavailable."""
    receiver.secret = sealed.sealed(Receiver, "secret", key, id=receiver.pk)


def secret_replaced(receiver: Receiver, key: bytes, *, until: datetime) -> None:
    """Another one; the one before signs as well for a while, if it can be opened. Raises Unavailable."""
    try:
        before = _opened(receiver, "secret")
    except Unavailable:
        before = b""
    kept = sealed.sealed(Receiver, "previous_secret", before, id=receiver.pk) if before else b""
    secret_sealed(receiver, key)
    receiver.previous_secret, receiver.previous_until = kept, until if before else None


def keys_at(receiver: Receiver, now: datetime) -> tuple[bytes, ...]:
    """What signs a message now, the newest first. Raises Unavailable."""
    names = ["secret"]
    if receiver.previous_until is not None and receiver.previous_until > now:
        names.append("previous_secret")
    return tuple(_opened(receiver, name) for name in names)


def _opened(receiver: Receiver, name: str) -> bytes:
    lost = Unavailable("the secret of this webhook cannot be opened any more: make another one")
    return sealed.opened(receiver, name, lost)


def public_part(url: str) -> str:
    """Of a webhook's address, what viewers see, the audit and the row: scheme, host and port."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
