"""One replica of a partition on this broker: its log, what we are to it, and what waits for it.

`state` decides (`partition_state`, pure); `log` has the bytes; `queues` are the callers that wait; `counts` what is
accounted for. This file is where they meet: it says to the state where the log stands, and counts what it commits.

Only bytes that are in the file count: the log's end moves in `storage.log.appending.commit`. A leader writes its epoch
durably before the first batch of it (KIP-101).

The last stable offset hangs on both: which transactions are open the log knows, what is committed the state. It follows the high
watermark, and is held back where the log says so; nobody who uses no transactions pays more for that than a comparison. Of
a log that was opened and not written to since, it is looked up when a consumer first asks (`stable_end`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.replication.replica.byte_counts import ByteCounts
from dataplane.replication.replica.partition_state import PartitionState, ReplicaRules
from dataplane.replication.replica.queues import Queues
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.storage.log import producing, reading

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
        "stable_before",
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
        self.stable_before = (
            -1
        )  # the last stable offset that those who wait for more have heard of; -1: as the high watermark
        self._hold_back()

    def __repr__(self) -> str:
        return f"<{self.topic}-{self.index} {self.state!r}>"

    def replace_log(self, log: Log) -> None:
        """Another log has taken the place of ours, with the same in it."""
        self.log = log
        self._hold_back()

    def is_synced(self) -> bool:
        """Whether all that is written is on disk."""
        return self.log.recovery_point >= self.log.end_offset

    def read(self, offset: int, max_bytes: int, limit: int, *, at_least_one: bool, wait: bool) -> FileSlice | None:
        """Whole batches from `offset` up to `limit`; None: nothing there.

        Consumers read up to `readable_end`, replicas up to the end of the log. Raises OffsetOutOfRangeError, OSError;
        NotInMemoryError where it is not to `wait` for the disk.
        """
        log = self.log
        if offset >= limit:
            if offset > log.end_offset:
                raise OffsetOutOfRangeError(offset, log.start_offset, log.end_offset)
            return None
        return reading.read(log, offset, max_bytes, limit, at_least_one=at_least_one, wait=wait)

    # --- what is stable -----------------------------------------------------------------------------------------------

    def readable_end(self, *, stable_only: bool) -> int:
        """Up to where a consumer reads: all that is committed, or what is stable only. Raises OSError."""
        return self.stable_end() if stable_only else self.state.high_watermark

    def stable_end(self) -> int:
        """The last stable offset. Raises OSError."""
        offset = self.state.last_stable_offset
        if offset < 0:
            producing.learn_transactions(self.log)
            self._hold_back()
            offset = self.state.last_stable_offset
        return offset

    def _hold_back(self, before: int = -1) -> None:
        """The last stable offset may be another; it was `before` when fetches that wait last heard of it."""
        log, state = self.log, self.state
        state.hold_back(log.transactions.stable_end(state.high_watermark, log.start_offset))
        if self.stable_before < 0 <= before and self.queues.stable_waiters:
            self.stable_before = before

    def newly_stable(self, size: int) -> int:
        """Bytes that became stable when the high watermark moved, by `size` bytes."""
        before, self.stable_before = self.stable_before, -1
        if before < 0:
            return size
        try:
            return reading.bytes_between(self.log, before, max(before, self.state.last_stable_offset))
        except OSError:
            return 1

    def start_moved(self) -> None:
        """The log begins later: what lies before keeps nobody back."""
        if self.state.last_stable_offset < self.log.start_offset:
            self._hold_back()

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
        end, stable = log.end_offset, state.last_stable_offset
        moved = state.advance(log.recovery_point if state.settings.is_durable else end, end, now)
        if moved:
            if log.transactions.first_unstable < state.high_watermark:
                self._hold_back(stable)
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
        stable = self.state.last_stable_offset
        moved = self.state.follow_high_watermark(self.log.end_offset)
        if moved:
            if self.log.transactions.first_unstable < self.state.high_watermark:
                self._hold_back(stable)
            self._count_committed()
        return moved

    def truncated(self) -> None:
        """The log was cut or reset."""
        self.state.truncated(self.log.start_offset, self.log.end_offset)
        self._hold_back()
        self.counts.uncommitted.cut(self.log)

    def _count_committed(self) -> None:
        counts = self.counts
        if counts.uncommitted:
            size = counts.passed(self.state.high_watermark, self.log)
            if size and self.usage is not None:
                uncommitted = counts.uncommitted
                self.usage.produced(size, uncommitted.records_passed)
                uncommitted.records_passed = 0
