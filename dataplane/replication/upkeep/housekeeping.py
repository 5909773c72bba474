"""What the replicas of a broker do by the clock: look for laggards, write checkpoints, delete what is old.

Each of these looks at every partition here, and there may be ten thousand: a round goes in slices of a quarter of a
millisecond. Of all rounds together one slice is done in a turn of the loop, and they take turns. An exception that nobody
expects costs the one partition its turn, or the round what follows it, and no other.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dataplane.doors import Timer
    from dataplane.replication.manager import Replicas
    from dataplane.replication.replica.partition import Partition
    from dataplane.storage.log import Log
    from dataplane.tasks import Future

_SLICE_S = 0.000_25
T = TypeVar("T")

_log = logging.getLogger(__name__)


class _Round(NamedTuple):
    """Of one of the things that are done by the clock."""

    things: Iterator[Any]
    work: Callable[[Any], object]
    done: Callable[[], object] | None  # called when it has come to its end


class Housekeeping:
    """Periods come from the settings, in milliseconds there."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._timers: dict[str, Timer] = {}
        self._under_way: dict[str, _Round] = {}  # the first of them has the next slice

    def start(self) -> None:
        """Begin."""
        settings = self._replicas.configuration.settings
        self._every("isr", settings.replica_lag_time_max_ms / 2, self._look_for_laggards)
        self._every("checkpoint", settings.high_watermark_checkpoint_interval_ms, self._checkpoint_in_slices)
        self._every("flush", settings.log_flush_scheduler_interval_ms, self._look_at_time_in_slices)
        self._every("retention", settings.log_retention_check_interval_ms, self._retain_in_slices)
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
            if name not in self._under_way:
                work()

        self._timers[name] = self._replicas.loop.call_later(period_ms / 1000, run)

    def _in_slices(
        self, name: str, things: Iterable[T], work: Callable[[T], object], done: Callable[[], object] | None = None
    ) -> None:
        """Do `work` with all of them, and `done` then, in slices of the turns to come. No round of this name is under way."""
        is_scheduled = bool(self._under_way)
        self._under_way[name] = _Round(iter(things), work, done)
        if not is_scheduled:
            self._replicas.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """A slice of one round: the only one of this turn. Another's is in the next."""
        name, under_way = next(iter(self._under_way.items()))
        is_over = name not in self._timers or self._slice(name, under_way.things, under_way.work)
        del self._under_way[name]
        if not is_over:
            self._under_way[name] = under_way  # behind the others
        if self._under_way:
            self._replicas.loop.call_soon(self._go_on)
        if is_over and name in self._timers and under_way.done is not None:  # else it was stopped
            try:
                under_way.done()
            except Exception:  # noqa: BLE001 - a bug
                _log.exception("%s: what follows a round was not done", name)

    def _slice(self, name: str, things: Iterator[T], work: Callable[[T], object]) -> bool:
        """A turn's worth; whether that was the last. Never raises: the round would be under way for ever."""
        clock = self._replicas.loop.clock
        until = clock.monotonic() + _SLICE_S
        while (
            clock.monotonic() <= until
        ):  # asked each time: to look at one costs a microsecond, to delete of it a thousand
            try:
                thing = next(things)
            except StopIteration:
                return True
            except Exception:  # noqa: BLE001 - a bug
                _log.exception("%s: a round ends early", name)
                return True
            try:
                work(thing)
            except Exception:  # noqa: BLE001 - a bug
                _log.exception("%s: %r is left out", name, thing)
        return False

    def _look_for_laggards(self) -> None:
        self._in_slices("isr", self._replicas.registry.partitions(), self._look_at)

    def _look_at(self, partition: Partition) -> None:
        replicas, now = self._replicas, self._replicas.loop.clock.monotonic()
        isr = partition.isr_without_laggards(now)
        if isr is not None:
            replicas.isr_changes.propose(partition, isr)
        elif partition.state.is_leader and partition.advance(
            now
        ):  # it no longer waits for a replica that was about to join
            replicas.progress.high_watermark_moved(partition)
        if partition.queues.low_watermark_waiters:
            replicas.waiting.low_watermark_moved(partition)  # without replicas that have died

    def _checkpoint(self) -> Future[None]:
        """Where consumers may read to after a restart."""
        replicas = self._replicas
        return replicas.logs.checkpoints.write(
            {(p.topic, p.index): p.state.high_watermark for p in replicas.registry.partitions()}
        )

    def _checkpoint_in_slices(self) -> None:
        checkpoints = self._replicas.logs.checkpoints
        self._in_slices(
            "checkpoint",
            self._replicas.registry.partitions(),
            lambda partition: checkpoints.note(partition.log, partition.state.high_watermark),
            self._join_in_slices,
        )

    def _join_in_slices(self) -> None:
        checkpoints = self._replicas.logs.checkpoints
        self._in_slices(
            "checkpoint", checkpoints.stale(), lambda block: block[0].join(block[1]), checkpoints.write_noted
        )

    def _look_at_time_in_slices(self) -> None:
        syncs = self._replicas.syncs
        self._in_slices("flush", syncs.timed(), syncs.look_at_time)

    def _retain_in_slices(self) -> None:
        self._in_slices("retention", iter(self._replicas.logs.logs()), self._retain)

    def _retain(self, log: Log) -> None:
        partition = self._replicas.registry.get(log.topic, log.partition)
        if self._replicas.logs.retain(log, self.stable_of) and partition is not None:
            self._replicas.accounting.measure(partition)
            self._replicas.progress.start_moved(partition)

    def apply_retention(self) -> None:
        """Delete what is too old or too much, and count again where something went."""
        if self._replicas.logs.apply_retention(self.stable_of):
            for partition in self._replicas.registry.partitions():
                self._replicas.accounting.measure(partition)
                self._replicas.progress.start_moved(partition)

    def stable_of(self, log: Log) -> int:
        """Nothing of a log from here on may be thrown away or compacted.

        Of a transaction that is open readers get all once it is committed. And the value that compaction keeps could be one of a
        transaction that is not. Raises OSError.
        """
        partition = self._replicas.registry.get(log.topic, log.partition)
        return 0 if partition is None else partition.stable_end()
