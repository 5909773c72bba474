"""What is remembered of producers that write in transactions: over restarts, and when there are too many of them."""

from __future__ import annotations

import struct

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import read_header
from dataplane.records.control import Marker, build_marker
from dataplane.storage.checkpoints import producers as remembering
from dataplane.storage.checkpoints import snapshots, transactions
from dataplane.storage.checkpoints.producers import Producers, ProducerState
from dataplane.storage.checkpoints.transactions import Ended
from dataplane.storage.log import producing
from dataplane.storage.producer_budget import ProducerBudgets
from tests.dataplane.storage.support import batch_of, new_files, open_log, stage


def update(producers, offset, producer, *, epoch=0, sequence=0):
    batch = batch_of("v", producer_id=producer, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    return producers.update(read_header(batch), offset, batch)


def end(producers, offset, producer, marker, *, epoch=0, coordinator_epoch=0):
    batch = build_marker(
        marker, producer_id=producer, producer_epoch=epoch, coordinator_epoch=coordinator_epoch, now_ms=0
    )
    return producers.update(read_header(batch), offset, batch)


def test_a_snapshot_of_kafka_with_an_open_transaction_is_read():
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 9, 1, 0, 100, 0, 5, 3, 98)
    found = snapshots.unpack(struct.pack(">hI", 1, crc32c.crc32c(body)) + body)
    assert (found.producers[0].coordinator_epoch, found.producers[0].first_offset, found.ended) == (3, 98, [])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, *Marker])), max_size=30), st.integers(0, 30))
def test_a_snapshot_keeps_what_holds_readers_back(steps, high_watermark):
    producers = Producers()
    for offset, (producer, marker) in enumerate(steps):
        if marker is None:
            update(producers, offset, producer, sequence=offset)
        else:
            end(producers, offset, producer, marker, coordinator_epoch=offset)
    data = snapshots.pack(producers.states(7), producers.transactions.ended())
    again = Producers()
    again.restore(*snapshots.unpack(data))
    before, after = ([state._replace(last_offset=0) for state in one.states(7)] for one in (producers, again))
    assert after == before
    known, found = producers.transactions, again.transactions
    assert found.open == known.open
    assert list(found.open) == list(known.open), "in the order of their offsets"
    assert found.stable_end(high_watermark, 0) == known.stable_end(high_watermark, 0)


def test_who_writes_in_a_transaction_does_not_have_to_go(monkeypatch):
    monkeypatch.setattr(remembering, "MAX_PRODUCERS", 10)
    producers = Producers()
    for producer in range(8):
        update(producers, producer, producer)
    end(producers, 8, 7, Marker.COMMIT)
    for producer in range(100, 130):
        batch = batch_of("v", producer_id=producer, producer_epoch=0, base_sequence=0)
        producers.update(read_header(batch), producer)
    assert all(producers.may_continue(producer, 0) for producer in range(7))
    assert len(producers) <= 7 + 10
    for producer in range(200, 220):
        update(producers, producer, producer)
    assert producers.transactions.stable_end(500, 0) == 0
    assert len(producers) <= 27 + 10, "as many as have transactions, and ten more"


def test_a_budget_that_is_full_of_transactions_is_exceeded():
    files = new_files()
    budgets = ProducerBudgets(20 * remembering.PRODUCER_BYTES)
    log = open_log(files, newcomers=budgets.newcomers_of("aaaabbbb.topic"))
    budgets.opened(log)
    for producer in range(60):
        stage(log, batch_of("v", producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True))
    assert len(producing.producers_of(log)) == 60
    assert log.transactions.stable_end(60, 0) == 0


def test_a_marker_that_went_with_its_producer_is_undone_by_a_cut():
    producers = Producers()
    update(producers, 0, 7)
    end(producers, 1, 7, Marker.COMMIT)
    producers.make_room()
    assert producers.holds_any_from(1)
    assert producers.transactions.ended() == [Ended(0, 1)]


def test_a_coordinator_appends_without_sequences():
    producers = Producers()
    batch = batch_of("v", producer_id=7, producer_epoch=2, base_sequence=-1, transactional=True)
    header = read_header(batch)
    for offset in range(3):
        assert producers.check(header) is None
        producers.update(header, offset)
    (state,) = producers.states(0)
    assert state == ProducerState(7, 2, [], 2, 0, -1, 0)
    older = read_header(batch_of("v", producer_id=7, producer_epoch=1, base_sequence=-1, transactional=True))
    assert producers.check(older) is ErrorCode.INVALID_PRODUCER_EPOCH


# --- an epoch for each transaction ------------------------------------------------------------------------------------


def verdict(producers, *, sequence, begins_with_0, epoch=0):
    batch = batch_of("v", producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    header = read_header(batch)
    return producers.check(header) or producers.check_transaction(header, verifies=False, begins_with_0=begins_with_0)


def test_the_first_batch_that_is_taken_of_a_producer_that_nothing_is_known_of_has_the_sequence_0():
    producers = Producers()
    assert verdict(producers, sequence=1, begins_with_0=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(producers, sequence=0, begins_with_0=True) is None
    assert verdict(producers, sequence=5, begins_with_0=False) is None, "its sequences go on from one to the next"
    update(producers, 0, 7)
    assert verdict(producers, sequence=1, begins_with_0=True) is None
    assert verdict(producers, sequence=2, begins_with_0=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_so_has_the_first_of_each_epoch():
    producers = Producers()
    update(producers, 0, 7)
    end(producers, 1, 7, Marker.COMMIT, epoch=1)
    for begins_with_0 in (False, True):
        assert verdict(producers, sequence=1, epoch=1, begins_with_0=begins_with_0) is (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        )
        assert verdict(producers, sequence=0, epoch=1, begins_with_0=begins_with_0) is None


def test_before_one_that_was_told_to_come_again_no_later_one_is_taken():
    producers = Producers()
    producers.transactions.told_to_come_again(7, 0, 4)
    producers.transactions.told_to_come_again(7, 0, 3)
    producers.transactions.told_to_come_again(7, 0, 5)
    assert verdict(producers, sequence=4, begins_with_0=False) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verdict(producers, sequence=3, begins_with_0=False) is None
    assert verdict(producers, sequence=9, epoch=1, begins_with_0=False) is None, (
        "another epoch has sequences of its own"
    )
    update(producers, 0, 7, sequence=3)
    assert verdict(producers, sequence=4, begins_with_0=False) is None


@pytest.mark.parametrize("comes", ["a batch", "a marker", "another epoch"])
def test_what_was_waited_for_is_here_or_comes_no_more(comes):
    producers = Producers()
    producers.transactions.told_to_come_again(7, 0, 3)
    if comes == "a batch":
        update(producers, 0, 7, sequence=3)
    elif comes == "a marker":
        end(producers, 0, 7, Marker.ABORT)
    else:
        producers.transactions.told_to_come_again(7, 1, 0)
        producers.transactions.told_to_come_again(7, 0, 0)  # late
    assert not producers.transactions.awaits_before(7, 0, 4)


def test_of_very_many_that_are_waited_for_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(transactions, "MOST_AWAITED", 2)
    known = Producers().transactions
    for producer in (7, 8, 9):
        known.told_to_come_again(producer, 0, 0)
    assert [known.awaits_before(producer, 0, 1) for producer in (7, 8, 9)] == [False, True, True]


def test_what_a_coordinator_writes_without_sequences_may_be_the_first():
    assert verdict(Producers(), sequence=-1, begins_with_0=True) is None
