"""A cleaner over one log, for tests: in memory, on a clock that the test moves, stopped at any file operation."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from dataplane.config import Settings
from dataplane.records.batch import read_records
from dataplane.storage.cleaner.cleaner import Cleaner
from dataplane.storage.config import LogConfig
from dataplane.storage.log import Log, lookup
from tests.dataplane.storage.support import open_log
from tests.support.memory_files import ImmediateBackground, MemoryFiles

RETENTION_MS = 1_000
COMPACT = LogConfig(
    cleanup_policy="compact",
    retention_ms=-1,
    segment_bytes=600,
    index_interval_bytes=100,
    delete_retention_ms=RETENTION_MS,
    min_cleanable_dirty_ratio=0.0,
)


class Stopped(BaseException):
    """The process is killed here."""


class Loop:
    """A turn is whatever `run` does next."""

    def __init__(self) -> None:
        self.waiting: list = []

    def call_soon(self, callback) -> None:
        self.waiting.append(callback)

    def call_later(self, delay_s, callback):
        return SimpleNamespace(cancel=lambda: None)

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


@dataclass
class Cleaning:
    """One log and its cleaner."""

    files: MemoryFiles
    clock: Clock
    log: Log
    config: LogConfig
    settings: Settings
    high_watermark: int | None = None

    def __post_init__(self) -> None:
        self.loop = Loop()
        self.background = ImmediateBackground()
        doors = SimpleNamespace(loop=self.loop, files=self.files, background=self.background, clock=self.clock)
        logs = SimpleNamespace(logs=lambda: [self.log])
        self.cleaner = Cleaner(doors, logs, lambda: self.settings, self._committed, lambda log: None)

    def _committed(self, log: Log) -> int:
        return log.end_offset if self.high_watermark is None else self.high_watermark

    def run(self) -> None:
        """Rounds, as long as one is worth it."""
        self.cleaner.look()
        self.loop.run()
        assert not self.cleaner.is_busy()


def cleaning(files: MemoryFiles, clock: Clock, config: LogConfig = COMPACT, settings: Settings | None = None, **how):
    log = open_log(files, config=config, **how)
    return Cleaning(files, clock, log, config, settings or Settings())


def table(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """What a reader from the beginning gets."""
    found = []
    for _, batch in lookup.batches(log, log.start_offset, log.end_offset):
        found += [(record.offset, record.key, record.value) for record in read_records(bytes(batch))]
    return found
