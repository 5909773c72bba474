"""Where a coordinator's records are kept: an internal topic, appended to with acks=all, read back at an election.

`StateLog` is what the runtime needs; `ReplicatedLog` is it over this broker's replicas.

Records may be part of a producer's open transaction: then what they say counts once the transaction's marker follows them in
the log, and the machine that appends them has to wait for it (`loading.Transactions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.coordination.loading import load
from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import Record, build_batch
from dataplane.replication.appending import Appended

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.coordination.effects import KeyValue, Producer
    from dataplane.coordination.loading import Take, Transactions
    from dataplane.records.steps import Steps
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition

ACKS_ALL = -1
NOT_APPENDED = -1
COMMIT_TIMEOUT_S = 5.0
"""Kafka's offsets.commit.timeout.ms: this long the in-sync replicas may take."""


class StateLog(Protocol):
    """What the runtime needs of the log."""

    def append(
        self,
        partition_index: int,
        records: list[KeyValue],
        done: Callable[[ErrorCode], None],
        producer: Producer | None = None,
    ) -> int:
        """Append in one batch; the offset at which it begins, or NOT_APPENDED.

        `done` is called once, in order of the appends: NONE when committed, and then never before this returns.
        """
        ...

    def read(self, partition_index: int, take: Take, transactions: Transactions | None = None) -> Steps[list[str]]:
        """Give every record to `take`, oldest first. See `loading.load`."""
        ...


class ReplicatedLog:
    """Of the partitions of a topic that this broker leads."""

    def __init__(self, replicas: Replicas, topic: str) -> None:
        self._registry, self._appending = replicas.registry, replicas.appending
        self._topic = topic
        self._clock = replicas.loop.clock

    def append(
        self,
        partition_index: int,
        records: list[KeyValue],
        done: Callable[[ErrorCode], None],
        producer: Producer | None = None,
    ) -> int:
        """See StateLog."""
        partition = self._registry.leader(self._topic, partition_index)
        if isinstance(partition, ErrorCode):
            done(partition)
            return NOT_APPENDED
        appended = self._append(partition, records, producer)
        if appended.error != ErrorCode.NONE:
            done(appended.error)
            return NOT_APPENDED
        self._appending.after_commit(partition, appended.last_offset, ACKS_ALL, COMMIT_TIMEOUT_S, done)
        return appended.base_offset

    def _append(self, partition: Partition, records: list[KeyValue], producer: Producer | None) -> Appended:
        rows, now_ms = [Record(key, value) for key, value in records], self._clock.now_ms()
        if producer is None:
            return self._appending.append(partition, memoryview(build_batch(rows, now_ms=now_ms)), ACKS_ALL)
        batch = build_batch(
            rows, now_ms=now_ms, producer_id=producer.id, producer_epoch=producer.epoch, transactional=True
        )
        if len(batch) > partition.state.settings.max_message_bytes:
            return Appended(ErrorCode.MESSAGE_TOO_LARGE)
        # It has no sequence, with which a batch that a producer sent would be refused: its size was all there is to check.
        return self._appending.append(partition, memoryview(batch), ACKS_ALL, is_checked=True)

    def read(self, partition_index: int, take: Take, transactions: Transactions | None = None) -> Steps[list[str]]:
        """See StateLog. Up to the end of the log: a leader's whole log becomes committed."""
        partition = self._registry.leader(self._topic, partition_index)
        if isinstance(partition, ErrorCode):
            raise OSError(partition.name)
        return (yield from load(partition.log, take, transactions))
