"""Random appends, reads, cuts, restarts and power cuts against a list of batches.

The model knows three prefixes: staged, committed, and what is certainly on disk. After a crash the log may hold any
prefix between the last two, batch by batch, and nothing else.
"""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dataplane.records.batch import split_batches
from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.log import (
    LogConfig,
    OffsetOutOfRangeError,
    appending,
    closing,
    cutting,
    flushing,
    reading,
    removing,
)
from tests.dataplane.storage.support import DIRECTORY, batch_of, new_files, open_log, stage
from tests.support.memory_files import ImmediateBackground

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)


class LogMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.files = new_files()
        self.epoch = 0
        self.batches: list[tuple[int, int, bytes]] = []  # base, next, bytes: committed
        self.staged: list[tuple[int, int, bytes]] = []
        self.durable = 0  # how many of the batches are on disk for certain
        self.start = 0
        self.first = 0  # where the log would start again if it were empty
        self._open(clean=False)

    def _open(self, *, clean: bool, recovery_point: int = 0):
        if hasattr(self, "log"):  # the checkpoints were written a moment ago, and so know of every cut
            truncation_marks.remove(self.files, DIRECTORY, self.log.cut_marks)
        self.background = ImmediateBackground()
        self.log = open_log(
            self.files,
            self.background,
            config=CONFIG,
            clean=clean,
            recovery_point=recovery_point,
            start_offset=self.start,
        )

    def _end(self) -> int:
        return self.batches[-1][1] if self.batches else self.first

    # --- what may happen ----------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 4), size=st.integers(0, 300), staged=st.integers(1, 6))
    def append_as_leader(self, count, size, staged):
        for _ in range(staged):
            batch = batch_of(*[b"x" * size] * count)
            base = stage(self.log, batch, self.epoch)
            assert base == (self.staged[-1][1] if self.staged else self._end())
            self.staged.append((base, base + count, bytes(batch)))
        self._commit()

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=5), cut=st.integers(0, 40))
    def append_as_follower(self, counts, cut):
        base, data = self._end(), bytearray()
        for count in counts:
            batch = batch_of(*["r"] * count, base_offset=base, leader_epoch=self.epoch)
            self.staged.append((base, base + count, bytes(batch)))
            data += batch
            base += count
        appending.stage_replica(self.log, memoryview(data + data[:cut]))  # a partial batch behind it is left out
        self._commit()

    def _commit(self):
        assert self.log.end_offset == self._end()
        assert self.log.staged_end == self.staged[-1][1]
        appending.commit(self.log)
        self.batches += self.staged
        self.staged = []

    @rule()
    def begin_an_epoch(self):
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.log.end_offset)

    @rule(held=st.booleans())
    def background_work_stands_still(self, held):
        """Sealed segments are synced, and removed ones deleted, later or never."""
        self.background.held = held
        if not held:
            self.background.release()

    @rule()
    def flush(self):
        flushing.flush(self.log)
        assert self.log.recovery_point == self._end()
        self.durable = len(self.batches)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data):
        offset = data.draw(st.integers(self.start, self._end()))
        cutting.truncate(self.log, offset)
        self.batches = [batch for batch in self.batches if batch[1] <= offset]
        self.durable = min(self.durable, len(self.batches))
        # Cutting within a batch takes the batch; cutting in front of all leaves the offset.
        if not self.batches:
            self.first = self.log.end_offset
            assert self.first <= offset
        self.start = min(self.start, self._end())

    @rule(offset=st.integers(0, 1000))
    def reset(self, offset):
        cutting.reset(self.log, offset)
        self.batches, self.durable, self.start, self.first = [], 0, offset, offset

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def move_the_start(self, data):
        self.start = data.draw(st.integers(self.start, self._end()))
        removing.set_start_offset(self.log, self.start)
        gone = [batch for batch in self.batches if batch[1] <= self.start]
        kept = {base for base, _, _ in self._in_log()}
        removed = [batch for batch in gone if batch[0] not in kept]
        assert removed == gone[: len(removed)], "only the oldest go"
        self.durable = max(0, self.durable - len(removed))
        self.batches = self.batches[len(removed) :]
        if not self.batches:
            self.first = self.start

    @rule()
    def close_and_open(self):
        closing.close(self.log)
        self._open(clean=True)
        self.durable = len(self.batches)
        assert self.log.bytes_cut == 0

    @rule()
    def kill_and_open(self):
        """The process dies, the system lives: nothing committed is lost."""
        recovery_point = self.log.recovery_point
        self._open(clean=False, recovery_point=recovery_point)

    @rule(seed=st.none() | st.integers(0, 2**16))
    def cut_the_power(self, seed):
        recovery_point = self.log.recovery_point
        self.files.crash(None if seed is None else Random(seed))
        self._open(clean=False, recovery_point=recovery_point)
        left = self._in_log()
        assert self.batches[: len(left)] == left
        if (
            len(left) < self.durable
        ):  # what is left ended before the log's start, as it is known to be: begun anew there
            assert not left
            assert self.log.end_offset == self.start >= self.batches[self.durable - 1][1]
        if left or self.batches:
            self.batches = left
        self.durable = len(left)
        self.start = self.log.start_offset
        if not left:
            self.first = self.log.end_offset

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _in_log(self) -> list[tuple[int, int, bytes]]:
        """Everything in the files, from the first segment on."""
        found = []
        for segment in self.log.segments:
            data = segment.file.read(0, segment.size)
            found += [(header.base_offset, header.next_offset, bytes(batch)) for header, batch in split_batches(data)]
        return found

    @invariant()
    def the_files_hold_what_the_model_holds(self):
        assert self._in_log() == self.batches
        assert self.log.end_offset == self.log.staged_end == self._end()
        assert self.log.start_offset == self.start
        assert self.log.size_bytes == sum(len(batch) for _, _, batch in self.batches)

    @invariant()
    def epochs_lie_within_the_log(self):
        entries = self.log.epochs.entries()
        assert entries == sorted(set(entries))
        assert all(start <= self.log.end_offset for _, start in entries)

    @rule(data=st.data())
    def read(self, data):
        end = self._end()
        offset = data.draw(st.integers(max(0, self.start - 2), end + 2))
        bound = data.draw(st.integers(offset, end + 2) | st.just(end))
        max_bytes = data.draw(st.integers(0, 2000))
        at_least_one = data.draw(st.booleans())
        if not self.start <= offset <= end:
            try:
                reading.read(self.log, offset, max_bytes, bound, at_least_one=at_least_one)
            except OffsetOutOfRangeError:
                return
            raise AssertionError("read outside of the log")
        found = reading.read(self.log, offset, max_bytes, bound, at_least_one=at_least_one)
        wanted = [batch for batch in self.batches if batch[1] > offset and batch[1] <= bound]
        if found is None:
            assert not wanted or (len(wanted[0][2]) > max_bytes and not at_least_one)
            return
        got = found.read()
        assert len(got) == found.size > 0
        parts = [bytes(batch) for _, batch in split_batches(got)]
        assert b"".join(parts) == got, "whole batches"
        assert parts == [batch for _, _, batch in wanted[: len(parts)]]
        assert found.size <= max_bytes or (at_least_one and len(parts) == 1)

    @rule(at=st.integers(0, 10_000), value=st.binary(min_size=1, max_size=20))
    def damage_an_index_of_a_closed_log(self, at, value):
        closing.close(self.log)
        self.durable = len(self.batches)
        names = [name for name in self.files.list(DIRECTORY) if name.endswith("index")]
        if names:
            content = self.files.content(f"{DIRECTORY}/{names[at % len(names)]}")
            content[at % (len(content) + 1) :] = value
        self._open(clean=True)


class LongLogMachine(LogMachine):
    """The same, for minutes."""


LogMachine.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestLog = LogMachine.TestCase
LongLogMachine.TestCase.settings = settings(max_examples=5000, stateful_step_count=50, deadline=None)
# Three minutes on a quiet machine; Hypothesis calls it flaky, and says nothing of time, where the limit interrupts it.
TestLogForLong = pytest.mark.long(pytest.mark.timeout(3600)(LongLogMachine.TestCase))
