"""Where groups are kept: partitions of ``__consumer_offsets``, appended with acks=all, read back at an election.

`OffsetsLog` is what the coordinator needs; `ReplicatedOffsetsLog` is it over this broker's replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.groups.loading import load
from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.groups.loading import Take
    from dataplane.groups.records import KeyValue
    from dataplane.records.steps import Steps
    from dataplane.replication.manager import Replicas

ACKS_ALL = -1
COMMIT_TIMEOUT_S = 5.0
"""Kafka's offsets.commit.timeout.ms: this long the in-sync replicas may take."""


class OffsetsLog(Protocol):
    """What the coordinator needs of the log."""

    def append(self, partition_index: int, records: list[KeyValue], done: Callable[[ErrorCode], None]) -> None:
        """Append in one batch. `done` is called once, now or later, in order of the appends: NONE when committed."""
        ...

    def read(self, partition_index: int, take: Take) -> Steps[list[str]]:
        """Give every record to `take`, oldest first. See `loading.load`."""
        ...


class ReplicatedOffsetsLog:
    """The log of the partitions that this broker leads."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._clock = replicas.loop.clock

    def append(self, partition_index: int, records: list[KeyValue], done: Callable[[ErrorCode], None]) -> None:
        """See OffsetsLog."""
        partition = self._replicas.leader(OFFSETS_TOPIC, partition_index)
        if isinstance(partition, ErrorCode):
            done(partition)
            return
        batch = build_batch([Record(key, value) for key, value in records], now_ms=self._clock.now_ms())
        appended = self._replicas.append(partition, memoryview(batch), ACKS_ALL)
        if appended.error != ErrorCode.NONE:
            done(appended.error)
        else:
            self._replicas.after_commit(partition, appended.last_offset, ACKS_ALL, COMMIT_TIMEOUT_S, done)

    def read(self, partition_index: int, take: Take) -> Steps[list[str]]:
        """See OffsetsLog. Up to the end of the log: a leader's whole log becomes committed."""
        partition = self._replicas.leader(OFFSETS_TOPIC, partition_index)
        if isinstance(partition, ErrorCode):
            raise OSError(partition.name)
        return (yield from load(partition.log, take))
