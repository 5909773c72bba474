"""Random histories, compacted again and again, killed between any two file operations, against a dictionary.

Whatever happens: every record that is read stands at the offset and has the content that it was written with; the last
one of every key is there, or was a tombstone that has stayed for as long as was asked; the log ends where it ended; and a
producer that tries again is recognised.
"""

from __future__ import annotations

from random import Random

import pytest

from dataplane.config import Settings
from dataplane.records.batch import Record, build_batch, read_header
from dataplane.storage.checkpoints.producers import Duplicate
from dataplane.storage.log import appending, closing, flushing, producing, reading
from tests.dataplane.storage.cleaning import COMPACT, RETENTION_MS, Cleaning, Clock, Stopped, cleaning, table
from tests.dataplane.storage.support import DIRECTORY, new_files, stage


class History:
    """A log, what was written to it, and what may happen to it."""

    def __init__(self, seed: int, most_keys: int = 10_000) -> None:
        self.random = Random(seed)
        self.files, self.clock = new_files(), Clock()
        self.settings = Settings(log_cleaner_dedupe_buffer_size=most_keys * 200, log_cleaner_io_buffer_load_factor=1.0)
        self.written: dict[int, tuple[bytes | None, bytes | None, int]] = {}  # by offset, and when
        self.last: dict[bytes, int] = {}
        self.sequences: dict[int, int] = {}
        self.last_batches: dict[int, tuple[bytes, int]] = {}
        self.saved = 0  # the recovery point that a checkpoint holds
        self.cleaned_to = 0
        self.of: Cleaning = cleaning(self.files, self.clock, settings=self.settings)

    @property
    def log(self):
        return self.of.log

    # --- what happens -------------------------------------------------------------------------------------------------

    def append(self) -> None:
        random = self.random
        records = []
        for _ in range(random.randint(1, 4)):
            key = f"k{random.randrange(8)}".encode() * random.choice((1, 1, 12))
            value = None if random.random() < 0.25 else random.randbytes(random.choice((0, 5, 40)))
            records.append(Record(key, value, timestamp=self.clock.ms - random.randrange(50)))
        producer = random.choice((None, None, 1, 2, 3))
        how = {"codec": random.choice((0, 0, 1, 2, 3, 4))}
        if producer is not None:
            sequence = self.sequences.get(producer, 0)
            how |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer] = sequence + len(records)
        batch = build_batch(records, now_ms=self.clock.ms, **how)
        retry = bytes(batch)
        base = stage(self.log, batch)
        appending.commit(self.log)
        if producer is not None:
            self.last_batches[producer] = (retry, base)
        for number, record in enumerate(records):
            self.written[base + number] = (record.key, record.value, self.clock.ms)
            self.last[record.key] = base + number

    def wait(self) -> None:
        self.clock.ms += self.random.choice((1, 10, RETENTION_MS // 2, 2 * RETENTION_MS))

    def compact(self) -> None:
        flushing.flush(self.log)
        end = self.log.end_offset
        self.of.high_watermark = self.random.choice((None, None, self.random.randint(0, end)))
        self.of.run()

    def compact_and_be_killed(self) -> None:
        flushing.flush(self.log)
        left = self.random.randrange(1, 90)

        def count(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stopped

        self.files.fault = count
        try:
            self.of.run()
        except Stopped:
            self.files.fault = None
            if self.random.random() < 0.5:
                self.files.crash(self.random)
            self.open(clean=False)
        finally:
            self.files.fault = None

    def restart(self) -> None:
        clean = self.random.random() < 0.5
        if clean:
            closing.close(self.log)
            self.saved, self.cleaned_to = self.log.recovery_point, self.log.cleaned_to
        self.open(clean=clean)

    def checkpoint(self) -> None:
        self.saved, self.cleaned_to = self.log.recovery_point, self.log.cleaned_to

    def open(self, *, clean: bool) -> None:
        if self.random.random() < 0.5:  # what the producers did last is in the log, too
            for name in self.files.list(DIRECTORY):
                if name.endswith(".snapshot"):
                    self.files.remove(f"{DIRECTORY}/{name}")
        how = {"clean": clean, "recovery_point": self.saved, "cleaned_to": self.cleaned_to}
        self.of = cleaning(self.files, self.clock, settings=self.settings, **how)

    def step(self) -> None:
        steps = (self.append,) * 12 + (
            self.wait,
            self.compact,
            self.compact_and_be_killed,
            self.restart,
            self.checkpoint,
        )
        end = max(self.written, default=-1) + 1
        chosen = self.random.choice(steps)
        chosen()
        assert self.log.end_offset == (end if chosen != self.append else max(self.written) + 1)
        assert not self.log.failed

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        read = table(self.log)
        offsets = [offset for offset, _, _ in read]
        assert offsets == sorted(set(offsets))
        for offset, key, value in read:
            assert (key, value) == self.written[offset][:2]
        seen = {key: offset for offset, key, _ in read}
        for key, offset in self.last.items():
            if seen.get(key) == offset:
                continue
            _, value, at = self.written[offset]
            assert value is None, f"the last value of {key!r} at {offset} is gone"
            assert key not in seen, f"{key!r} is back after its tombstone"
            assert self.clock.ms - at >= RETENTION_MS, "a tombstone went before its time"
        assert self.log.size_bytes == sum(segment.size for segment in self.log.segments)
        for start in self.random.sample(range(self.log.end_offset + 1), min(5, self.log.end_offset + 1)):
            found = reading.read(self.log, start, 100, self.log.end_offset, at_least_one=True)
            following = next((offset for offset in offsets if offset >= start), None)
            if found is not None and following is not None:
                assert read_header(found.read()).base_offset <= following

    def check_producers(self) -> None:
        for producer, (batch, base) in self.last_batches.items():
            header = read_header(batch)
            assert producing.producers_of(self.log).check(header) == Duplicate(base)
            follows = header._replace(base_sequence=self.sequences[producer])
            assert producing.producers_of(self.log).check(follows) is None


@pytest.mark.parametrize("seed", range(48))
def test_a_reader_sees_the_last_value_of_every_key(seed):
    history = History(seed, most_keys=(3, 6, 10_000)[seed % 3])
    for _ in range(100):
        history.step()
        history.check()
        history.check_producers()
    for _ in range(8):
        history.append()
    flushing.flush(history.log)
    history.of.high_watermark = None
    history.of.run()
    assert history.of.cleaner.rounds or history.log.cleaned_to
    history.check()
    cleaned = [key for offset, key, _ in table(history.log) if offset < history.log.cleaned_to]
    assert len(cleaned) == len(set(cleaned)), "a key occurs twice in what is clean"
    history.open(clean=False)
    history.check()
    history.check_producers()


@pytest.mark.parametrize("power", [False, True])
def test_killed_before_each_single_file_operation_of_a_round(power):
    """The same round, stopped at its first operation, its second, and so on, until it comes to its end."""
    operations = 0
    while True:
        operations += 1
        history = History(5)
        for _ in range(60):
            history.append()
        flushing.flush(history.log)
        left = operations

        def count(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stopped

        history.files.fault = count
        try:
            history.of.run()
        except Stopped:
            pass
        finally:
            history.files.fault = None
        if left > 0:
            break
        if power:
            history.files.crash()
        history.open(clean=False)
        assert history.log.bytes_cut == 0
        assert history.log.end_offset == max(history.written) + 1
        history.check()
        history.check_producers()
        assert not [name for name in history.files.list(DIRECTORY) if name.endswith((".swap", ".deleted", ".cleaned"))]
        history.of.run()
        history.check()
    assert operations > 100
    assert history.of.cleaner.rounds == 1
    assert len(table(history.log)) < len(history.written) / 3


def test_config_of_the_history_rolls_often():
    assert COMPACT.segment_bytes < 1_000
