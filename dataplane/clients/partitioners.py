"""Which partition a message goes to: by its key, pure. Whoever has another rule gives a `Partitioner` of his own.

=============  ==========================================================================================================
``hash``       the documents' default: ``hash(key) % n`` with Java's ``hashCode`` of the key (text, bytes, whole number), as
               Kafka's old producer does it. Python's own ``hash`` of text is another one in every process.
``murmur2``    as Kafka's producer does it since 0.8.2, and all of its clients by now: bytes of the key, in the same partition
=============  ==========================================================================================================

The absolute value is Kafka's: the least number of all becomes 0 with ``hash``; ``murmur2`` takes off the sign bit. Without a
key partitions take turns: `RoundRobin`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C


class Partitioner(Protocol):
    """As in the documents: ``interface Partitioner<T> { int partition(T key, int numPartitions) }``."""

    def partition(self, key: Any, num_partitions: int) -> int:
        """An index below `num_partitions`. Never called without a key."""
        ...


class HashPartitioner:
    """``hash(key) % n``."""

    def partition(self, key: Any, num_partitions: int) -> int:
        return abs_as_java(java_hash(key)) % num_partitions


class Murmur2Partitioner:
    """Kafka's own since 0.8.2. Text counts as its UTF-8."""

    def partition(self, key: Any, num_partitions: int) -> int:
        data = key.encode() if isinstance(key, str) else bytes(key)
        return (murmur2(data) & 0x7FFFFFFF) % num_partitions


PARTITIONERS: Mapping[str, type] = {
    "hash": HashPartitioner,
    "murmur2": Murmur2Partitioner,
    "kafka.producer.DefaultPartitioner": HashPartitioner,
    "kafka.producer.ByteArrayPartitioner": HashPartitioner,
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": Murmur2Partitioner,
}
"""By the names that settings have."""


class RoundRobin:
    """Partitions take turns, for each topic by itself. Threads may share it."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._lock = threading.Lock()

    def next(self, topic: str, partitions: Sequence[int]) -> int:
        """One of these, of which there is at least one."""
        with self._lock:
            turn = self._turns.get(topic, 0)
            self._turns[topic] = turn + 1
        return partitions[turn % len(partitions)]


def java_hash(key: Any) -> int:
    """``hashCode`` of a String, an array of bytes, an Integer or a Long: 32 bits with a sign. Raises TypeError."""
    if isinstance(key, str):
        data = key.encode("utf-16-be", "surrogatepass")
        return _polynomial(0, [data[at] << 8 | data[at + 1] for at in range(0, len(data), 2)])
    if isinstance(key, bytes | bytearray | memoryview):
        return _polynomial(1, [byte - 256 if byte > 127 else byte for byte in bytes(key)])
    if isinstance(key, int) and -(2**63) <= key < 2**63:
        if -(2**31) <= key < 2**31:
            return key
        number = key & 0xFFFFFFFFFFFFFFFF
        return _signed((number ^ number >> 32) & _MASK)
    raise TypeError(f"a key of {type(key).__name__} needs a partitioner of its own")


def _polynomial(code: int, elements: Sequence[int]) -> int:
    for element in elements:
        code = (31 * code + element) & _MASK
    return _signed(code)


def _signed(code: int) -> int:
    return code - 2**32 if code >= 2**31 else code


def abs_as_java(code: int) -> int:
    """Kafka's `Utils.abs`: there is no positive number of 32 bits for the least one, so that is 0."""
    return 0 if code == -(2**31) else abs(code)


def murmur2(data: bytes) -> int:
    """32 bits without a sign: MurmurHash 2 with the seed that Kafka has."""
    code = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        piece = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        piece = (piece ^ piece >> 24) * _MULTIPLIER & _MASK
        code = code * _MULTIPLIER & _MASK ^ piece
    if whole < len(data):
        code = (code ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    code = (code ^ code >> 13) * _MULTIPLIER & _MASK
    return code ^ code >> 15
