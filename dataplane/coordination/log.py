"""Where a coordinator's records are kept: an internal topic, appended to with acks=all, read back at an election.

`StateLog` is what the runtime needs; `ReplicatedLog` is it over this broker's replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.coordination.loading import load
from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.coordination.effects import KeyValue
    from dataplane.coordination.loading import Take
    from dataplane.records.steps import Steps
    from dataplane.replication.manager import Replicas

ACKS_ALL = -1
COMMIT_TIMEOUT_S = 5.0
"""Kafka's offsets.commit.timeout.ms: this long the in-sync replicas may take."""


class StateLog(Protocol):
    """What the runtime needs of the log."""

    def append(self, partition_index: int, records: list[KeyValue], done: Callable[[ErrorCode], None]) -> None:
        """Append in one batch. `done` is called once, now or later, in order of the appends: NONE when committed."""
        ...

    def read(self, partition_index: int, take: Take) -> Steps[list[str]]:
        """Give every record to `take`, oldest first. See `loading.load`."""
        ...


class ReplicatedLog:
    """Of the partitions of a topic that this broker leads."""

    def __init__(self, replicas: Replicas, topic: str) -> None:
        self._registry, self._appending = replicas.registry, replicas.appending
        self._topic = topic
        self._clock = replicas.loop.clock

    def append(self, partition_index: int, records: list[KeyValue], done: Callable[[ErrorCode], None]) -> None:
        """See StateLog."""
        partition = self._registry.leader(self._topic, partition_index)
        if isinstance(partition, ErrorCode):
            done(partition)
            return
        batch = build_batch([Record(key, value) for key, value in records], now_ms=self._clock.now_ms())
        appended = self._appending.append(partition, memoryview(batch), ACKS_ALL)
        if appended.error != ErrorCode.NONE:
            done(appended.error)
        else:
            self._appending.after_commit(partition, appended.last_offset, ACKS_ALL, COMMIT_TIMEOUT_S, done)

    def read(self, partition_index: int, take: Take) -> Steps[list[str]]:
        """See StateLog. Up to the end of the log: a leader's whole log becomes committed."""
        partition = self._registry.leader(self._topic, partition_index)
        if isinstance(partition, ErrorCode):
            raise OSError(partition.name)
        return (yield from load(partition.log, take))
