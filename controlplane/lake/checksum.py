"""The checksum of the records of a partition, by which anybody can compare a table with its topic. Pure.

Of one record: the first 8 bytes of SHA-256, as an unsigned big-endian number, over

    partition   4 bytes, big-endian
    offset      8 bytes, big-endian
    timestamp   8 bytes, big-endian, two's complement: milliseconds as in the record
    key         length in 4 bytes, big-endian, and the bytes; the length of a null is ffffffff, without bytes
    value       in the same way
    headers     their number in 4 bytes, and of each in its order the name (UTF-8) and the value, as key and value are

Of many records: the sum of theirs modulo 2^64. So their order does not matter, parts can be added up, and one that is
missing, doubled or altered shows; a sum rather than XOR, in which two of a kind would vanish. Written with 16 hexadecimal
digits. `columns` computes the same in Spark; a test compares the two.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

MODULUS = 2**64
NULL = b"\xff\xff\xff\xff"


@dataclass(frozen=True, slots=True)
class Total:
    """Of some records of one partition."""

    rows: int = 0
    bytes: int = 0  # of keys and values
    checksum: int = 0

    def __add__(self, other: Total) -> Total:
        return Total(self.rows + other.rows, self.bytes + other.bytes, (self.checksum + other.checksum) % MODULUS)


def record_bytes(
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> bytes:
    """What is hashed of a record."""
    parts = [
        partition.to_bytes(4, "big"), offset.to_bytes(8, "big"), timestamp_ms.to_bytes(8, "big", signed=True),
        _sized(key), _sized(value), len(headers).to_bytes(4, "big"),
    ]  # fmt: skip
    for name, content in headers:
        parts += [_sized(name.encode()), _sized(content)]
    return b"".join(parts)


def record_total(
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Total:
    """Of one record."""
    hashed = hashlib.sha256(record_bytes(partition, offset, timestamp_ms, key, value, headers)).digest()
    return Total(1, len(key or b"") + len(value or b""), int.from_bytes(hashed[:8], "big"))


def _sized(content: bytes | None) -> bytes:
    return NULL if content is None else len(content).to_bytes(4, "big") + content
