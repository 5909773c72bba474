"""What each instance has on this broker: bytes stored and partitions led. Kept up to date as they change.

Names that belong to the cluster itself (no instance key) are not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataplane.replication.replica.partition import Partition


class Accounting:
    """Sums over the partitions of this broker, by instance key; instances with nothing are left out."""

    def __init__(self) -> None:
        self._storage: dict[str, int] = {}
        self._leaders: dict[str, int] = {}

    def storage_by_instance(self) -> dict[str, int]:
        """Bytes of all logs here, leaders' and followers'."""
        return dict(self._storage)

    def leaders_by_instance(self) -> dict[str, int]:
        """Partitions that this broker leads."""
        return dict(self._leaders)

    def measure(self, partition: Partition) -> None:
        """The log may have another size than when last looked at."""
        self._count_bytes(partition, partition.log.size_bytes)

    def forget(self, partition: Partition) -> None:
        """The log is gone."""
        self._count_bytes(partition, 0)

    def led(self, partition: Partition, change: int) -> None:
        """This broker began (1) or ceased (-1) to lead a partition."""
        if partition.instance_key is not None:
            _add(self._leaders, partition.instance_key, change)

    def _count_bytes(self, partition: Partition, size: int) -> None:
        change = partition.counts.measured(size)
        if change and partition.instance_key is not None:
            _add(self._storage, partition.instance_key, change)
            if partition.usage is not None:
                partition.usage.stored(change)


def _add(sums: dict[str, int], key: str, change: int) -> None:
    value = sums.get(key, 0) + change
    if value:
        sums[key] = value
    else:
        sums.pop(key, None)
