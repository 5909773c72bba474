"""All logs of a broker: found at start, created, deleted, checkpointed, closed.

A data directory holds one directory `<topic>-<partition>` for each replica, and beside them

    meta.properties                      which broker it belongs to
    recovery-point-offset-checkpoint     up to where each log is known to be on disk
    log-start-offset-checkpoint          where logs begin that begin within a segment
    cleaner-offset-checkpoint            where compaction goes on
    replication-offset-checkpoint        high watermarks
    .kafka_cleanshutdown                 only between an orderly stop and the next start: nothing needs recovery
    whole-since                          since which registration of the broker nothing was lost (`wholeness`)

A replica that is deleted is renamed to `<topic>-<partition>.<n>.delete` at once and removed in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage import checkpoints, cuts, moving
from dataplane.storage.checkpoints import MetadataError
from dataplane.storage.config import LogConfig
from dataplane.storage.descriptors import Descriptors
from dataplane.storage.directories import Directories
from dataplane.storage.epochs import FILE_NAME as EPOCHS
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import Log
from dataplane.storage.positions import CLEANED_TO, HIGH_WATERMARKS, RECOVERY_POINTS, START_OFFSETS, Key, Positions
from dataplane.storage.wholeness import Wholeness
from dataplane.tasks import Future, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from dataplane.config import BrokerConfig
    from dataplane.doors import Background, Clock, Files

META = "meta.properties"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
DOOMED = ".delete"


class LogManager:
    """Owns every Log. Call `open_all` first."""

    def __init__(self, files: Files, clock: Clock, background: Background, config: BrokerConfig) -> None:
        self._files, self._clock, self._background, self._config = files, clock, background, config
        self._logs: dict[Key, Log] = {}
        self._home: dict[Key, str] = {}  # the data directory of each log
        self._high_watermarks: dict[Key, int] = {}
        self._namesakes: set[Key] = set()  # checkpoints may speak of a log of this name that is gone
        self._positions = {home: Positions(files, home) for home in config.data_dirs}
        self._writing: Future[None] | None = None
        self._start_offsets_wanted: Future[None] | None = None
        self._defaults = LogConfig.from_settings(config.settings)
        self._directories = Directories(files, config.data_dirs)
        self._descriptors = Descriptors(config.settings.log_open_segments_max, background)
        self.wholeness = Wholeness(files, config.data_dirs)
        self._closed_in_order: dict[str, bool] = {}  # directories as they were found

    # --- start and stop -----------------------------------------------------------------------------------------------

    def open_all(self) -> None:
        """Load every log, recovering those that were not closed in order.

        A directory that cannot be read is offline, the others go on. Raises MetadataError where one belongs to another
        broker or process, or none is left.
        """
        for home in self._config.data_dirs:
            self._or_offline(home, self._claim)
        online = tuple(self._directories.online())
        for path in moving.settle(self._files, online):
            self._remove_in_background(path, moving.home_of(path))
        for home in online:
            self._or_offline(home, self._open_home)
        self.wholeness.opened({home: self._closed_in_order[home] for home in self._directories.online()})
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
                self._logs[key].abandon()
            self.wholeness.broken()
            self._directories.fail(home, error)

    def _claim(self, home: str) -> None:
        """The directory is ours, from now on."""
        self._files.make_directory(home)
        self._directories.lock(home)
        path = f"{home}/{META}"
        owner = checkpoints.read_properties(self._files, path).get("broker.id")
        if owner is None:
            self._files.write_file(path, f"version=0\nbroker.id={self._config.id}\n".encode())
        elif owner != str(self._config.id):
            raise MetadataError(f"{path} belongs to broker {owner}, not {self._config.id}")

    def _open_home(self, home: str) -> None:
        files = self._files
        clean = self._closed_in_order[home] = files.exists(f"{home}/{CLEAN_SHUTDOWN}")
        # Gone before anything is written, so that a crash from here on is one.
        files.remove(f"{home}/{CLEAN_SHUTDOWN}")
        files.sync_directory(home)
        recovery_points = checkpoints.read_offsets(files, f"{home}/{RECOVERY_POINTS}")
        start_offsets = checkpoints.read_offsets(files, f"{home}/{START_OFFSETS}")
        cleaned_to = checkpoints.read_offsets(files, f"{home}/{CLEANED_TO}")
        self._namesakes.update(recovery_points, start_offsets)
        self._high_watermarks |= checkpoints.read_offsets(files, f"{home}/{HIGH_WATERMARKS}")
        for name in files.list(home):
            if name.endswith(DOOMED):
                self._remove_in_background(f"{home}/{name}", home)
            elif (key := _key_of(name)) and files.exists(f"{home}/{name}/{PARTITION_METADATA}"):
                self._open(
                    home,
                    key,
                    checkpoints.read_topic_id(files, f"{home}/{name}/{PARTITION_METADATA}"),
                    self._defaults,
                    clean=clean,
                    recovery_point=recovery_points.get(key, 0),
                    start_offset=start_offsets.get(key, 0),
                    cleaned_to=cleaned_to.get(key, 0),
                )

    def _open(
        self,
        home: str,
        key: Key,
        topic_id: UUID,
        config: LogConfig,
        *,
        clean: bool,
        recovery_point: int = 0,
        start_offset: int = 0,
        cleaned_to: int = 0,
    ) -> Log:
        topic, partition = key
        log = Log(
            self._files,
            self._background,
            _directory(home, key),
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            config=config,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=start_offset,
            cleaned_to=cleaned_to,
            descriptors=self._descriptors,
            now_ms=self._clock.now_ms,
        )
        log.on_failure = lambda error: self._directory_failed(home, error)
        self._logs[key] = log
        self._home[key] = home
        self._positions[home].note(key, log, self._high_watermarks.get(key))
        return log

    def close(self) -> None:
        """Flush and close everything; where all of it succeeded the next start needs no recovery."""
        for home in self._directories.online():
            logs = [self._logs[key] for key in self._keys_in(home)]
            for log in logs:
                log.on_failure = None  # what can still be saved of the others is
            self._sync_together(home, logs)
            if all([_closes(log) for log in logs]):  # noqa: C419 - every log is closed, also after a failure
                self._or_offline(home, self._mark_clean)
        self._directories.unlock_all()

    def _sync_together(self, home: str, logs: list[Log]) -> None:
        """With one call. Each of ten thousand logs that were written to would sync eight times, one after the other."""
        unsynced = [log for log in logs if _needs_sync(log)]
        try:
            if unsynced:
                self._files.sync_below(home)
        except OSError:
            return  # each syncs what it can when it is closed
        for log in unsynced:
            log.synced(log.end_offset, log.truncations)

    def _mark_clean(self, home: str) -> None:
        self._write_positions(home)
        self._files.write_file(f"{home}/{CLEAN_SHUTDOWN}", b'{"version":0,"brokerEpoch":-1}')

    # --- logs ---------------------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> Log | None:
        """The log, if this broker has it."""
        return self._logs.get((topic, partition))

    def logs(self) -> list[Log]:
        """All of them, in the order in which they were opened."""
        return list(self._logs.values())

    def create(self, topic: str, partition: int, topic_id: UUID, log_config: LogConfig | None = None) -> Log:
        """A new, empty log in the data directory with the fewest; the one there is, if there is one. Raises OSError."""
        key = (topic, partition)
        existing = self._logs.get(key)
        if existing is not None:
            return existing
        homes = list(self._home.values())
        home = min(self._directories.online(), key=homes.count, default=None)
        if home is None:
            raise LogFailedError("no data directory is left")
        try:
            return self._create(home, key, topic_id, log_config or self._defaults)
        except OSError as error:
            self._directory_failed(home, error)
            raise LogFailedError(error.errno, error.strerror) from error

    def _create(self, home: str, key: Key, topic_id: UUID, config: LogConfig) -> Log:
        directory = _directory(home, key)
        # Without its metadata a directory is what a crash left of an earlier creation.
        self._files.remove_tree(directory)
        self._files.make_directory(directory)
        marks: tuple[str, ...] = ()
        if key in self._namesakes:
            marks = (cuts.write(self._files, directory, (), 0),)
        checkpoints.write_topic_id(self._files, f"{directory}/{PARTITION_METADATA}", topic_id)
        self._files.sync_directory(home)
        log = self._open(home, key, topic_id, config, clean=True)
        log.cut_marks = marks
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Forget a log and remove its files. Harmless when there is none. Raises OSError."""
        key = (topic, partition)
        log = self._logs.pop(key, None)
        if log is None:
            return
        log.abandon()
        self._high_watermarks.pop(key, None)
        self._namesakes.add(key)
        home = self._home.pop(key)
        self._positions[home].forget(key)
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
        checkpoints.write_topic_id(self._files, f"{directory}/{PARTITION_METADATA}", log.topic_id)
        return Log(
            self._files,
            self._background,
            directory,
            topic=log.topic,
            partition=log.partition,
            topic_id=log.topic_id,
            config=log.config,
            clean=True,
            descriptors=self._descriptors,
            now_ms=self._clock.now_ms,
        )

    def finish_move(self, log: Log, future: Log) -> Log:
        """`future`, equal to the log, takes its place: the log to use from now on. Raises OSError, LogFailedError."""
        key, home = (log.topic, log.partition), moving.home_of(future.directory)
        future.close()
        # Epochs whose batches are compacted away are in its checkpoint only.
        checkpoints.write_rows(self._files, f"{future.directory}/{EPOCHS}", log.epochs.entries())
        marks = (cuts.write(self._files, future.directory, (), 0),)  # what checkpoints in `home` say is of another log
        _, doomed = moving.take_place(self._files, future.directory, log.directory)
        log.abandon()
        self._namesakes.add(key)
        self._positions[self._home.pop(key)].forget(key)
        self._remove_in_background(doomed, moving.home_of(doomed))
        moved = self._open(home, key, log.topic_id, log.config, clean=True, start_offset=log.start_offset)
        moved.cut_marks = marks
        for epoch, start in log.epochs.entries():
            if epoch > moved.epochs.newest:
                moved.epochs.begin(epoch, start)  # it has no batch yet, and opening has forgotten it
        return moved

    def cancel_move(self, future: Log) -> None:
        """The copy is not wanted any more."""
        future.abandon()
        self._remove_in_background(future.directory, moving.home_of(future.directory))

    def _remove_in_background(self, path: str, home: str) -> None:
        def remove() -> None:
            self._files.sync_directory(home)  # else the old name could come back, with half of the content
            self._files.remove_tree(path)

        self._background.run(remove)

    # --- periodic work; the owner calls it ----------------------------------------------------------------------------

    def high_watermark(self, topic: str, partition: int) -> int:
        """As checkpointed before the last start; 0 when it was not."""
        return self._high_watermarks.get((topic, partition), 0)

    def note_position(self, log: Log, high_watermark: int | None = None) -> None:
        """What the next checkpoint says of a log: as it is now."""
        key = (log.topic, log.partition)
        home = self._home.get(key)
        if home is not None and self._logs[key] is log:
            self._positions[home].note(key, log, high_watermark)

    def write_checkpoints(self, high_watermarks: Mapping[Key, int]) -> Future[None]:
        """High watermarks, recovery points and start offsets, in the background. Skipped while one is being written."""
        if self._writing is not None and not self._writing.done:
            return resolved(None)
        for key, log in self._logs.items():
            self._positions[self._home[key]].note(key, log, high_watermarks.get(key))
        return self.write_noted()

    def write_noted(self) -> Future[None]:
        """What has changed of what was noted, in the background. Skipped while something is being written."""
        if self._writing is not None and not self._writing.done:
            return resolved(None)
        changes = [(home, self._positions[home], self._positions[home].take()) for home in self._directories.online()]
        if not any(taken.contents or taken.marks for _, _, taken in changes):
            return resolved(None)
        failed: dict[str, OSError] = {}

        def write() -> None:
            for home, positions, taken in changes:
                try:
                    positions.write(taken)
                except OSError as error:
                    failed[home] = error

        def written(future: Future[None]) -> None:
            if future.error is None:
                self._forget_marks([taken.marks for home, _, taken in changes if home not in failed])
            for home, error in failed.items():
                self._directory_failed(home, error)

        self._writing = self._background.run(write)
        self._writing.then(written)
        return self._writing

    def settle_start_offsets(self) -> Future[None]:
        """Where the logs begin now, on disk when the future is resolved. Calls that come meanwhile share the next one."""
        wanted = self._start_offsets_wanted
        if wanted is None:
            wanted = self._start_offsets_wanted = Future()
            if self._writing is None or self._writing.done:
                self._write_start_offsets()
            else:
                self._writing.then(lambda _: self._write_start_offsets())
        return wanted

    def _write_start_offsets(self) -> None:
        wanted, self._start_offsets_wanted = self._start_offsets_wanted, None
        assert wanted is not None
        written = self.write_checkpoints({})

        def settle(future: Future[None]) -> None:
            if future.error is None:
                wanted.resolve(None)
            else:
                wanted.fail(future.error)

        written.then(settle)

    def _write_positions(self, home: str) -> None:
        positions = self._positions[home]
        for key, log in self._logs.items():
            if self._home[key] == home:
                positions.note(key, log, None)
        positions.write(positions.take())

    def _forget_marks(self, marks_by_home: list[dict[str, tuple[str, ...]]]) -> None:
        marks = {directory: names for by_home in marks_by_home for directory, names in by_home.items()}
        if marks:
            for log in self._logs.values():
                log.forget_cut_marks(marks.get(log.directory, ()))

    def apply_retention(self, high_watermark_of: Callable[[Log], int]) -> int:
        """Delete what is old or too much in every log, and forget producers long silent; returns the bytes freed."""
        return sum(self.retain(log, high_watermark_of(log)) for log in self.logs())

    def retain(self, log: Log, high_watermark: int) -> int:
        """The same for one log, as it may be done with a few in each turn."""
        if log.failed:
            return 0
        now_ms = self._clock.now_ms()
        log.expire_producers(now_ms, self._config.settings.producer_id_expiration_ms)
        try:
            return log.apply_retention(now_ms, high_watermark)
        except OSError:
            return 0  # it is marked; the partition's owner sees it at the next append


def _needs_sync(log: Log) -> bool:
    try:
        return not log.failed and log.prepare_close()
    except LogFailedError:
        return False  # it is marked, and not closed in order


def _closes(log: Log) -> bool:
    if log.failed:
        log.abandon()
        return False
    try:
        log.close()
    except OSError:
        return False
    return True


def _directory(home: str, key: Key) -> str:
    return f"{home}/{key[0]}-{key[1]}"


def _key_of(name: str) -> Key | None:
    topic, dash, number = name.rpartition("-")
    return (topic, int(number)) if dash and topic and number.isdigit() else None
