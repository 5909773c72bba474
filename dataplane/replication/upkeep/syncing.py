"""Forcing logs to disk while the broker runs: `flush.messages`, `flush.ms`, and the durable profile.

Without them a log is forced to disk when a segment is full, and the page cache and the other replicas are what keeps the
newest records. With them, in the background and never in the loop:

    flush.messages = N   when N offsets are not on disk yet
    flush.ms             when that long has passed since the last time (looked at every log.flush.scheduler.interval.ms)
    flush.messages = 1   the *durable* profile: nothing is acknowledged, or counts as committed, that is not on disk

Durable, in detail. What a turn of the loop has written to all such partitions of an instance is forced to disk by one
job; what comes while it runs waits for the instance's next job, so that load makes the groups larger and not the queue
longer. A job takes a few partitions, then another instance has its turn: a producer to a thousand partitions waits for
them himself. And no more than half of the threads wait for disks, since others need them too. A leader's own end
counts for the high watermark only as far as it is on disk, and acks=1 waits for that. A follower asks its leader for more
only when what it has is on disk: its fetch offset is its word that it holds everything before. So with acks=all an
acknowledged record is on the disks of the whole ISR, and no power cut, not even of all brokers at once, loses it.

A log whose sync fails has failed: after an error of fsync nobody knows what is on the disk.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.waiting import tell
from dataplane.storage.config import FOREVER
from dataplane.storage.log import flushing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dataplane.doors import Background, Clock
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.storage.config import LogConfig
    from dataplane.storage.log import Log
    from dataplane.tasks import Future

EVERY_MESSAGE = 1
_JOBS = 2
_PER_JOB = 16


class _Due(NamedTuple):
    """One log as a job has found it."""

    partition: Partition
    log: Log
    sync: Callable[[], None]
    end: int
    truncations: int


def flush_after(config: LogConfig) -> int | None:
    """See `PartitionSettings`."""
    return config.flush_messages if config.flush_messages < FOREVER else None


def is_durable(config: LogConfig) -> bool:
    """See `PartitionSettings`."""
    return config.flush_messages <= EVERY_MESSAGE


class Syncs:
    """Which partitions want to be forced to disk; one job of an instance at a time, and few in all."""

    def __init__(self, replicas: Replicas, background: Background, clock: Clock) -> None:
        self._replicas, self._background, self._clock = replicas, background, clock
        self._wanted: dict[str, dict[Partition, None]] = {}  # by instance, in the order of their turns
        self._busy: dict[str, None] = {}  # instances whose job is under way
        self._is_scheduled = False
        self._timed: dict[Partition, float] = {}  # with flush.ms: when last forced, seconds

    def configured(self, partition: Partition, *, was_durable: bool) -> None:
        """Its configuration is new, or has changed."""
        if partition.log.config.flush_ms < FOREVER:
            self._timed.setdefault(partition, self._clock.monotonic())
        else:
            self._timed.pop(partition, None)
        if was_durable and not partition.state.settings.is_durable and not partition.state.is_offline:
            self._tell(partition)  # requests that wait for the disk need not any more, and no job will tell them
        self.catch_up(partition)

    def catch_up(self, partition: Partition) -> None:
        """What a durable partition has from before: on disk before it counts."""
        if partition.state.settings.is_durable and not partition.is_synced() and not partition.state.is_offline:
            self.want(partition)

    def forget(self, partition: Partition) -> None:
        """It is gone from here."""
        waiting = self._wanted.get(_owner(partition))
        if waiting is not None:
            waiting.pop(partition, None)
        self._timed.pop(partition, None)

    def want(self, partition: Partition) -> None:
        """Force this one to disk, with all others of the turn."""
        self._wanted.setdefault(_owner(partition), {})[partition] = None
        self._schedule()

    def timed(self) -> Iterator[Partition]:
        """The partitions that have a flush.ms."""
        return iter(list(self._timed))

    def look_at_time(self, partition: Partition) -> None:
        """Sync a partition of these that has waited for its flush.ms."""
        now, since = self._clock.monotonic(), self._timed.get(partition)
        if since is not None and now - since >= partition.log.config.flush_ms / 1000:
            self._timed[partition] = now
            if not partition.is_synced() and not partition.state.is_offline:
                self.want(partition)

    def hold_back(self, partition: Partition, calls: list[Callable[[ErrorCode], None]]) -> bool:
        """Whether these, who ask for what is written now, have to wait until it is on disk."""
        if partition.is_synced():
            return False
        partition.queues.sync_calls.append((partition.log.end_offset, calls))
        return True

    # --- the jobs -----------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if self._wanted and not self._is_scheduled and len(self._busy) < _JOBS:
            self._is_scheduled = True
            self._replicas.loop.at_turn_end(self._start)

    def _start(self) -> None:
        self._is_scheduled = False
        for owner in list(self._wanted):
            if len(self._busy) >= _JOBS:
                return
            if owner not in self._busy:
                self._run(owner, self._due(owner))

    def _due(self, owner: str) -> list[_Due]:
        """What the next job of an instance does; the rest of what it wants comes behind all the others."""
        waiting = self._wanted.pop(owner)
        some = list(islice(waiting, _PER_JOB))
        for partition in some:
            del waiting[partition]
        if waiting:
            self._wanted[owner] = waiting
        found = []
        for partition in some:
            log = partition.log
            if log.failed or partition.state.is_offline:
                continue
            try:
                found.append(_Due(partition, log, flushing.syncer(log), log.end_offset, log.truncations))
            except Exception as error:  # noqa: BLE001 - the others want it no less
                self._failed(partition, log, error)
        return found

    def _run(self, owner: str, jobs: list[_Due]) -> None:
        if not jobs:
            self._schedule()  # there may be more of its partitions
            return
        self._busy[owner] = None

        def work() -> list[Exception | None]:
            return [_error_of(job.sync) for job in jobs]

        def done(future: Future[list[Exception | None]]) -> None:
            del self._busy[owner]
            self._schedule()
            errors = future.result() if future.error is None else [OSError(str(future.error))] * len(jobs)
            for job, error in zip(jobs, errors, strict=True):
                try:
                    self._done(job.partition, job.log, job.end, job.truncations, error)
                except Exception as bug:  # noqa: BLE001 - the others are on disk, and wait to hear it
                    self._replicas.roles.broken(job.partition, bug)

        self._background.run(work).then(done)

    def _failed(self, partition: Partition, log: Log, error: Exception) -> None:
        if isinstance(error, OSError):
            log.fail(error)
            self._replicas.roles.failed(partition)
        else:
            self._replicas.roles.broken(partition, error)

    def _done(self, partition: Partition, log: Log, end: int, truncations: int, error: Exception | None) -> None:
        if error is not None:
            self._failed(partition, log, error)
            return
        flushing.synced(log, end, truncations)
        if partition.state.settings.is_durable and not partition.state.is_offline:
            self._tell(partition)
            self.catch_up(partition)

    def _tell(self, partition: Partition) -> None:
        counts = partition.log.recovery_point if partition.state.settings.is_durable else partition.log.end_offset
        queues = partition.queues
        while queues.sync_calls and queues.sync_calls[0][0] <= counts:
            for call in queues.sync_calls.pop(0)[1]:
                tell(call, ErrorCode.NONE)
        if partition.state.is_leader:
            if partition.advance(self._clock.monotonic()):
                self._replicas.progress.high_watermark_moved(partition)
        else:
            self._replicas.fetchers.ask_again(partition)


def _owner(partition: Partition) -> str:
    return partition.instance_key or ""


def _error_of(sync: Callable[[], None]) -> Exception | None:
    try:
        sync()
    except Exception as error:  # noqa: BLE001 - of one log, whatever it is
        return error
    return None
