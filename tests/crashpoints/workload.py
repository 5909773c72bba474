"""A writer that does everything a log can do, in an order that a seed decides, and says what it promises meanwhile."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.config import BrokerConfig, Settings
from dataplane.records.batch import Record, build_batch, read_header
from dataplane.storage.config import LogConfig
from dataplane.storage.log import appending, cutting, flushing, lookup, removing, rolling
from dataplane.storage.manager import LogManager
from dataplane.tasks import Future
from tests.crashpoints.promises import Promise

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.storage.log import Log
    from tests.support.faulty_files import FaultyFiles

HOME = "/data"
CONFIG = LogConfig(segment_bytes=420, index_interval_bytes=100, retention_ms=-1, retention_bytes=900)
BROKER = BrokerConfig(
    1, (HOME,), ("127.0.0.1", 0), settings=Settings(log_segment_bytes=420, log_index_interval_bytes=100)
)
Key = tuple[str, int]


class StoppedClock:
    """Time stands still."""

    def now_ms(self) -> int:
        return 1_000_000

    def monotonic(self) -> float:
        return 1000.0


class Jobs:
    """A background door whose work is done when the script says so, in an order of its own."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._waiting: list[tuple[Callable[[], object], Future]] = []

    def run(self, work: Callable[[], object]) -> Future:
        future: Future = Future()
        self._waiting.append((work, future))
        return future

    def some(self) -> None:
        for _ in range(self._random.randint(0, len(self._waiting))):
            self._one()

    def all(self) -> None:
        while self._waiting:
            self._one()

    def _one(self) -> None:
        work, future = self._waiting.pop(self._random.randrange(len(self._waiting)))
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - the future carries it
            future.fail(error)
        else:
            future.resolve(value)


def open_manager(files: FaultyFiles, jobs: Jobs) -> LogManager:
    """All logs there are, as a broker that starts opens them."""
    manager = LogManager(files, StoppedClock(), jobs, BROKER)
    manager.open_all()
    for log in manager.logs():
        rolling.configure(log, CONFIG)
    return manager


class Workload:
    """`step` does one thing. `promises` says at any moment, also within a step, what has to be kept."""

    def __init__(self, files: FaultyFiles, seed: int) -> None:
        self.random = Random(seed)
        self.files = files
        self.jobs = Jobs(self.random)
        self.promises: dict[Key, list[Promise]] = {}  # the present one is the last
        self.now = "start"
        self._number = 0
        self._ids = 0
        self._epoch = 0
        self._producer_epoch = 0
        self._sequences: dict[tuple[UUID, int], int] = {}
        self.manager = open_manager(files, self.jobs)

    def step(self) -> None:
        """Do one thing. `now` is its name."""
        alive = [key for key in self.promises if self.promises[key][-1].is_alive]
        if not alive:
            name, work = "create", self._create
        else:
            name = self.random.choices(list(_STEPS), [weight for weight, _ in _STEPS.values()])[0]
            work = getattr(self, _STEPS[name][1])
        self.now = name
        work()
        if self.random.random() < 0.5:
            self.now = f"background work after {name}"
            self.jobs.some()

    # --- steps --------------------------------------------------------------------------------------------------------

    def _any(self) -> tuple[Key, Promise, Log]:
        key = self.random.choice([key for key in self.promises if self.promises[key][-1].is_alive])
        promise = self.promises[key][-1]
        assert promise.log is not None
        return key, promise, promise.log

    def _create(self) -> None:
        key = (self.random.choice("ab"), self.random.randrange(2))
        known = self.promises.setdefault(key, [])
        if known and known[-1].is_alive:
            return
        self._ids += 1
        promise = Promise(UUID(int=self._ids), is_alive=False)
        known.append(promise)
        promise.log = self.manager.create(*key, promise.topic_id, CONFIG)
        promise.is_alive = True

    def _delete(self) -> None:
        if self.random.random() < 0.5:
            return
        key, promise, _ = self._any()
        promise.is_alive, promise.log = False, None
        self.manager.delete(*key)

    def _append(self) -> None:
        _, promise, log = self._any()
        for _ in range(self.random.randint(1, 4)):
            self._stage(promise, log)
        appending.commit(log)
        promise.records |= promise.coming
        promise.coming = {}

    def _stage(self, promise: Promise, log: Log) -> None:
        values, records = [], []
        for _ in range(self.random.randint(1, 3)):
            self._number += 1
            time = 1000 + self._number * 10
            values.append(b"%s%d@%d" % (b"x" * self.random.randint(0, 40), self._number, time))
            records.append(Record(None, values[-1], (), time))
        producer: dict[str, int] = {}
        if self.random.random() < 0.5:
            producer_id = self.random.randrange(2)
            place = (promise.topic_id, producer_id)
            sequence = self._sequences.get(place, 0)
            producer = {"producer_id": producer_id, "producer_epoch": self._producer_epoch, "base_sequence": sequence}
            self._sequences[place] = sequence + len(records)
        batch = build_batch(records, now_ms=0, **producer)
        base, epoch = log.staged_end, max(self._epoch, log.epochs.latest())
        promise.coming |= {base + at: (value, epoch) for at, value in enumerate(values)}
        appending.stage(log, memoryview(batch), read_header(batch), epoch)

    def _new_epoch(self) -> None:
        _, _, log = self._any()
        self._epoch += 1
        log.epochs.begin(self._epoch, log.end_offset)

    def _truncate(self) -> None:
        _, promise, log = self._any()
        if log.end_offset == log.start_offset:
            return
        offset = self.random.randint(max(log.start_offset, log.end_offset - 12), log.end_offset)
        # Within a batch the whole batch goes.
        offset = min(
            [
                offset,
                *(
                    h.base_offset
                    for h, _ in lookup.batches(log, log.start_offset, log.end_offset)
                    if h.base_offset <= offset < h.next_offset
                ),
            ]
        )
        promise.leaving_from = offset
        promise.settled_start = min(promise.settled_start, offset)
        if self.random.random() < 0.5:
            cutting.truncate(log, offset)
        else:
            self._truncate_in_steps(log, offset)
        promise.leaving_from = None
        promise.records = {at: record for at, record in promise.records.items() if at < offset}
        promise.ghosts = {at: records for at, records in promise.ghosts.items() if at < offset}
        promise.start = min(promise.start, log.start_offset)
        promise.settled_start = min(promise.settled_start, log.start_offset)
        self._fence_producers()

    def _truncate_in_steps(self, log: Log, offset: int) -> None:
        """As a follower does, with other work in between."""
        mark = cutting.mark_of_cut(log, offset)
        if mark is not None:
            mark.write()
        self.jobs.some()
        cutting.cut(log, offset, mark)
        if self.random.random() < 0.5:
            self.manager.checkpoints.write({})
        self.jobs.some()
        if self.random.random() < 0.3:
            flushing.flush(log)
        work = log.cut_work
        if work is not None:
            work()
            cutting.cut_settled(log, work)

    def _reset(self) -> None:
        if self.random.random() < 0.6:
            return
        _, promise, log = self._any()
        start = max(0, log.end_offset + self.random.randint(-30, 30))
        promise.leaving_from = 0
        promise.settled_start = 0
        cutting.reset(log, start)
        promise.leaving_from = None
        promise.records, promise.ghosts, promise.start = {}, {}, start
        self._fence_producers()

    def _fence_producers(self) -> None:
        """Nobody knows what is left of their batches: they begin again, as a client does after such a thing."""
        self._producer_epoch += 1
        self._sequences.clear()

    def _retention(self) -> None:
        # What goes is already the log's to say while it goes: its start offset moves first.
        for log in self.manager.logs():
            limit = log.end_offset - self.random.randint(0, 3)  # drawn whether it is asked for or not: seeds are kept
            self.manager.retain(log, lambda _, limit=limit: limit)
        for promises in self.promises.values():
            if promises[-1].is_alive and promises[-1].log is not None:
                promises[-1].drop_front(promises[-1].log.start_offset)

    def _delete_records(self) -> None:
        _, promise, log = self._any()
        offset = self.random.randint(log.start_offset, log.end_offset)
        removing.set_start_offset(log, offset)
        promise.drop_front(log.start_offset)
        self.manager.checkpoints.note(log)
        settled = self.manager.checkpoints.settle()

        def on_disk(_: Future) -> None:
            cut_at = promise.leaving_from  # from its mark on the start is not believed, as if the cut had been made
            is_cut = cut_at is not None and cut_at < offset
            if promise.is_alive and promise.start >= offset and not is_cut:  # nor reset since
                promise.settled_start = max(promise.settled_start, offset)

        settled.then(on_disk)

    def _flush(self) -> None:
        _, _, log = self._any()
        flushing.flush(log)

    def _checkpoint(self) -> None:
        logs = self.manager.logs()
        self.manager.checkpoints.write({(log.topic, log.partition): log.end_offset for log in logs})

    def _jobs(self) -> None:
        self.jobs.all()

    def _restart(self) -> None:
        """An orderly stop, or none, and a start on what there is."""
        if self.random.random() < 0.6:
            self.jobs.all()
            self.manager.close()
            self.jobs.all()
        self.jobs = Jobs(self.random)
        for promises in self.promises.values():
            promises[-1].log = None
        self.manager = open_manager(self.files, self.jobs)
        for key, promises in self.promises.items():
            promise = promises[-1]
            if promise.is_alive:
                log = promise.log = self.manager.get(*key)
                assert log is not None, f"{key} is gone"
                # Without a checkpoint a log begins where its first segment does: that much is back.
                for offset in range(log.start_offset, promise.start):
                    promise.records[offset] = promise.ghosts[offset][-1]
                promise.start = log.start_offset
                self._fence_producers()


_STEPS: dict[str, tuple[int, str]] = {
    "append": (30, "_append"),
    "new epoch": (4, "_new_epoch"),
    "truncate": (4, "_truncate"),
    "reset": (2, "_reset"),
    "retention": (4, "_retention"),
    "delete records": (3, "_delete_records"),
    "flush": (3, "_flush"),
    "checkpoint": (4, "_checkpoint"),
    "background work": (3, "_jobs"),
    "create": (3, "_create"),
    "delete": (2, "_delete"),
    "restart": (2, "_restart"),
}
"""Weight and method."""
