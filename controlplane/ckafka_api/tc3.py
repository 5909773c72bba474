"""TC3-HMAC-SHA256: what a request's signature is made of, and whether it is right. Pure.

Source: "Signature v3" of Tencent Cloud API 3.0, and `tencentcloud/common/abstract_client.py` of its Python SDK::

    canonical request   lines: METHOD, URI, query, "name:value" of each header, an empty one, their names, SHA-256 of the body
    string to sign      lines: TC3-HMAC-SHA256, timestamp, date/service/tc3_request, SHA-256 of the canonical request
    signing key         HMAC("tc3_request", HMAC(service, HMAC(date, "TC3" + SecretKey)))

The method says that the URI is always "/", and SDKs sign that wherever they send the request; the true path is taken as well.
Headers are signed in lower case by the method's text, and as they are by the Python SDK: both are taken.

What the signature does not hold is the action: SDKs sign `content-type` and `host`, and X-TC-Action is neither. `replay` is
what stands between a captured request and another action.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHM = "TC3-HMAC-SHA256"
SERVICE = "ckafka"
VALID_FOR_S = 300
MUST_BE_SIGNED = ("content-type", "host")
_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential=(?P<secret_id>[\w-]+)/(?P<date>\d{{4}}-\d\d-\d\d)/(?P<service>[a-z]+)/tc3_request, ?"
    r"SignedHeaders=(?P<headers>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Signature:
    """The Authorization header."""

    secret_id: str
    date: str
    service: str
    headers: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Received:
    """What of a request can be signed. `headers` by lower-case name, as they came."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    timestamp: str


def signature_of(authorization: str) -> Signature | None:
    """None: it is no such header."""
    match = _AUTHORIZATION.fullmatch(authorization)
    if match is None:
        return None
    return Signature(
        match["secret_id"], match["date"], match["service"], tuple(match["headers"].split(";")), match["signature"]
    )


def problem_of(signature: Signature, received: Received, now_s: float) -> str | None:
    """Why a request cannot be right, whatever its secret is; None: the secret decides."""
    if not (received.timestamp.isascii() and received.timestamp.isdigit() and len(received.timestamp) <= 12):
        return "X-TC-Timestamp must be the seconds since 1970"
    signed_at_s = int(received.timestamp)
    if abs(now_s - signed_at_s) > VALID_FOR_S:
        return f"the signature has expired: X-TC-Timestamp may be {VALID_FOR_S // 60} minutes from the server's clock"
    if datetime.fromtimestamp(signed_at_s, UTC).strftime("%Y-%m-%d") != signature.date:
        return "the date in Credential is not that of X-TC-Timestamp, in UTC"
    if signature.service != SERVICE:
        return f"the service in Credential must be {SERVICE}"
    missing = [name for name in MUST_BE_SIGNED if name not in signature.headers]
    if missing:
        return f"SignedHeaders must hold {' and '.join(missing)}"
    return None


def is_right(signature: Signature, received: Received, secret: str) -> bool:
    """Whether it was made with this secret, of this request. In a time that does not tell how much of it was right."""
    candidates = [
        digest_of(signature, received, secret, uri=uri, is_lowered=is_lowered)
        for uri, is_lowered in product(dict.fromkeys(("/", received.path)), (False, True))
    ]
    return any(hmac.compare_digest(each, signature.digest) for each in candidates)


def digest_of(signature: Signature, received: Received, secret: str, *, uri: str, is_lowered: bool) -> str:
    """The signature that a request should have: 64 hexadecimal digits."""
    values = {name: received.headers.get(name, "").strip() for name in signature.headers}
    headers = "".join(f"{name}:{value.lower() if is_lowered else value}\n" for name, value in values.items())
    body = hashlib.sha256(received.body).hexdigest()
    canonical = "\n".join((received.method, uri, received.query, headers, ";".join(signature.headers), body))
    scope = f"{signature.date}/{signature.service}/tc3_request"
    hashed = hashlib.sha256(canonical.encode(errors="surrogateescape")).hexdigest()
    key = b"TC3" + secret.encode()
    for part in (signature.date, signature.service, "tc3_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"{ALGORITHM}\n{received.timestamp}\n{scope}\n{hashed}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
