"""Queues taken in turn, so that a long one does not keep the others waiting. Pure."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

T = TypeVar("T")


def in_turn(queues: Iterable[Sequence[T]]) -> Iterator[T]:
    """The first of each, then the second of each, and so on."""
    left = [iter(queue) for queue in queues]
    while left:
        remaining = []
        for queue in left:
            for first in islice(queue, 1):
                yield first
                remaining.append(queue)
        left = remaining
