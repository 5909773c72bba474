"""When logs are compacted: one at a time, the dirtiest first, as long as one is worth it; then again after a pause.

    choose a log -> the job rewrites it, in another process -> new segments are swapped in, one in a turn -> choose again

While the job runs the log goes on: it is read, appended to, cut, deleted. Whatever of its old segments is not as it was
when the job began is left alone; after a cut nothing is taken of the job at all.

A log whose round fails is left alone for a while and tried again: what failed is the disk, or the job's process.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from dataplane.records.header import CorruptBatchError
from dataplane.storage.cleaner import marker
from dataplane.storage.cleaner.batches import Rules
from dataplane.storage.cleaner.swap import drop_cleaned
from dataplane.storage.cleaner.work import KEY_BYTES, CleaningPlan, Outcome, clean
from dataplane.storage.log import aborting, compacting, producing
from dataplane.tasks import Future, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.config import Settings
    from dataplane.doors import Doors, Timer
    from dataplane.storage.checkpoints.transactions import AbortedTransaction
    from dataplane.storage.cleaner.choice import Dirt
    from dataplane.storage.log import Log
    from dataplane.storage.manager import LogManager

_AFTER_FAILURE_MS = 60_000
_LOGS_IN_A_TURN = 500

_log = logging.getLogger(__name__)


class Cleaner:
    """Compacts what the broker stores. `stable_of`: a log's last stable offset; `changed`: its size is another."""

    def __init__(
        self,
        doors: Doors,
        logs: LogManager,
        settings: Callable[[], Settings],
        stable_of: Callable[[Log], int],
        changed: Callable[[Log], None],
    ) -> None:
        self._doors, self._logs, self._settings = doors, logs, settings
        self._stable_of, self._changed = stable_of, changed
        self._timer: Timer | None = None
        self._task: Task[None] | None = None
        self._stopped = False
        self._not_before: dict[str, int] = {}  # by directory: it failed
        self.rounds = 0

    def start(self) -> None:
        """Begin, after a first pause."""
        if self._settings().log_cleaner_enable:
            self._pause()

    def stop(self) -> None:
        """Begin nothing more. What a job has made after this is not taken."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def is_busy(self) -> bool:
        """Whether a round is under way."""
        return self._task is not None and not self._task.done

    def look(self) -> None:
        """Compact whatever is worth it, now."""
        if not self.is_busy() and not self._stopped:
            self._task = Task(self._run(), "compaction")

    def _pause(self) -> None:
        def run() -> None:
            self._pause()
            self.look()

        self._timer = self._doors.loop.call_later(self._settings().log_cleaner_backoff_ms / 1000, run)

    async def _run(self) -> None:
        while not self._stopped:
            chosen = await self._choose()
            if chosen is None:
                return
            log, dirt = chosen
            try:
                await self._compact(log, dirt)
            except Exception as error:  # noqa: BLE001 - the job's process may die of anything; other logs go on
                self._not_before[log.directory] = self._doors.clock.now_ms() + _AFTER_FAILURE_MS
                self._drop(log)
                _log.warning("%s-%d was not compacted: %s", log.topic, log.partition, _sentence(error))

    # --- choosing -----------------------------------------------------------------------------------------------------

    async def _choose(self) -> tuple[Log, Dirt] | None:
        """A few logs in a turn: there may be thousands, and nearly all have nothing to do."""
        now_ms = self._doors.clock.now_ms()
        self._not_before = {name: until for name, until in self._not_before.items() if until > now_ms}
        best: tuple[Log, Dirt] | None = None
        for number, log in enumerate(self._logs.logs()):
            if number % _LOGS_IN_A_TURN == _LOGS_IN_A_TURN - 1:
                await self._next_turn()
            if not compacting.has_sealed_dirt(log) or not log.config.is_compacted:
                continue
            if log.failed or log.directory in self._not_before:
                continue
            try:
                dirt = compacting.dirt_in(log, self._stable_of(log), now_ms)
            except OSError:
                continue
            if dirt.is_worth_it(log.config) and (best is None or dirt.ratio > best[1].ratio):
                best = log, dirt
        return best

    # --- one round ----------------------------------------------------------------------------------------------------

    async def _compact(self, log: Log, dirt: Dirt) -> None:
        truncations = log.truncations
        plan = self._plan(log, dirt, await self._aborted(log, dirt))
        work = partial(clean, self._doors.files, plan)
        rate = self._settings().log_cleaner_io_max_bytes_per_second
        outcome: Outcome = await self._doors.background.run_apart(partial(_paced, work), rate)
        if log.failed:
            return
        if log.truncations == truncations and await self._promise(log, outcome, truncations):
            await self._swap_all(log, outcome, truncations)
        await self._drop(log)

    async def _promise(self, log: Log, outcome: Outcome, truncations: int) -> bool:
        """Have recovery know that what comes next is no damage (see `marker`). False: the log was cut meanwhile."""
        to = max((part.end_offset for new in outcome.segments for part in new.replaced), default=0)
        if to > log.compacted_to:
            files, directory, topic_id = self._doors.files, log.directory, log.topic_id
            await self._doors.background.run(lambda: marker.write(files, directory, topic_id, to))
            known, log.compacted_to = log.compacted_to, to
            if log.truncations != truncations:
                compacting.lower_compacted_to(log, known)
        return log.truncations == truncations

    async def _swap_all(self, log: Log, outcome: Outcome, truncations: int) -> None:
        if await self._swap(log, outcome, truncations):
            log.cleaned_to = outcome.first_dirty
            self.rounds += 1
        self._changed(log)

    def _drop(self, log: Log) -> Future[None]:
        """What a job has left behind."""
        files, directory = self._doors.files, log.directory
        return self._doors.background.run(lambda: drop_cleaned(files, directory, files.list(directory)))

    async def _swap(self, log: Log, outcome: Outcome, truncations: int) -> bool:
        """One in a turn: each is a handful of renames. Whether it came to the end."""
        for segment in outcome.segments:
            if self._stopped or log.failed or log.truncations != truncations:
                return False
            if not compacting.replace_segments(log, segment) and log.start_offset <= segment.base_offset:
                return False
            await self._next_turn()
        return not (self._stopped or log.failed or log.truncations != truncations)

    def _next_turn(self) -> Future[None]:
        turned: Future[None] = Future()
        self._doors.loop.call_soon(lambda: turned.resolve(None))
        return turned

    async def _aborted(self, log: Log, dirt: Dirt) -> tuple[AbortedTransaction, ...]:
        """A segment's in a turn."""
        start, bound = dirt.segments[0].base_offset, dirt.segments[-1].end_offset
        found: list[AbortedTransaction] = []
        if log.last_aborted >= start:
            for segment in log.segments[log.segment_index(start) :]:
                if segment.has_aborted:
                    if aborting.aborted_in(log, segment).find(start, bound, found):
                        break
                    await self._next_turn()
        return tuple(found)

    def _plan(self, log: Log, dirt: Dirt, aborted: tuple[AbortedTransaction, ...]) -> CleaningPlan:
        settings, config = self._settings(), log.config
        room = settings.log_cleaner_dedupe_buffer_size * settings.log_cleaner_io_buffer_load_factor
        return CleaningPlan(
            directory=log.directory,
            segments=dirt.segments,
            first_dirty=dirt.first_dirty,
            rules=Rules(self._doors.clock.now_ms(), config.delete_retention_ms),
            most_keys=int(room / KEY_BYTES),
            segment_bytes=config.segment_bytes,
            index_bytes=config.segment_index_bytes,
            index_interval=config.index_interval_bytes,
            producers=producing.producers_of(log).last_batches(),
            aborted=aborted,
        )


def _paced(work: Callable[[Callable[[int], None]], Outcome], pace: Callable[[int], None]) -> Outcome:
    return work(pace)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError | CorruptBatchError):
        return str(error)
    return f"{type(error).__name__}: {error}"
