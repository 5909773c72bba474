"""A captured request does nothing more than the first time.

TC3 has no nonce: a request may be sent again for five minutes. And what SDKs sign does not hold the action, so that a captured
DescribeInstanceAttributes would be a signed DeleteInstancePost with the same body. So:

* a signature that came with another action before is good for no change (the cache remembers; where it does not answer, only
  reading goes on, unless X-TC-Action is signed as well). But for FRESH_S: a program that describes an instance and deletes it
  within one second signs both alike, and whoever is as fast as that could hold the first request back as well;
* a change that comes again under its signature is not made again: the first answer is told (`idempotency`).

Two equal changes that a program asks for within one second have one signature, and are one change.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from redis.exceptions import RedisError

from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.ckafka_api.tc3 import VALID_FOR_S
from controlplane.idempotency import services as idempotency

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.accounts.selectors import Caller
    from controlplane.ckafka_api.tc3 import Signature

LOG = logging.getLogger(__name__)
REMEMBERED_S = 2 * VALID_FOR_S + 60
"""A clock that is five minutes ahead signs what is good for ten."""
FRESH_S = 2


def action_bind(signature: Signature, action: str, *, changes: bool, age_s: float) -> None:
    """Whether the signature is good for this action, `age_s` after it was made. Raises CkafkaError."""
    name = f"ckafka:signed:{hashlib.sha256(signature.digest.encode()).hexdigest()}"
    try:
        first = action if cache.add(name, action, timeout=REMEMBERED_S) else cache.get(name)
    except (RedisError, OSError) as error:
        LOG.warning("signatures are not remembered: the cache does not answer")
        if changes and not _holds_action(signature):
            raise CkafkaError(Code.UNAVAILABLE, "Changes cannot be taken at the moment; try again.") from error
        return
    if changes and first != action and abs(age_s) > FRESH_S and not _holds_action(signature):
        raise CkafkaError(Code.TOO_MANY_REQUESTS, "This signature was used for another action: sign the request anew.")


def _holds_action(signature: Signature) -> bool:
    return "x-tc-action" in signature.headers


def once(caller: Caller, signature: Signature, action: str, body: bytes, change: Callable[[], Any]) -> Any:
    """What `change` gives; to a repetition, what it gave. Raises what it raises, Conflict, ConcurrentChange."""
    told, _ = idempotency.call_once(
        caller=caller,
        key=idempotency.key_digest(f"tc3:{signature.digest}"),
        request=idempotency.request_digest("POST", f"/compat/ckafka#{action}", body),
        change=lambda: json.dumps(change()),
    )
    return json.loads(told)
