"""One group of a name is made at a time: who makes a second looks whether there is one when the first is there.

A coordinator takes offsets of a group whether it is there or not, so looking and writing have to be one act. The cache that all
processes share says who is about it; where it does not answer, two that make a group in the same moment are not kept apart.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.cache import cache

from controlplane.core.errors import ConcurrentChange
from controlplane.core.kept import AWAY

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = logging.getLogger(__name__)
LONGEST_S = 90
"""Looking and writing take half a minute at most. A process that dies meanwhile keeps the name to itself for so long."""


@contextmanager
def alone(instance_id: str, name: str) -> Iterator[None]:
    """Nobody else makes a group of this name meanwhile. Raises ConcurrentChange where somebody does."""
    key, token = _key(instance_id, name), secrets.token_hex(8)
    try:
        is_mine = cache.add(key, token, timeout=LONGEST_S)
    except AWAY as error:
        LOG.warning("a group is made without looking who else makes it: %s", error)
        is_mine = True
    if not is_mine:
        raise ConcurrentChange(
            f"somebody makes the group {name} at this moment: look whether it is there, and try again if not"
        )
    try:
        yield
    finally:
        _end(key, token)


def _end(key: str, token: str) -> None:
    try:
        if cache.get(key) == token:  # after LONGEST_S it may be another's
            cache.delete(key)
    except AWAY as error:
        LOG.warning("a group of the same name has to wait: %s", error)


def _key(instance_id: str, name: str) -> str:
    """Hashed: a group's name may hold what a cache's key must not."""
    return f"group-made:{instance_id}:{hashlib.sha256(name.encode()).hexdigest()[:32]}"
