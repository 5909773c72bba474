"""How often an access key may ask for an action: the vendor's limits, counted by second in the cache that all processes share.

Where the cache does not answer, nobody is kept out: what the service can carry is guarded elsewhere.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.core.cache import cache
from redis.exceptions import RedisError

from controlplane.ckafka_api.errors import CkafkaError, Code

if TYPE_CHECKING:
    from controlplane.core.clock import Clock

LOG = logging.getLogger(__name__)
PER_S, READING_PER_S = 20, 100


def limit_of(action: str) -> int:
    """Requests a second."""
    return READING_PER_S if action.startswith("Describe") else PER_S


def request_count(*, secret_id: str, action: str, clock: Clock) -> None:
    """One more. Raises CkafkaError."""
    most = limit_of(action)
    name = f"ckafka:rate:{secret_id}:{action}:{int(clock.now().timestamp())}"
    try:
        cache.add(name, 0, timeout=5)
        counted = cache.incr(name)
    except (RedisError, OSError, ValueError):  # ValueError: the second has ended meanwhile
        LOG.warning("requests are not counted: the cache does not answer")
        return
    if counted > most:
        raise CkafkaError(Code.TOO_MANY_REQUESTS, f"{action} may be asked for {most} times a second.")
