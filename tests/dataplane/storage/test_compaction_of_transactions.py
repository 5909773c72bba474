"""Compaction and transactions: what was aborted goes, what was committed counts, markers stay as long as somebody needs them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.records.batch import Record, build_batch, read_records
from dataplane.records.control import Marker, build_marker
from dataplane.storage.checkpoints.transactions import AbortedTransaction
from dataplane.storage.log import aborting, appending, closing, flushing, lookup, producing, rolling
from tests.dataplane.storage.cleaning import COMPACT, RETENTION_MS, Clock, cleaning
from tests.dataplane.storage.support import DIRECTORY, batch_of, new_files, open_log, stage


class Topic:
    """A compacted log to which producers write in transactions."""

    def __init__(self):
        self.files, self.clock = new_files(), Clock()
        self.of = cleaning(self.files, self.clock)
        self.sequences = {}
        self.of.cleaner._stable_of = lambda log: log.transactions.stable_end(log.end_offset, log.start_offset)

    @property
    def log(self):
        return self.of.log

    def write(self, key, value, producer=None):
        how = {}
        if producer is not None:
            sequence = self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + 1
            how = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}
        self._append(build_batch([Record(key, value)], now_ms=self.clock.ms, **how))

    def end(self, producer, marker):
        self._append(
            build_marker(marker, producer_id=producer, producer_epoch=0, coordinator_epoch=0, now_ms=self.clock.ms)
        )

    def _append(self, batch):
        stage(self.log, batch)
        appending.commit(self.log)

    def roll(self):
        """All that was written is in sealed segments, and on disk."""
        self._append(batch_of("x"))  # without a key: gone with the first round
        rolling.roll(self.log, self.log.end_offset)
        self._append(batch_of("x"))
        flushing.flush(self.log)

    def compact(self, *, later_ms=0):
        self.clock.ms += later_ms
        self.roll()
        self.of.run()

    def batches(self):
        return list(lookup.batches(self.log, self.log.start_offset, self.log.end_offset))

    def markers(self):
        return [header.base_offset for header, _ in self.batches() if header.is_control]

    def committed(self):
        """What the reader of committed transactions has of every key at the end."""
        aborted = aborting.aborted_between(self.log, 0, self.log.end_offset)
        found = {}
        for header, batch in self.batches():
            ranges = [one for one in aborted if one.producer_id == header.producer_id]
            left_out = any(one.first_offset <= header.base_offset < one.last_offset for one in ranges)
            if header.is_control or (left_out and header.is_transactional):
                continue
            for record in read_records(bytes(batch)):
                if record.key is not None:
                    found[record.key] = record.value
        return found


@pytest.fixture
def topic():
    return Topic()


def test_what_was_aborted_replaces_nothing_and_goes(topic):
    topic.write(b"k", b"kept")
    topic.write(b"k", b"aborted", producer=7)
    topic.write(b"other", b"aborted", producer=7)
    topic.write(b"later", b"committed", producer=8)
    topic.end(7, Marker.ABORT)
    topic.end(8, Marker.COMMIT)
    topic.compact()
    values = [record.value for _, batch in topic.batches() for record in read_records(bytes(batch)) if record.key]
    assert b"aborted" not in values
    assert topic.committed() == {b"k": b"kept", b"later": b"committed"}


def test_nothing_above_an_open_transaction_is_compacted(topic):
    topic.write(b"k", b"first")
    topic.roll()
    topic.write(b"t", b"open", producer=7)
    topic.roll()
    topic.write(b"k", b"second")
    topic.compact()
    assert [r.value for _, b in topic.batches() for r in read_records(bytes(b)) if r.key == b"k"] == [
        b"first",
        b"second",
    ]
    topic.end(7, Marker.COMMIT)
    topic.compact()
    assert [r.value for _, b in topic.batches() for r in read_records(bytes(b)) if r.key == b"k"] == [b"second"]


@pytest.mark.parametrize("marker", list(Marker))
def test_a_marker_stays_until_nothing_of_its_transaction_is_left_and_for_a_while_after(topic, marker):
    topic.write(b"k", b"v", producer=7)
    topic.end(7, marker)
    topic.write(b"k", b"of another", producer=8)
    topic.end(8, Marker.COMMIT)
    topic.write(b"next", b"v", producer=7)  # else the first would be kept for the sequence
    topic.end(7, Marker.COMMIT)
    topic.compact()
    assert topic.markers()[0] == 1, "its records went only now"
    topic.compact()
    assert topic.markers()[0] == 1, "but is to go"
    topic.compact(later_ms=RETENTION_MS - 1)
    assert topic.markers()[0] == 1
    topic.compact(later_ms=2)
    assert topic.markers()[0] == 3


def test_the_last_thing_of_a_producer_is_kept(topic):
    topic.write(b"k", b"v", producer=7)
    topic.end(7, Marker.ABORT)
    for _ in range(4):
        topic.compact(later_ms=RETENTION_MS)
    (header, _) = next(row for row in topic.batches() if row[0].producer_id == 7)
    assert (header.base_offset, header.count, header.is_control) == (0, 0, False)
    assert 1 in topic.markers()
    closing.close(topic.log)
    for name in topic.files.list(DIRECTORY):
        if name.endswith(".snapshot"):
            topic.files.remove(f"{DIRECTORY}/{name}")
    log = open_log(topic.files, config=COMPACT)
    assert log.transactions.stable_end(log.end_offset, 0) == log.end_offset, "its transaction is not open again"


def test_the_list_of_aborted_transactions_goes_with_them(topic):
    topic.write(b"k", b"aborted", producer=7)
    topic.end(7, Marker.ABORT)
    topic.write(b"k", b"v", producer=7)
    topic.end(7, Marker.COMMIT)
    topic.compact()
    assert aborting.aborted_between(topic.log, 0, 100) == [AbortedTransaction(7, 0, 1, 2)], "its marker was met"
    topic.write(b"z", b"v")
    topic.compact()
    assert aborting.aborted_between(topic.log, 0, 100) == []
    assert not [name for name in topic.files.list(DIRECTORY) if "txnindex" in name]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 4)),
        st.tuples(st.just("plain"), st.just(0), st.integers(0, 4)),
        st.tuples(st.sampled_from(Marker), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("compact"), st.just(0), st.sampled_from([0, 500, 2 * RETENTION_MS])),
        st.tuples(st.just("reopen"), st.just(0), st.integers(0, 1)),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_readers_of_committed_transactions_see_the_same_before_and_after(steps):
    topic, wanted, opened = Topic(), {}, {}
    for number, (what, producer, detail) in enumerate(steps):
        key, value = f"k{detail}".encode(), f"{number}".encode()
        if what == "write":
            topic.write(key, value, producer=producer)
            opened.setdefault(producer, []).append((topic.log.end_offset, key, value))
        elif what == "plain":
            topic.write(key, value)
            wanted[topic.log.end_offset] = (key, value)
        elif what == "compact":
            topic.compact(later_ms=detail)
        elif what == "reopen":
            if detail:
                closing.close(topic.log)
            recovery_point = topic.log.recovery_point
            topic.of.log = open_log(topic.files, config=COMPACT, clean=bool(detail), recovery_point=recovery_point)
            producing.learn_transactions(topic.log)
        else:
            topic.end(producer, what)
            for offset, key, value in opened.pop(producer, []):
                if what is Marker.COMMIT:
                    wanted[offset] = (key, value)
    for producer in list(opened):
        topic.end(producer, Marker.ABORT)
    topic.compact()
    last = dict(wanted[offset] for offset in sorted(wanted))
    assert topic.committed() == last
