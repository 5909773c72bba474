"""What has moved, and who hears of it: positions of followers, ISRs, high watermarks, starts of logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.log import reading

if TYPE_CHECKING:
    from dataplane.doors import Clock
    from dataplane.replication.following.fetchers import Fetchers
    from dataplane.replication.isr import IsrChanges
    from dataplane.replication.replica.partition import Partition
    from dataplane.replication.verdicts import Verdicts
    from dataplane.replication.waiting import Waiting


class Progress:
    """What followers ask for tells a leader what they have: so this is also where the high watermark moves."""

    def __init__(
        self,
        clock: Clock,
        waiting: Waiting,
        verdicts: Verdicts,
        fetchers: Fetchers,
        isr_changes: IsrChanges,
        *,
        tells_followers_at_once: bool,
    ) -> None:
        self._clock = clock
        self._waiting = waiting
        self._verdicts = verdicts
        self._fetchers = fetchers
        self._isr_changes = isr_changes
        self.tells_followers_at_once = tells_followers_at_once

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
        state = partition.state
        remote = state.remote(replica_id)
        if remote is not None and remote.begins_at(log_start_offset) and partition.queues.low_watermark_waiters:
            self._waiting.low_watermark_moved(partition)
        if partition.update_follower(replica_id, fetch_offset, now, broker_epoch):
            self.high_watermark_moved(partition)
        isr = state.isr_with(replica_id, now)
        if isr is not None:
            self._isr_changes.propose(partition, isr)

    def isr_confirmed(self, partition: Partition) -> None:
        """The controller has decided about an ISR: without a laggard more may be committed."""
        self._waiting.arrived(
            partition.queues.replica_waiters, 0
        )  # a replica that is not in it is looked at with every fetch
        state = partition.state
        if state.is_leader and partition.advance(self._clock.monotonic()):
            self.high_watermark_moved(partition)
        if state.is_leader and not state.has_enough_replicas():
            self._waiting.too_few(partition)
        if self._verdicts.open:
            self._verdicts.isr_changed(partition)

    # --- what has moved -------------------------------------------------------------------------------------------------

    def high_watermark_moved(self, partition: Partition) -> None:
        """More is committed on a partition that we lead: acks=all may go out, consumers have something to read."""
        queues = partition.queues
        if queues.ack_waiters:
            self._waiting.acknowledge(partition)
        size = partition.counts.take_unannounced()
        if queues.read_waiters:
            self._waiting.arrived(queues.read_waiters, size)
        if queues.stable_waiters:
            self._waiting.arrived(queues.stable_waiters, partition.newly_stable(size))
        if queues.replica_waiters:  # they are told with their next answer
            self._waiting.arrived(queues.replica_waiters, 1 if self.tells_followers_at_once else 0)

    def followed(self, partition: Partition, before: int) -> None:
        """Our high watermark of a partition that we follow has moved: consumers that read from us may wait for that."""
        queues = partition.queues
        if not (queues.read_waiters or queues.stable_waiters):
            return
        try:
            size = reading.bytes_between(partition.log, before, partition.state.high_watermark)
        except OSError:
            size = 1
        self._waiting.arrived(queues.read_waiters, size)
        self._waiting.arrived(queues.stable_waiters, partition.newly_stable(size))

    def start_moved(self, partition: Partition) -> None:
        """The log begins somewhere else: fetch sessions say so, and a reader below has to hear of it."""
        partition.start_moved()
        for place in (partition.queues.read_waiters, partition.queues.stable_waiters, partition.queues.replica_waiters):
            self._waiting.arrived(place, 0)
        if not partition.state.is_leader:
            self._fetchers.changed(partition)
