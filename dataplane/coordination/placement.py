"""Which partition of its internal topic keeps a group, or a transactional id.

Java's ``String.hashCode`` modulo the number of partitions, as every Kafka client and tool expects of the broker it is sent to.
"""

from __future__ import annotations


def partition_of(name: str, partitions: int) -> int:
    """The partition's index."""
    code = 0
    data = name.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(data), 2):
        code = (31 * code + (data[i] << 8 | data[i + 1])) & 0xFFFFFFFF
    if code >= 1 << 31:
        code -= 1 << 32
    return 0 if code == -(1 << 31) else abs(code) % partitions
