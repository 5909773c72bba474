"""What is kept in the cache to be spared some work: a cache that is away costs that work, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from logging import Logger

AWAY = (RedisError, OSError)
"""What a cache says that is not there."""


def kept(key: str, log: Logger, problem: str) -> Any:
    """None: nothing, or the cache is away, which is logged as `problem`."""
    try:
        return cache.get(key)
    except AWAY as error:
        log.warning("%s: %s", problem, error)
        return None


def keep(key: str, value: object, timeout_s: int, log: Logger, problem: str) -> None:
    """For so many seconds, unless the cache is away, which is logged as `problem`."""
    try:
        cache.set(key, value, timeout=timeout_s)
    except AWAY as error:
        log.warning("%s: %s", problem, error)


def is_away() -> bool:
    """Whether the cache is away, and so Redis, which is Celery's as well."""
    try:
        cache.get("health")
    except AWAY:
        return True
    return False


def counted(key: str, timeout_s: int, log: Logger, problem: str) -> int | None:
    """One more within so many seconds: how many there are. None: the cache is away, which is logged as `problem`.

    `key` is to be of one stretch of time, not longer than `timeout_s`, so that it is asked for no more when it goes.
    """
    try:
        return _one_more(key, timeout_s)
    except ValueError:  # it went between two calls
        return 1
    except AWAY as error:
        log.warning("%s: %s", problem, error)
        return None


def _one_more(key: str, timeout_s: int) -> int:
    try:
        return int(cache.incr(key))
    except ValueError:  # the first one
        cache.add(key, 0, timeout_s)
        return int(cache.incr(key))
