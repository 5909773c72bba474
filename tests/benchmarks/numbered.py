"""Records that are all different and cost little to make: a number, and a piece of random bytes that many share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import Producer

_POOL_BYTES = 2**20
_WAITS_S = 0.05


class NumberedRecords:
    """Values of so many bytes."""

    def __init__(self, size: int) -> None:
        self._size, self._pool = size, os.urandom(_POOL_BYTES)

    def value(self, number: int) -> bytes:
        """It begins with its number, and is random behind it."""
        head = number_text(number)
        start = number * 7919 % (_POOL_BYTES - self._size)
        return head + self._pool[start : start + self._size - len(head)]


def number_text(number: int) -> bytes:
    """Sixteen digits."""
    return b"%016d" % number


def produce(producer: Producer, topic: str, value: bytes, key: bytes | None, partition: int, **more: Any) -> None:
    """As soon as the producer has room."""
    while True:
        try:
            producer.produce(topic, value, key, partition, **more)
            return
        except BufferError:
            producer.poll(_WAITS_S)
