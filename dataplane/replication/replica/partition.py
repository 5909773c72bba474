"""One replica of a partition on this broker: its log, what we are to it, and what waits for it.

`state` decides (`partition_state`, pure); `log` has the bytes; `queues` are the callers that wait; `counts` what is
accounted for. This file is where they meet: it says to the state where the log stands, and counts what it commits.

Only bytes that are in the file count: the log's end moves in `storage.log.appending.commit`. A leader writes its epoch
durably before the first batch of it (KIP-101).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.replication.replica.byte_counts import ByteCounts
from dataplane.replication.replica.partition_state import PartitionState, ReplicaRules
from dataplane.replication.replica.queues import Queues
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.storage.log import reading

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.metering.usage import TopicUsage
    from dataplane.protocol.messages.control import LeaderAndIsrPartitionState
    from dataplane.storage.files import FileSlice
    from dataplane.storage.log import Log


class Partition:
    """See the module. What an idle one has beside its log is small: there may be ten thousand."""

    __slots__ = (
        "counts",
        "index",
        "instance_key",
        "log",
        "metadata_version",
        "queues",
        "state",
        "topic",
        "topic_id",
        "usage",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: UUID,
        log: Log,
        rules: ReplicaRules,
        *,
        high_watermark: int | None = None,
        instance_key: str | None = None,
        metadata_version: int = -1,
        usage: TopicUsage | None = None,
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.instance_key = instance_key
        self.metadata_version = metadata_version  # of what the broker knew of the cluster when the replica came here
        self.usage = usage  # None: a topic of the cluster's own
        self.log = log
        self.state = PartitionState(rules, log.start_offset if high_watermark is None else high_watermark)
        self.queues = Queues()
        self.counts = ByteCounts()

    def __repr__(self) -> str:
        return f"<{self.topic}-{self.index} {self.state!r}>"

    def replace_log(self, log: Log) -> None:
        """Another log has taken the place of ours, with the same in it."""
        self.log = log

    def is_synced(self) -> bool:
        """Whether all that is written is on disk."""
        return self.log.recovery_point >= self.log.end_offset

    def read(self, offset: int, max_bytes: int, limit: int, *, at_least_one: bool, wait: bool) -> FileSlice | None:
        """Whole batches from `offset` up to `limit`; None: nothing there.

        Consumers read up to `state.readable_end`, replicas up to the end of the log. Raises OffsetOutOfRangeError, OSError;
        NotInMemoryError where it is not to `wait` for the disk.
        """
        log = self.log
        if offset >= limit:
            if offset > log.end_offset:
                raise OffsetOutOfRangeError(offset, log.start_offset, log.end_offset)
            return None
        return reading.read(log, offset, max_bytes, limit, at_least_one=at_least_one, wait=wait)

    # --- leading ------------------------------------------------------------------------------------------------------

    def lead(self, given: LeaderAndIsrPartitionState, now: float) -> bool:
        """Lead from here on. Returns whether the high watermark moved (it does when we are the whole ISR)."""
        log, state = self.log, self.state
        if state.begins_epoch(given):
            log.epochs.begin(given.leader_epoch, log.end_offset)
        if not state.is_leader:
            self.counts.leads_from(log.end_offset)
        state.become_leader(given, log.end_offset, now)
        return self.advance(now)

    def update_follower(self, broker_id: int, offset: int, now: float, broker_epoch: int = -1) -> bool:
        """A follower fetched from `offset`. Returns whether the high watermark moved."""
        moved = self.state.follower_fetched(broker_id, offset, self.log.end_offset, now, broker_epoch)
        return moved and self.advance(now)

    def appended(self, size: int, now: float) -> bool:
        """The log's end moved by a commit of `size` bytes. Returns whether the high watermark moved."""
        self.counts.appended(self.log.end_offset, size, self.state.leader_epoch)
        return self.advance(now)

    def advance(self, now: float) -> bool:
        """Move the high watermark as far as it may go. Returns whether it moved. For a leader."""
        log, state = self.log, self.state
        end = log.end_offset
        moved = state.advance(log.recovery_point if state.settings.is_durable else end, end, now)
        if moved:
            self._count_committed()
        return moved

    def isr_without_laggards(self, now: float) -> tuple[int, ...] | None:
        """The ISR to propose because of the time that has passed; None where everybody keeps up."""
        return self.state.isr_without_laggards(self.log.end_offset, now)

    def low_watermark(self) -> int:
        """Where the log begins on every live replica: what lies before is gone for good. For a leader."""
        return self.state.low_watermark(self.log.start_offset)

    # --- following ----------------------------------------------------------------------------------------------------

    def follow(self, given: LeaderAndIsrPartitionState) -> None:
        """Follow from here on. Nothing of the log changes before the leader has said where the two part."""
        self.state.become_follower(given)

    def copied(self, start: int) -> bool:
        """A follower's log has grown from `start` on. Returns whether the high watermark moved."""
        self.counts.uncommitted.copied(self.log, start)
        return self.follow_high_watermark()

    def follow_high_watermark(self) -> bool:
        """A follower's high watermark: the leader's, as far as our log goes. Returns whether it moved."""
        moved = self.state.follow_high_watermark(self.log.end_offset)
        if moved:
            self._count_committed()
        return moved

    def truncated(self) -> None:
        """The log was cut or reset."""
        self.state.truncated(self.log.start_offset, self.log.end_offset)
        self.counts.uncommitted.cut(self.log)

    def _count_committed(self) -> None:
        counts = self.counts
        if counts.uncommitted:
            size = counts.passed(self.state.high_watermark, self.log)
            if size and self.usage is not None:
                self.usage.produced(size)
