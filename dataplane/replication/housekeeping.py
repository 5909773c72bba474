"""What the replicas of a broker do by the clock: look for laggards, write checkpoints, delete what is old."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Timer
    from dataplane.replication.manager import Replicas
    from dataplane.storage.log import Log
    from dataplane.tasks import Future


class Housekeeping:
    """Periods come from the settings, in milliseconds there."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._timers: dict[str, Timer] = {}

    def start(self) -> None:
        """Begin."""
        settings = self._replicas.config.settings
        self._every("isr", settings.replica_lag_time_max_ms / 2, self._look_for_laggards)
        self._every("checkpoint", settings.high_watermark_checkpoint_interval_ms, self._checkpoint)
        self._every("flush", settings.log_flush_scheduler_interval_ms, self._replicas.syncs.look_at_time)
        self._every("retention", settings.log_retention_check_interval_ms, self.apply_retention)
        self._replicas.cleaner.start()

    def stop(self) -> Future[None]:
        """End; resolved when the last checkpoint is written."""
        self._replicas.cleaner.stop()
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        return self._checkpoint()

    def _every(self, name: str, period_ms: float, work: Callable[[], object]) -> None:
        def run() -> None:
            self._timers[name] = self._replicas.loop.call_later(period_ms / 1000, run)
            work()

        self._timers[name] = self._replicas.loop.call_later(period_ms / 1000, run)

    def _look_for_laggards(self) -> None:
        replicas, now = self._replicas, self._replicas.loop.clock.monotonic()
        for partition in replicas.partitions():
            isr = partition.isr_without_laggards(now)
            if isr is not None:
                replicas.isr_changes.propose(partition, isr)
            elif partition.is_leader and partition.advance(now):  # it waits no longer for who was about to join
                replicas.high_watermark_moved(partition)
            if partition.low_watermark_waiters:
                replicas.waiting.low_watermark_moved(partition)  # without who has died

    def _checkpoint(self) -> Future[None]:
        """Where consumers may read to after a restart."""
        replicas = self._replicas
        return replicas.logs.write_checkpoints({(p.topic, p.index): p.high_watermark for p in replicas.partitions()})

    def apply_retention(self) -> None:
        """Delete what is too old or too much, and count again where something went."""
        if self._replicas.logs.apply_retention(self.committed_of):
            for partition in self._replicas.partitions():
                self._replicas.accounting.measure(partition)
                self._replicas.start_moved(partition)

    def committed_of(self, log: Log) -> int:
        """Nothing of a log above this may be thrown away."""
        partition = self._replicas.get(log.topic, log.partition)
        return 0 if partition is None else partition.high_watermark
