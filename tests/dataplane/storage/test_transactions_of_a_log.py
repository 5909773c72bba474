"""Random transactions of several producers, cuts, rolls, restarts and power cuts against a list of batches.

After every step the log knows what the list says: where readers of what is stable stop, for any high watermark, and what
they have to leave out of any range.
"""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dataplane.records.batch import read_header
from dataplane.records.control import Marker, build_marker
from dataplane.storage.checkpoints import truncation_marks
from dataplane.storage.checkpoints.transactions import AbortedTransaction
from dataplane.storage.log import LogConfig, aborting, appending, closing, cutting, flushing, producing, removing
from tests.dataplane.storage.support import DIRECTORY, batch_of, copy_of, new_files, open_log, stage
from tests.support.memory_files import ImmediateBackground

CONFIG = LogConfig(segment_bytes=500, index_interval_bytes=150)
PRODUCERS = range(4)


def aborted_by(batches, start, bound):
    """Kafka's rule, in the words of its protocol: (producer, first, last, stable) of what a reader of a range leaves out."""
    opened, found = {}, []
    for offset, producer, kind in batches:
        if kind == "data":
            opened.setdefault(producer, offset)
        elif kind is not None and producer in opened:
            first = opened.pop(producer)
            if kind is Marker.ABORT:
                found.append(AbortedTransaction(producer, first, offset, min(opened.values(), default=offset + 1)))
    return [one for one in found if one.first_offset < bound and one.last_offset >= start]


def stable_end(batches, start, high_watermark):
    opened, ends = {}, high_watermark
    for offset, producer, kind in batches:
        if kind == "data":
            opened.setdefault(producer, offset)
        elif kind is not None:
            first = opened.pop(producer, None)
            if first is not None and offset >= high_watermark:
                ends = min(ends, first)
    return max(min([ends, *opened.values()]), min(start, high_watermark))


class TransactionMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.files = new_files()
        self.batches: list[tuple[int, int, object]] = []  # offset, producer, "data", a marker, or None: no transaction
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.durable = 0
        self.high_watermark = 0
        self._open(clean=False)

    def _open(self, *, clean, recovery_point=0):
        if hasattr(self, "log"):
            truncation_marks.remove(self.files, DIRECTORY, self.log.cut_marks)
        self.background = ImmediateBackground()
        self.log = open_log(self.files, self.background, config=CONFIG, clean=clean, recovery_point=recovery_point)

    def _end(self):
        return self.batches[-1][0] + 1 if self.batches else 0

    def _stage(self, producer, batch, kind):
        base = stage(self.log, batch, 0)
        assert base == self._end()
        self.batches.append((base, producer, kind))

    @rule(producers=st.lists(st.sampled_from(PRODUCERS), min_size=1, max_size=6), size=st.integers(0, 120))
    def write_in_transactions(self, producers, size):
        for producer in producers:
            how = {"producer_id": producer, "producer_epoch": 0, "base_sequence": self.sequences[producer]}
            self.sequences[producer] += 1
            self._stage(producer, batch_of(b"x" * size, transactional=True, **how), "data")
        appending.commit(self.log)

    @rule(producer=st.sampled_from(PRODUCERS), marker=st.sampled_from(Marker), repeated=st.booleans())
    def end_a_transaction(self, producer, marker, repeated):
        for _ in range(2 if repeated else 1):
            found = build_marker(marker, producer_id=producer, producer_epoch=0, coordinator_epoch=3, now_ms=5)
            self._stage(producer, found, marker)
        appending.commit(self.log)

    @rule(count=st.integers(1, 3), size=st.integers(0, 120))
    def write_outside_of_transactions(self, count, size):
        for _ in range(count):
            self._stage(-1, batch_of(b"x" * size), None)
        appending.commit(self.log)

    @rule(data=st.data())
    def commit(self, data):
        self.high_watermark = data.draw(st.integers(self.high_watermark, self._end()))

    @rule(held=st.booleans())
    def background_work_stands_still(self, held):
        self.background.held = held
        if not held:
            self.background.release()

    @rule()
    def flush(self):
        flushing.flush(self.log)
        self.durable = len(self.batches)

    @rule(data=st.data())
    def truncate(self, data):
        offset = data.draw(st.integers(max(self.log.start_offset, self.high_watermark), self._end()))
        cutting.truncate(self.log, offset)
        self.batches = [batch for batch in self.batches if batch[0] < offset]
        self.durable = min(self.durable, len(self.batches))

    @rule(data=st.data())
    def give_segments_back(self, data):
        segment = data.draw(st.sampled_from(self.log.segments[:-1] or self.log.segments))
        segment.release()

    @rule(data=st.data())
    def descriptors_of_a_segment_are_wanted(self, data):
        """It may be the active one, which is written to again: as much of its indexes as there is goes to its files."""
        segment = data.draw(st.sampled_from(self.log.segments))
        segment.release()
        if segment.has_unsaved_index():
            self.background.run(segment.index_saver())

    @rule()
    def close_and_open(self):
        self.background.held = False
        self.background.release()
        closing.close(self.log)
        self._open(clean=True)
        self.durable = len(self.batches)

    @rule()
    def die_and_open(self):
        """The process dies, and the machine does not."""
        self._open(clean=False, recovery_point=self.log.recovery_point)

    @rule(seed=st.none() | st.integers(0, 2**16))
    def cut_the_power(self, seed):
        recovery_point = self.log.recovery_point
        self.files.crash(None if seed is None else Random(seed))
        self._open(clean=False, recovery_point=recovery_point)
        self.batches = [batch for batch in self.batches if batch[0] < self.log.end_offset]
        assert len(self.batches) >= self.durable
        self.high_watermark = min(self.high_watermark, self._end())

    @rule(data=st.data())
    def a_follower_has_the_same(self, data):
        if not self.batches or self.log.start_offset:
            return
        files = new_files()
        copy = open_log(files, config=CONFIG)
        appending.stage_replica(copy, memoryview(copy_of(self.log)))
        appending.commit(copy)
        producing.learn_transactions(copy)
        self._compare(copy)

    @invariant()
    def the_log_knows(self):
        producing.learn_transactions(self.log)
        self._compare(self.log)

    def _compare(self, log):
        assert log.transactions.stable_end(self.high_watermark, log.start_offset) == stable_end(
            self.batches, log.start_offset, self.high_watermark
        )
        end = self._end()
        for start, bound in ((0, end), (end // 2, end), (0, end // 2), (end // 3, end // 3 + 2)):
            found = aborting.aborted_between(log, start, bound)
            wanted = aborted_by(self.batches, start, bound)
            assert sorted(found) == sorted(wanted)

    @invariant()
    def there_are_only_files_with_something_in_them(self):
        for name in self.files.list(DIRECTORY):
            if name.endswith(".txnindex"):
                size = len(self.files.read_file(f"{DIRECTORY}/{name}"))
                assert size
                assert size % 34 == 0


TransactionMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestTransactions = TransactionMachine.TestCase


def test_open_transactions_are_known_without_reading_an_idle_log():
    files = new_files()
    log = open_log(files)
    for sequence in range(3):
        batch = batch_of("v", producer_id=7, producer_epoch=0, base_sequence=sequence)
        stage(log, batch)
    appending.commit(log)
    closing.close(log)
    log = open_log(files, clean=True)
    read = []
    files.fault = lambda operation, path: read.append(path) if operation in ("read", "read_file") else None
    producing.learn_transactions(log)
    assert read == [f"{DIRECTORY}/{3:020d}.snapshot"]
    assert log.producer_state.known is None
    assert log.transactions.stable_end(3, 0) == 3


def test_records_that_are_deleted_do_not_end_a_transaction():
    files = new_files()
    log = open_log(files)
    stage(log, batch_of("v", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    stage(log, batch_of("v"))
    appending.commit(log)
    removing.set_start_offset(log, 2)
    producing.expire_producers(log, 10**15, 1)
    producing.expire_producers(log, 10**16, 1)
    assert log.transactions.stable_end(2, log.start_offset) == 2
    assert producing.producers_of(log).may_continue(7, 0)


def abort(log, producer, sequence=0) -> AbortedTransaction:
    """A transaction of one record, and what has to be left out of it."""
    first = stage(
        log, batch_of("v", producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)
    )
    how = {"producer_id": producer, "producer_epoch": 0, "coordinator_epoch": 0, "now_ms": 1}
    last = stage(log, build_marker(Marker.ABORT, **how))
    appending.commit(log)
    return AbortedTransaction(producer, first, last, last + 1)


def killed_before_the_indexes_are_written(files, background, log):
    """A flush says how far the log is trusted, its segment ends there, and the process dies. The log as it is opened next."""
    flushing.flush(log)
    background.held = True
    stage(log, batch_of("v" * 450))
    appending.commit(log)
    assert len(log.segments) == 2
    return open_log(files, config=CONFIG, clean=False, recovery_point=log.recovery_point)


@pytest.mark.parametrize("knows_of_one", [False, True])
def test_what_was_aborted_is_known_after_a_kill_to_a_start_that_trusts_its_segment(knows_of_one):
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=CONFIG)
    expected = [abort(log, 7)] if knows_of_one else []
    stage(log, batch_of("v"))
    appending.commit(log)
    log.active.index_saver()()  # another segment needed its descriptors
    expected.append(abort(log, 8))
    again = killed_before_the_indexes_are_written(files, background, log)
    assert aborting.aborted_between(again, 0, again.end_offset) == expected


def test_what_was_aborted_is_known_of_a_segment_whose_descriptors_were_wanted_when_it_had_been_cut_to_nothing():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=CONFIG)
    stage(log, batch_of("v"))
    appending.commit(log)
    cutting.truncate(log, 0)
    log.active.release()
    if log.active.has_unsaved_index():
        log.active.index_saver()()
    expected = [abort(log, 7)]
    again = killed_before_the_indexes_are_written(files, background, log)
    assert aborting.aborted_between(again, 0, again.end_offset) == expected


def test_a_list_that_is_out_of_date_and_about_to_be_removed_is_not_taken_for_that_in_memory():
    """The log is cut while a thread is at its list, and another transaction is aborted: the two lists are equally long."""
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=CONFIG)
    stage(log, batch_of("v"))
    appending.commit(log)
    abort(log, 7)
    expected = []

    def write(path, content):
        if not expected:
            cutting.truncate(log, 1)
            expected.append(abort(log, 8))
        files.write_file(path, content)
        log.active.release()  # its descriptors are wanted

    assert not log.active.index_saver(write)()
    log.active.index_saver()()
    again = killed_before_the_indexes_are_written(files, background, log)
    assert aborting.aborted_between(again, 0, again.end_offset) == expected


def test_indexes_that_know_of_too_little_are_gone_from_the_disk_before_a_start_trusts_their_segment():
    files = new_files()
    log = open_log(files, config=CONFIG)
    done = []
    files.fault = lambda operation, path: done.append(operation) if operation in ("remove", "sync_directory") else None
    for what in ("data", "indexes", "abort", "nothing", "abort"):
        stage(log, batch_of("v", producer_id=7, producer_epoch=0, base_sequence=len(log.segments), transactional=True))
        if what == "abort":
            stage(log, build_marker(Marker.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0, now_ms=1))
        appending.commit(log)
        if what == "indexes":
            log.active.index_saver()()  # another segment needed its descriptors
        done.append(what)
        flushing.flush(log)
    assert done == ["data", "indexes", *["remove"] * 3, "abort", "sync_directory", "nothing", "abort"]


def test_an_index_that_is_lost_is_made_again():
    files = new_files()
    log = open_log(files, config=CONFIG)
    stage(log, batch_of("v", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    stage(log, build_marker(Marker.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0, now_ms=1))
    for _ in range(8):
        stage(log, batch_of("v" * 100))
    appending.commit(log)
    closing.close(log)
    name = f"{DIRECTORY}/{0:020d}.txnindex"
    assert files.read_file(name) == b"\0\0" + b"".join(n.to_bytes(8) for n in (7, 0, 1, 2))
    for content in (b"torn", b""):
        files.write_file(name, content) if content else files.remove(name)
        log = open_log(files, config=CONFIG, clean=True)
        for segment in log.segments:
            segment.has_aborted = segment.base_offset == 0
        log.last_aborted = log.end_offset
        assert aborting.aborted_between(log, 0, 5) == [AbortedTransaction(7, 0, 1, 2)]
        closing.close(log)
    header = read_header(batch_of("v"))
    assert header.producer_id < 0
