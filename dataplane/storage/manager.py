"""All logs of a broker: found at start, created, moved, deleted, closed.

A data directory holds one directory `<topic>-<partition>` for each replica, and beside them

    meta.properties                      which broker it belongs to
    recovery-point-offset-checkpoint     up to where each log is known to be on disk
    log-start-offset-checkpoint          where logs begin that begin within a segment
    cleaner-offset-checkpoint            where compaction goes on
    replication-offset-checkpoint        high watermarks
    .kafka_cleanshutdown                 only between an orderly stop and the next start: nothing needs recovery
    whole-since                          since which registration of the broker nothing was lost (`unclean_loss`)

A replica that is deleted is renamed to `<topic>-<partition>.<n>.delete` at once and removed in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage import moving
from dataplane.storage.checkpoints import formats, truncation_marks
from dataplane.storage.checkpoints.epochs import FILE_NAME as EPOCHS
from dataplane.storage.checkpoints.schedule import CheckpointSchedule
from dataplane.storage.closing import close_together
from dataplane.storage.config import LogConfig
from dataplane.storage.directories import Directories
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import Log, Shared, closing, open_log, producing, removing
from dataplane.storage.log.opening import NOTHING, LastKnown
from dataplane.storage.producer_budget import ProducerBudgets
from dataplane.storage.segments.descriptors import Descriptors
from dataplane.storage.startup.founding import (
    PARTITION_METADATA,
    Founding,
    found,
)
from dataplane.storage.startup.unclean_loss import UncleanLoss
from dataplane.storage.unhurried import Unhurried

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.config import BrokerConfig
    from dataplane.doors import Background, Clock, Files
    from dataplane.storage.checkpoints.lines import Key
    from dataplane.storage.unhurried import Later
    from dataplane.tasks import Future

DOOMED = ".delete"
_RESTING_REMOVALS = 1_000
"""With more waiting, room on the disk matters more than going unnoticed."""


class LogManager:
    """Owns every Log. Call `open_all` first. `later`: `Loop.call_later`, for what can wait (`Unhurried`, `Descriptors`)."""

    def __init__(
        self, files: Files, clock: Clock, background: Background, config: BrokerConfig, later: Later | None = None
    ) -> None:
        self._files, self._clock, self._config = files, clock, config
        self._logs: dict[Key, Log] = {}
        self._home: dict[Key, str] = {}  # the data directory of each log
        self._count = dict.fromkeys(config.data_dirs, 0)  # logs in each
        self._defaults = LogConfig.from_settings(config.settings)
        self._directories = Directories(files, config.data_dirs, config.id)
        descriptors = Descriptors(config.settings.log_open_segments_max, background, later)
        of_segments = Unhurried(background, later, _RESTING_REMOVALS)
        self._shared = Shared(files, background, descriptors, clock.now_ms, of_segments)
        self._removals = Unhurried(background, later, _RESTING_REMOVALS)  # of whole directories, which take longer
        self._settling = Unhurried(background, later)
        self.producer_budgets = ProducerBudgets(config.settings.producer_state_bytes_per_instance)
        self.checkpoints = CheckpointSchedule(
            files, background, self._directories, self._logs, self._directory_failed, self._settle
        )
        self.unclean_loss = UncleanLoss(files, config.data_dirs)

    # --- start and stop -----------------------------------------------------------------------------------------------

    def open_all(self) -> None:
        """Load every log, recovering those that were not closed in order.

        A directory that cannot be read is offline, the others go on. Raises MetadataError where one belongs to another
        broker or process, or none is left.
        """
        for home in self._config.data_dirs:
            self._or_offline(home, self._directories.claim)
        online = tuple(self._directories.online())
        for path in moving.settle(self._files, online):
            self._remove_in_background(path, moving.home_of(path))
        for home in online:
            self._or_offline(home, self._open_home)
        self.unclean_loss.opened()
        self._directories.check()

    def _or_offline(self, home: str, work: Callable[[str], None]) -> None:
        try:
            work(home)
        except OSError as error:
            self._directory_failed(home, error)

    # --- directories --------------------------------------------------------------------------------------------------

    def directories(self) -> list[tuple[str, str | None]]:
        """The data directories, each with what took it offline, or None."""
        return self._directories.all()

    def has_offline_directories(self) -> bool:
        """Whether logs may exist that this broker cannot see."""
        return self._directories.any_failed()

    def on_directory_failure(self, callback: Callable[[str, str, list[Key]], None]) -> None:
        """Hear of a directory that goes offline: its path, why, and whose logs were in it."""
        self._directories.on_failure(lambda home, text: callback(home, text, self._keys_in(home)))

    def _keys_in(self, home: str) -> list[Key]:
        return [key for key, place in self._home.items() if place == home]

    def _directory_failed(self, home: str, error: OSError) -> None:
        if not self._directories.has_failed(home):
            for key in self._keys_in(home):
                closing.abandon(self._logs[key], waits=False)  # the disk may never say how it went
            self.unclean_loss.broken()
            self._directories.fail(home, error)

    def _open_home(self, home: str) -> None:
        files = self._files
        clean = self._directories.take_clean_mark(home)
        self.unclean_loss.found(home, in_order=clean)
        known = self.checkpoints.read(home)
        for name in files.list(home):
            if name.endswith(DOOMED):
                self._remove_in_background(f"{home}/{name}", home)
            elif (key := _key_of(name)) and (topic_id := self._topic_id(f"{home}/{name}")) is not None:
                log = self._open(
                    home,
                    key,
                    topic_id,
                    self._defaults,
                    clean=clean,
                    last_known=known.of(key),
                )
                if not files.exists(f"{log.directory}/{PARTITION_METADATA}"):
                    log.founding = Founding(files, log.directory, topic_id, log.cut_marks)

    def _topic_id(self, directory: str) -> UUID | None:
        """Whose replica this is; None: what a crash left of a creation."""
        path = f"{directory}/{PARTITION_METADATA}"
        if self._files.exists(path):
            return formats.read_topic_id(self._files, path)
        return found(self._files, directory)

    def _open(
        self,
        home: str,
        key: Key,
        topic_id: UUID,
        config: LogConfig,
        *,
        clean: bool,
        is_new: bool = False,
        last_known: LastKnown = NOTHING,
    ) -> Log:
        topic, partition = key
        log = open_log(
            self._shared,
            _directory(home, key),
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            config=config,
            clean=clean,
            is_new=is_new,
            last_known=last_known,
            newcomers=self.producer_budgets.newcomers_of(topic),
        )
        log.on_failure = lambda error: self._directory_failed(home, error)
        self._logs[key] = log
        if key in self._home:
            self._count[self._home[key]] -= 1
        self._home[key] = home
        self._count[home] += 1
        self.checkpoints.opened(log)
        self.producer_budgets.opened(log)
        return log

    def close(self) -> None:
        """Flush and close everything; where all of it succeeded the next start needs no recovery."""
        for home in self._directories.online():
            logs = [self._logs[key] for key in self._keys_in(home)]
            if close_together(self._files, home, logs):
                self._or_offline(home, self._mark_clean)
        self._directories.unlock_all()

    def _mark_clean(self, home: str) -> None:
        self.checkpoints.write_last(home, [self._logs[key] for key in self._keys_in(home)])
        self._directories.mark_clean(home)

    # --- logs ---------------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> Log | None:
        """The log, if this broker has it."""
        return self._logs.get((topic, partition))

    def logs(self) -> list[Log]:
        """All of them, in the order in which they were opened."""
        return list(self._logs.values())

    def create(self, topic: str, partition: int, topic_id: UUID, log_config: LogConfig | None = None) -> Log:
        """A new, empty log in the data directory with the fewest; the one there is, if there is one. Raises OSError.

        It is there when this returns, and on disk some time after its first record (see `founding`).
        """
        key = (topic, partition)
        existing = self._logs.get(key)
        if existing is not None:
            return existing
        home = min(self._directories.online(), key=self._count.__getitem__, default=None)
        if home is None:
            raise LogFailedError("no data directory is left")
        try:
            return self._create(home, key, topic_id, log_config or self._defaults)
        except OSError as error:
            self._directory_failed(home, error)
            raise LogFailedError(error.errno, error.strerror) from error

    def _create(self, home: str, key: Key, topic_id: UUID, config: LogConfig) -> Log:
        directory = _directory(home, key)
        self._files.remove_tree(directory)  # what a crash left of an earlier creation
        self._files.make_directory(directory)
        marks = (truncation_marks.next_name((), self.checkpoints.marks_gone),) if self.checkpoints.speak_of(key) else ()
        founding = Founding(self._files, directory, topic_id, marks)
        founding.begin()
        log = self._open(home, key, topic_id, config, clean=True, is_new=True)
        log.cut_marks = marks
        log.founding = founding
        return log

    def _settle(self, log: Log) -> None:
        """It has records now: have its directory on disk some time."""
        founding = log.founding
        if founding is None or founding.is_under_way:
            return

        def settled(future: Future[None]) -> None:
            founding.is_under_way = False
            if isinstance(future.error, OSError) and not log.failed:
                self._directory_failed(moving.home_of(log.directory), future.error)

        settling = self._settling.run(founding.settle, lambda: founding.is_over)
        founding.is_under_way = True
        settling.then(settled)

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log and remove its files. Harmless when there is none. Raises OSError."""
        key = (topic, partition)
        log = self._logs.pop(key, None)
        if log is None:
            return
        home = self._home.pop(key)
        if self._directories.has_failed(home):
            closing.abandon(log, waits=False)  # nor will another be made there
        else:
            closing.withdraw(log)
        self.checkpoints.deleted(log)
        self.producer_budgets.deleted(log)
        self._count[home] -= 1
        try:
            doomed = moving.unused(self._files, log.directory, DOOMED)
            self._files.rename(log.directory, doomed)
        except OSError as error:
            self._directory_failed(home, error)
            raise
        self._remove_in_background(doomed, log.directory.rpartition("/")[0])

    # --- moving a log to another data directory (see `moving`) ----------------------------------------------------------

    def begin_move(self, log: Log, home: str) -> Log:
        """An empty log in `home` that the caller fills until it is like this one. Raises OSError."""
        directory = moving.new_future(self._files, home, log.directory)
        self._files.write_file(f"{directory}/{PARTITION_METADATA}", formats.topic_id_content(log.topic_id))
        return open_log(
            self._shared,
            directory,
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            config=log.config,
            clean=True,
        )

    def finish_move(self, log: Log, future: Log) -> Log:
        """`future`, equal to the log, takes its place: the log to use from now on. Raises OSError, LogFailedError."""
        key, home = (log.topic, log.partition), moving.home_of(future.directory)
        closing.close(future)
        # Epochs whose batches are compacted away are in its checkpoint only.
        formats.write_rows(self._files, f"{future.directory}/{EPOCHS}", log.epochs.entries())
        # What checkpoints in `home` say is of another log.
        marks = (truncation_marks.write(self._files, future.directory, (), 0, above=self.checkpoints.marks_gone),)
        try:
            if log.founding is not None:
                log.founding.settle()  # a start that finds the log and its copy beside each other believes the log
        except OSError as error:
            raise log.fail(error) from error
        closing.withdraw(log)  # and what is still to be done for it, in the background, leaves its directory alone
        _, doomed = moving.take_place(self._files, future.directory, log.directory)
        self.checkpoints.moved_away(log)
        self._remove_in_background(doomed, moving.home_of(doomed))
        moved = self._open(
            home, key, log.topic_id, log.config, clean=True, last_known=LastKnown(start_offset=log.start_offset)
        )
        moved.cut_marks = marks
        for epoch, start in log.epochs.entries():
            if epoch > moved.epochs.newest:
                moved.epochs.begin(epoch, start)  # it has no batch yet, and opening has forgotten it
        return moved

    def cancel_move(self, future: Log) -> None:
        """The copy is not wanted any more."""
        closing.withdraw(future)
        self._remove_in_background(future.directory, moving.home_of(future.directory))

    def _remove_in_background(self, path: str, home: str) -> None:
        def remove() -> None:
            self._files.sync_directory(home)  # else the old name could come back, with half of the content
            self._files.remove_tree(path)

        self._removals.run(remove)

    # --- periodic work; the owner calls it ----------------------------------------------------------------------------

    def apply_retention(self, limit_of: Callable[[Log], int]) -> int:
        """Delete what is old or too much in every log, and forget producers long silent; returns the bytes freed."""
        return sum(self.retain(log, limit_of) for log in self.logs())

    def retain(self, log: Log, limit_of: Callable[[Log], int]) -> int:
        """The same for one log, as it may be done with a few in each turn.

        `limit_of` says from which offset on all is kept. It may read the log and raise OSError, and is asked only where something
        would go.
        """
        if log.failed:
            return 0
        now_ms = self._clock.now_ms()
        producing.expire_producers(log, now_ms, self._config.settings.producer_id_expiration_ms)
        try:
            return removing.apply_retention(log, now_ms, limit_of(log)) if removing.is_due(log, now_ms) else 0
        except OSError:
            return 0  # a log that failed is marked, and the partition's owner sees it at the next append


def _directory(home: str, key: Key) -> str:
    return f"{home}/{key[0]}-{key[1]}"


def _key_of(name: str) -> Key | None:
    topic, dash, number = name.rpartition("-")
    return (topic, int(number)) if dash and topic and number.isdigit() else None
