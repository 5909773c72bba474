"""Idempotent producers: what is accepted, what is a retry, what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.protocol.errors import ErrorCode
from dataplane.records.batch import read_header
from dataplane.records.control import Marker, build_marker
from dataplane.storage.checkpoints.producers import (
    MAX_PRODUCERS,
    Duplicate,
    Producers,
)
from dataplane.storage.log import closing, cutting, producing
from tests.dataplane.storage.support import append, batch_of, new_files, open_log, stage

DUPLICATE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
TOP = 2**31 - 1


def header(sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 1, **options):
    batch = batch_of(*["v"] * count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence, **options)
    return read_header(batch)


def written(*batches) -> Producers:
    producers = Producers()
    offset = 0
    for batch in batches:
        assert producers.check(batch) is None
        producers.update(batch, offset)
        offset += batch.count
    return producers


def test_the_next_sequence_is_accepted_and_a_gap_is_not():
    producers = written(header(0, 3))
    assert producers.check(header(3)) is None
    assert producers.check(header(4)) == OUT_OF_ORDER
    assert producers.check(header(1)) == OUT_OF_ORDER


def test_each_of_the_last_five_is_a_duplicate_and_an_older_one_is_out_of_order():
    producers = written(*(header(2 * n, 2) for n in range(7)))
    assert [producers.check(header(2 * n, 2)) for n in range(7)] == [
        OUT_OF_ORDER,
        OUT_OF_ORDER,
        *(Duplicate(2 * n) for n in range(2, 7)),
    ]


def test_a_retry_of_another_size_is_no_duplicate():
    producers = written(header(0, 2), header(2, 2))
    assert producers.check(header(2, 1)) == OUT_OF_ORDER
    assert producers.check(header(0, 4)) == OUT_OF_ORDER


@pytest.mark.parametrize(("first", "count", "following"), [(TOP - 1, 2, 0), (TOP, 1, 0), (TOP - 1, 4, 2), (TOP, 2, 1)])
def test_sequences_wrap(first, count, following):
    producers = written(header(first, count))
    assert producers.check(header(following)) is None
    assert producers.check(header(following + 1)) == OUT_OF_ORDER
    assert producers.check(header(first, count)) == Duplicate(0)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero():
    producers = written(header(0, epoch=3), header(1, epoch=3))
    assert producers.check(header(2, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(header(2, epoch=4)) == OUT_OF_ORDER
    assert producers.check(header(0, epoch=4)) is None
    producers.update(header(0, epoch=4), 2)
    assert producers.check(header(0, epoch=4)) == Duplicate(2)
    assert producers.check(header(2, epoch=3)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_see_each_other():
    producers = written(header(0), header(5, producer=2))
    assert producers.check(header(1)) is None
    assert producers.check(header(6, producer=2)) is None
    assert producers.check(header(6)) == OUT_OF_ORDER


def test_an_unknown_producer_may_begin_anywhere():
    assert Producers().check(header(1234)) is None


def test_without_a_producer_id_nothing_is_checked():
    producers = written(header(0))
    assert producers.check(read_header(batch_of("v"))) is None


def test_a_marker_can_raise_the_epoch():
    producers = written(header(0, producer=5))
    marker = build_marker(Marker.ABORT, producer_id=5, producer_epoch=1, coordinator_epoch=0, now_ms=1)
    producers.update(read_header(marker), 1)
    assert producers.check(header(1, producer=5)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(header(1, producer=5, epoch=1)) == OUT_OF_ORDER
    assert producers.check(header(0, producer=5, epoch=1)) is None


def test_silent_producers_expire():
    producers = written(header(0), header(0, producer=2))
    producers.expire(1_000, 5_000)
    producers.update(header(1, producer=2), 2)
    producers.expire(5_000, 5_000)
    producers.expire(6_001, 5_000)
    assert len(producers) == 1
    assert producers.check(header(7)) is None
    assert producers.check(header(7, producer=2)) == OUT_OF_ORDER


@pytest.mark.parametrize("written_of_ms", [0, 2**60])
def test_what_the_records_say_of_their_time_is_not_when_they_came(written_of_ms):
    producers = written(header(0, now_ms=written_of_ms))
    producers.expire(1_700_000_000_000, 5_000)
    assert isinstance(producers.check(header(0, now_ms=written_of_ms)), Duplicate)
    producers.expire(1_700_000_005_001, 5_000)
    assert len(producers) == 0


def test_a_log_remembers_those_that_wrote_last():
    producers = Producers()
    for number in range(3 * MAX_PRODUCERS):
        producers.update(header(0, producer=number), 2 * number)
        producers.update(header(number, producer=10**9), 2 * number + 1)
    assert len(producers) <= MAX_PRODUCERS
    assert producers.check(header(3 * MAX_PRODUCERS + 5, producer=10**9)) == OUT_OF_ORDER
    assert isinstance(producers.check(header(0, producer=3 * MAX_PRODUCERS - 1)), Duplicate)


def test_many_open_transactions_make_no_newcomer_look_for_who_may_go(monkeypatch):
    monkeypatch.setattr("dataplane.storage.checkpoints.producers.MAX_PRODUCERS", 50)
    looks = []
    forget = Producers._forget_oldest
    monkeypatch.setattr(Producers, "_forget_oldest", lambda self: looks.append(1) or forget(self))
    producers = Producers()
    for number in range(200):
        producers.update(header(0, producer=number, transactional=True), number)
    assert not looks
    for number in range(200, 300):
        producers.update(header(0, producer=number), number)
    assert len(looks) <= 50 // 5, "a tenth goes at a time"
    assert len(producers) <= 200 + 50
    assert list(producers.transactions.open) == list(range(200))


def test_a_list_of_producers_that_is_made_in_pieces_outlives_newcomers():
    producers = written(header(0, producer=1), header(0, producer=2))
    states = producers.states(1_000)
    first = next(states)
    producers.update(header(0, producer=3), 5)
    assert [first.producer_id, *(state.producer_id for state in states)] == [1, 2]


def crowded(writer: int = 7) -> Producers:
    """One producer has written two batches, and then so many others that it had to go."""
    producers = Producers()
    producers.update(header(0, 2, producer=writer), 0)
    producers.update(header(2, 2, producer=writer), 2)
    for number in range(MAX_PRODUCERS):
        producers.update(header(0, producer=1_000 + number), 4 + number)
    assert producers.check(header(0, producer=1_000)) is not None
    assert writer not in producers.last_batches()
    return producers


def test_a_retry_of_a_producer_that_had_to_go_is_recognised():
    producers = crowded()
    assert producers.check(header(0, 2, producer=7)) == DUPLICATE
    assert producers.check(header(2, 2, producer=7)) == DUPLICATE
    assert producers.check(header(4, 2, producer=7)) is None, "it goes on"
    assert producers.check(header(2, 1, producer=7)) is None, "of another size: not what was written"
    assert producers.check(header(0, 2, producer=8)) is None
    assert producers.check(header(0, 2, producer=7, epoch=1)) is None
    producers.update(header(4, 2, producer=7), 10**6)
    assert producers.check(header(4, 2, producer=7)) == Duplicate(10**6)


def test_a_retry_is_recognised_though_its_producer_has_written_since_it_had_to_go():
    """Of five batches in flight two are in the log, the producer is forgotten, the third comes; then all come again.

    Told that the first is out of order the client would begin a new epoch, and write the two once more.
    """
    producers = crowded()
    producers.update(header(4, 2, producer=7), 10**6)
    assert producers.check(header(0, 2, producer=7)) == DUPLICATE
    assert producers.check(header(2, 2, producer=7)) == DUPLICATE
    assert producers.check(header(4, 2, producer=7)) == Duplicate(10**6)
    assert producers.check(header(6, 2, producer=7)) is None
    assert producers.check(header(8, 2, producer=7)) == OUT_OF_ORDER
    assert producers.check(header(2, 1, producer=7)) == OUT_OF_ORDER


def test_what_was_cut_from_the_log_may_come_again():
    producers = crowded()
    producers.cut(10**6)
    assert producers.check(header(2, 2, producer=7)) == DUPLICATE
    producers.cut(3)
    assert producers.check(header(2, 2, producer=7)) is None


def test_fingerprints_do_not_grow_for_ever(monkeypatch):
    monkeypatch.setattr("dataplane.storage.checkpoints.producers.MAX_PRODUCERS", 50)
    producers = Producers()
    for number in range(300):
        producers.update(header(0, producer=number), number)
    known = [producers.check(header(0, producer=number)) is not None for number in range(300)]
    assert known[0] is False
    assert 100 < sum(known) <= 150


def test_a_cut_of_the_log_forgets_the_fingerprints_behind_it(monkeypatch):
    monkeypatch.setattr("dataplane.storage.checkpoints.producers.MAX_PRODUCERS", 2)
    log = open_log(new_files())
    append(log, "kept")
    for producer in (1, 2, 3):
        append(log, "v", producer_id=producer, producer_epoch=0, base_sequence=0)
    assert producing.producers_of(log).check(header(0, producer=1)) == DUPLICATE
    cutting.truncate(log, 1)
    assert producing.producers_of(log).check(header(0, producer=1)) is None


def test_a_batch_staged_in_this_turn_is_seen():
    log = open_log(new_files())
    first = batch_of("a", producer_id=1, producer_epoch=0, base_sequence=0)
    stage(log, first)
    assert producing.producers_of(log).check(header(0)) == Duplicate(0)
    assert producing.producers_of(log).check(header(1)) is None
    assert log.end_offset == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=20),
    st.integers(0, 20),
    st.booleans(),
)
def test_a_reopened_or_cut_log_knows_what_one_that_was_never_longer_knows(batches, kept, reopen):
    """State after a restart or truncation equals the state of a log that only ever had the batches left."""
    files, sequences = new_files(), {}
    log, short = open_log(files), open_log(new_files())
    headers = []
    for n, (producer, count) in enumerate(batches):
        options = {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequences.get(producer, 0)}
        sequences[producer] = options["base_sequence"] + count
        append(log, *["v"] * count, **options)
        headers.append(header(options["base_sequence"], count, producer=producer))
        if n < kept:
            append(short, *["v"] * count, **options)
    cutting.truncate(log, short.end_offset)
    if reopen:
        closing.close(log)
        log = open_log(files, clean=True)
    later = [header(sequence, producer=producer) for producer, sequence in sequences.items()]
    assert [producing.producers_of(log).check(h) for h in headers + later] == [
        producing.producers_of(short).check(h) for h in headers + later
    ]
