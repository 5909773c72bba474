"""Reading the replicas here, and who waits for more: consumers up to the high watermark, followers up to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.replication.replica_registry import ReplicaRegistry
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.storage.log import reading

if TYPE_CHECKING:
    from dataplane.doors import Clock
    from dataplane.replication.following.fetchers import Fetchers
    from dataplane.replication.isr import IsrChanges
    from dataplane.replication.partition import Partition
    from dataplane.storage.files import FileSlice


class Reading(ReplicaRegistry):
    """What followers ask for tells a leader what they have: so this is also where the high watermark moves."""

    fetchers: Fetchers
    isr_changes: IsrChanges
    tells_followers_at_once: bool
    _clock: Clock

    def read(
        self, partition: Partition, offset: int, max_bytes: int, *, at_least_one: bool, as_replica: bool, wait: bool
    ) -> FileSlice | None:
        """Whole batches from `offset`: up to the high watermark, for a replica up to the end. None: nothing there.

        Raises OffsetOutOfRangeError, OSError; NotInMemoryError where it is not to `wait` for the disk.
        """
        log = partition.log
        limit = log.end_offset if as_replica else partition.high_watermark
        if offset >= limit:
            if offset > log.end_offset:
                raise OffsetOutOfRangeError(offset, log.start_offset, log.end_offset)
            return None
        return reading.read(log, offset, max_bytes, limit, at_least_one=at_least_one, wait=wait)

    def fetched_by_replica(
        self,
        replica_id: int,
        broker_epoch: int,
        partition: Partition,
        fetch_offset: int,
        now: float,
        log_start_offset: int = -1,
    ) -> None:
        """A follower has everything below `fetch_offset` (and its log is a prefix of ours: checked by the caller)."""
        remote = partition.remote(replica_id)
        if remote is not None and remote.log_start_offset != log_start_offset:
            remote.log_start_offset = log_start_offset
            if partition.low_watermark_waiters:
                self.waiting.low_watermark_moved(partition)
        if partition.update_follower(replica_id, fetch_offset, now, broker_epoch):
            self.high_watermark_moved(partition)
        isr = partition.isr_with(replica_id, now)
        if isr is not None:
            self.isr_changes.propose(partition, isr)

    def isr_confirmed(self, partition: Partition) -> None:
        """The controller has decided about an ISR: without a laggard more may be committed."""
        self.waiting.arrived(partition.replica_waiters, 0)  # who is not in it is looked at with every fetch
        if partition.is_leader and partition.advance(self._clock.monotonic()):
            self.high_watermark_moved(partition)
        if partition.is_leader and not partition.has_enough_replicas():
            self.waiting.too_few(partition)
        if self.verdicts.open:
            self.verdicts.isr_changed(partition)

    # --- what has moved -------------------------------------------------------------------------------------------------

    def high_watermark_moved(self, partition: Partition) -> None:
        """More is committed on a partition that we lead: acks=all may go out, consumers have something to read."""
        if partition.ack_waiters:
            self.waiting.acknowledge(partition)
        size = partition.committed_bytes - partition.announced_bytes
        partition.announced_bytes = partition.committed_bytes
        if partition.read_waiters:
            self.waiting.arrived(partition.read_waiters, size)
        if partition.replica_waiters:  # they are told with their next answer
            self.waiting.arrived(partition.replica_waiters, 1 if self.tells_followers_at_once else 0)

    def followed(self, partition: Partition, before: int) -> None:
        """Our high watermark of a partition that we follow has moved: consumers that read from us may wait for that."""
        if partition.read_waiters:
            try:
                size = reading.bytes_between(partition.log, before, partition.high_watermark)
            except OSError:
                size = 1
            self.waiting.arrived(partition.read_waiters, size)

    def start_moved(self, partition: Partition) -> None:
        """The log begins somewhere else: fetch sessions say so, and whoever reads below has to hear of it."""
        self.waiting.arrived(partition.read_waiters, 0)
        self.waiting.arrived(partition.replica_waiters, 0)
        if not partition.is_leader:
            self.fetchers.changed(partition)
