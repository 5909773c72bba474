"""Forcing logs to disk while the broker runs: `flush.messages`, `flush.ms`, and the durable profile.

Without them a log is forced to disk when a segment is full, and the page cache and the other replicas are what keeps the
newest records. With them, in the background and never in the loop:

    flush.messages = N   when N offsets are not on disk yet
    flush.ms             when that long has passed since the last time (looked at every log.flush.scheduler.interval.ms)
    flush.messages = 1   the *durable* profile: nothing is acknowledged, or counts as committed, that is not on disk

Durable, in detail. What a turn of the loop has written to all such partitions is forced to disk by one job; what comes
while it runs waits for the next job, so that load makes the groups larger and not the queue longer. A leader's own end
counts for the high watermark only as far as it is on disk, and acks=1 waits for that. A follower asks its leader for more
only when what it has is on disk: its fetch offset is its word that it holds everything before. So with acks=all an
acknowledged record is on the disks of the whole ISR, and no power cut, not even of all brokers at once, loses it.

A log whose sync fails has failed: after an error of fsync nobody knows what is on the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.storage.config import FOREVER

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Background, Clock
    from dataplane.replication.manager import Replicas
    from dataplane.replication.partition import Partition
    from dataplane.storage.log import Log
    from dataplane.tasks import Future

EVERY_MESSAGE = 1


class Syncs:
    """Which partitions want to be forced to disk, one job at a time."""

    def __init__(self, replicas: Replicas, background: Background, clock: Clock) -> None:
        self._replicas, self._background, self._clock = replicas, background, clock
        self._wanted: dict[Partition, None] = {}
        self._running = False
        self._timed: dict[Partition, float] = {}  # with flush.ms: when last forced, seconds

    def configure(self, partition: Partition) -> None:
        """The log's configuration is new, or has changed."""
        config = partition.log.config
        partition.flush_after = config.flush_messages if config.flush_messages < FOREVER else None
        partition.is_durable = config.flush_messages <= EVERY_MESSAGE
        if config.flush_ms < FOREVER:
            self._timed.setdefault(partition, self._clock.monotonic())
        else:
            self._timed.pop(partition, None)
        self.catch_up(partition)

    def catch_up(self, partition: Partition) -> None:
        """What a durable partition has from before: on disk before it counts."""
        if partition.is_durable and not partition.is_synced() and not partition.is_offline:
            self.want(partition)

    def forget(self, partition: Partition) -> None:
        """It is gone from here."""
        self._wanted.pop(partition, None)
        self._timed.pop(partition, None)

    def want(self, partition: Partition) -> None:
        """Force this one to disk, with all others of the turn."""
        if not self._wanted and not self._running:
            self._replicas.loop.at_turn_end(self._start)
        self._wanted[partition] = None

    def look_at_time(self) -> None:
        """Who has waited for flush.ms?"""
        now = self._clock.monotonic()
        for partition, since in list(self._timed.items()):
            if now - since >= partition.log.config.flush_ms / 1000:
                self._timed[partition] = now
                if not partition.is_synced() and not partition.is_offline:
                    self.want(partition)

    def hold_back(self, partition: Partition, calls: list[Callable[[ErrorCode], None]]) -> bool:
        """Whether these, who ask for what is written now, have to wait until it is on disk."""
        if partition.is_synced():
            return False
        partition.sync_calls.append((partition.log.end_offset, calls))
        return True

    # --- the job ------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._running or not self._wanted:
            return
        partitions, self._wanted = list(self._wanted), {}
        jobs = []
        for partition in partitions:
            log = partition.log
            if log.failed or partition.is_offline:
                continue
            try:
                jobs.append((partition, log, log.syncer(), log.end_offset, log.truncations))
            except OSError as error:
                log.fail(error)
                self._replicas.failed(partition)
        if not jobs:
            return
        self._running = True

        def work() -> list[OSError | None]:
            return [_error_of(sync) for _, _, sync, _, _ in jobs]

        def done(future: Future[list[OSError | None]]) -> None:
            self._running = False
            errors = future.result() if future.error is None else [OSError(str(future.error))] * len(jobs)
            for (partition, log, _, end, truncations), error in zip(jobs, errors, strict=True):
                self._done(partition, log, end, truncations, error)
            self._start()

        self._background.run(work).then(done)

    def _done(self, partition: Partition, log: Log, end: int, truncations: int, error: OSError | None) -> None:
        if error is not None:
            log.fail(error)
            self._replicas.failed(partition)
            return
        log.synced(end, truncations)
        if partition.is_durable and not partition.is_offline:
            self._tell(partition)
            self.catch_up(partition)

    def _tell(self, partition: Partition) -> None:
        synced = partition.log.recovery_point
        while partition.sync_calls and partition.sync_calls[0][0] <= synced:
            for call in partition.sync_calls.pop(0)[1]:
                call(ErrorCode.NONE)
        if partition.is_leader:
            if partition.advance(self._clock.monotonic()):
                self._replicas.high_watermark_moved(partition)
        else:
            self._replicas.fetchers.ask_again(partition)


def _error_of(sync: Callable[[], None]) -> OSError | None:
    try:
        sync()
    except OSError as error:
        return error
    return None
