"""The cache in Redis, for a Redis that may be away: the first question waits a second for it, the others of the next two do not.

A page asks the cache up to ten times, and each question would take its second where Redis hangs. Who asks is told `RedisAway`,
one of `kept.AWAY`, as if it had been asked. That is known to all threads of a process, each of which has a client of its own.

Whoever guesses passwords is not to gain two seconds by one answer that was lost: who counts that says so (`insisting`), and asks
all the same.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAUSE_S = 2.0
"""So long a Redis that did not answer is not asked."""

_INSISTS = ContextVar("insists", default=False)


class RedisAway(RedisConnectionError):  # noqa: N818  # as Redis' own are named after what happened
    """It did not answer a moment ago, and was not asked."""


class _Away:
    """Until when it is not asked. Of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until_s = 0.0

    def ask(self, question: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Its answer. Raises RedisAway unless who asks is `insisting`, and what the question raises."""
        if monotonic() < self._until_s and not _INSISTS.get():
            raise RedisAway("it did not answer a moment ago")
        try:
            return question(*arguments, **named)
        except (RedisConnectionError, RedisTimeoutError, OSError):  # others are answers
            with self._lock:
                self._until_s = monotonic() + PAUSE_S
            raise

    def forget(self) -> None:
        """As at the start of the process."""
        self._until_s = 0.0


AWAY = _Away()


@contextmanager
def insisting() -> Iterator[None]:
    """Within it a Redis is asked that did not answer a moment ago, and its second waited: for what must not be missed."""
    before = _INSISTS.set(True)
    try:
        yield
    finally:
        _INSISTS.reset(before)


class _Careful:
    """A client of Redis each of whose methods goes through `AWAY`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        def asked(*arguments: Any, **named: Any) -> Any:
            return AWAY.ask(method, *arguments, **named)

        return asked


def _careful(servers: list[str], **options: Any) -> _Careful:
    return _Careful(RedisCacheClient(servers, **options))


class CarefulRedisCache(RedisCache):
    """Django's, with the client above."""

    def __init__(self, server: str | list[str], params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _careful  # of which Django makes one for each thread
