"""All logs of a broker: found at start, created, deleted, checkpointed, closed.

A data directory holds one directory `<topic>-<partition>` for each replica, and beside them

    meta.properties                      which broker it belongs to
    recovery-point-offset-checkpoint     up to where each log is known to be on disk
    log-start-offset-checkpoint          where logs begin that begin within a segment
    cleaner-offset-checkpoint            where compaction goes on
    replication-offset-checkpoint        high watermarks
    .kafka_cleanshutdown                 only between an orderly stop and the next start: nothing needs recovery

A replica that is deleted is renamed to `<topic>-<partition>.<n>.delete` at once and removed in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage import checkpoints, cuts
from dataplane.storage.checkpoints import MetadataError
from dataplane.storage.config import LogConfig
from dataplane.storage.descriptors import Descriptors
from dataplane.storage.errors import LogFailedError
from dataplane.storage.log import Log
from dataplane.tasks import Future, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from dataplane.config import BrokerConfig
    from dataplane.doors import Background, Clock, Files

META = "meta.properties"
PARTITION_METADATA = "partition.metadata"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
CLEANED_TO = "cleaner-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
DOOMED = ".delete"

Key = tuple[str, int]


class LogManager:
    """Owns every Log. Call `open_all` first."""

    def __init__(self, files: Files, clock: Clock, background: Background, config: BrokerConfig) -> None:
        self._files, self._clock, self._background, self._config = files, clock, background, config
        self._logs: dict[Key, Log] = {}
        self._home: dict[Key, str] = {}  # the data directory of each log
        self._high_watermarks: dict[Key, int] = {}
        self._namesakes: set[Key] = set()  # checkpoints may speak of a log of this name that is gone
        self._writing: Future[None] | None = None
        self._start_offsets_wanted: Future[None] | None = None
        self._defaults = LogConfig.from_settings(config.settings)
        self._descriptors = Descriptors(config.settings.log_open_segments_max, files, background)

    # --- start and stop -----------------------------------------------------------------------------------------------

    def open_all(self) -> None:
        """Load every log, recovering those that were not closed in order. Raises OSError, MetadataError."""
        for home in self._config.data_dirs:
            self._files.make_directory(home)
            self._claim(home)
            self._open_home(home)

    def _claim(self, home: str) -> None:
        """The directory is ours, from now on."""
        path = f"{home}/{META}"
        owner = checkpoints.read_properties(self._files, path).get("broker.id")
        if owner is None:
            self._files.write_file(path, f"version=0\nbroker.id={self._config.id}\n".encode())
        elif owner != str(self._config.id):
            raise MetadataError(f"{path} belongs to broker {owner}, not {self._config.id}")

    def _open_home(self, home: str) -> None:
        files = self._files
        clean = files.exists(f"{home}/{CLEAN_SHUTDOWN}")
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
        self._logs[key] = log
        self._home[key] = home
        return log

    def close(self) -> None:
        """Flush and close everything; where all of it succeeded the next start needs no recovery."""
        for home in self._config.data_dirs:
            logs = [log for key, log in self._logs.items() if self._home[key] == home]
            if all([_closes(log) for log in logs]):  # noqa: C419 - every log is closed, also after a failure
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
        home = min(self._config.data_dirs, key=homes.count)
        directory = _directory(home, key)
        # Without its metadata a directory is what a crash left of an earlier creation.
        self._files.remove_tree(directory)
        self._files.make_directory(directory)
        marks: tuple[str, ...] = ()
        if key in self._namesakes:
            marks = (cuts.write(self._files, directory, (), 0),)
        checkpoints.write_topic_id(self._files, f"{directory}/{PARTITION_METADATA}", topic_id)
        self._files.sync_directory(home)
        log = self._open(home, key, topic_id, log_config or self._defaults, clean=True)
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
        del self._home[key]
        number = 0
        while self._files.exists(doomed := f"{log.directory}.{number}{DOOMED}"):
            number += 1
        self._files.rename(log.directory, doomed)
        self._remove_in_background(doomed, log.directory.rpartition("/")[0])

    def _remove_in_background(self, path: str, home: str) -> None:
        def remove() -> None:
            self._files.sync_directory(home)  # else the old name could come back, with half of the content
            self._files.remove_tree(path)

        self._background.run(remove)

    # --- periodic work; the owner calls it ----------------------------------------------------------------------------

    def high_watermark(self, topic: str, partition: int) -> int:
        """As checkpointed before the last start; 0 when it was not."""
        return self._high_watermarks.get((topic, partition), 0)

    def write_checkpoints(self, high_watermarks: Mapping[Key, int]) -> Future[None]:
        """High watermarks, recovery points and start offsets, in the background. Skipped while one is being written."""
        if self._writing is not None and not self._writing.done:
            return resolved(None)
        self._high_watermarks.update(high_watermarks)
        known = {key: offset for key, offset in self._high_watermarks.items() if key in self._logs}
        homes = [(home, self._rows(home, known), self._take_marks(home)) for home in self._config.data_dirs]

        def write() -> None:
            for home, rows, marks in homes:
                self._write_rows(home, rows, marks)

        self._writing = self._background.run(write)
        self._writing.then(lambda written: self._forget_marks(written, [marks for _, _, marks in homes]))
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
        homes = [(home, self._rows(home, {}), self._take_marks(home)) for home in self._config.data_dirs]

        def write() -> None:
            for home, rows, marks in homes:
                del rows[HIGH_WATERMARKS]
                if not marks:
                    del rows[RECOVERY_POINTS]
                self._write_rows(home, rows, marks)

        def written(future: Future[None]) -> None:
            self._forget_marks(future, [marks for _, _, marks in homes])
            if future.error is None:
                wanted.resolve(None)
            else:
                wanted.fail(future.error)

        self._writing = self._background.run(write)
        self._writing.then(written)

    def _write_positions(self, home: str) -> None:
        rows = self._rows(home, {})
        del rows[HIGH_WATERMARKS]
        self._write_rows(home, rows, self._take_marks(home))

    def _take_marks(self, home: str) -> dict[str, tuple[str, ...]]:
        """Marks of cuts that rows taken now know of, by directory of the log."""
        return {
            log.directory: log.cut_marks for key, log in self._logs.items() if log.cut_marks and self._home[key] == home
        }

    def _forget_marks(self, written: Future[None], marks_by_home: list[dict[str, tuple[str, ...]]]) -> None:
        marks = {directory: names for by_home in marks_by_home for directory, names in by_home.items()}
        if marks and written.error is None:
            for log in self._logs.values():
                log.forget_cut_marks(marks.get(log.directory, ()))

    def _write_rows(
        self, home: str, rows: Mapping[str, Mapping[Key, int]], marks: Mapping[str, tuple[str, ...]]
    ) -> None:
        for name, offsets in rows.items():
            checkpoints.write_offsets(self._files, f"{home}/{name}", offsets)
        for directory, names in marks.items():
            cuts.remove(self._files, directory, names)

    def _rows(self, home: str, high_watermarks: Mapping[Key, int]) -> dict[str, dict[Key, int]]:
        here = [(key, log) for key, log in self._logs.items() if self._home[key] == home]
        return {
            RECOVERY_POINTS: {key: log.recovery_point for key, log in here},
            START_OFFSETS: {key: log.start_offset for key, log in here if log.start_offset > 0},
            CLEANED_TO: {key: log.cleaned_to for key, log in here if log.cleaned_to > 0},
            HIGH_WATERMARKS: {key: high_watermarks[key] for key, _ in here if key in high_watermarks},
        }

    def apply_retention(self, high_watermark_of: Callable[[Log], int]) -> int:
        """Delete what is old or too much in every log, and forget producers long silent; returns the bytes freed."""
        now_ms = self._clock.now_ms()
        freed = 0
        for log in self.logs():
            if not log.failed:
                log.expire_producers(now_ms, self._config.settings.producer_id_expiration_ms)
                try:
                    freed += log.apply_retention(now_ms, high_watermark_of(log))
                except LogFailedError:
                    continue  # it is marked; the partition's owner sees it at the next append
        return freed


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
