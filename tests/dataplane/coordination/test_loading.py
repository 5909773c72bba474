"""A partition of the offsets topic is read in pieces; what cannot be read of it is passed over, or nothing is believed."""

import pytest
from crc32c import crc32c

from dataplane.coordination.loading import RECORDS_PER_PAUSE, load
from dataplane.records.batch import Record, build_batch
from dataplane.records.compression import GZIP
from dataplane.records.header import CorruptBatchError, read_header
from dataplane.records.steps import run_through
from dataplane.storage.log import LogConfig, appending, removing
from dataplane.storage.segments import replay
from dataplane.storage.segments.segment import Segment
from tests.dataplane.storage.support import DIRECTORY, new_files, open_log

SMALL = LogConfig(segment_bytes=600)


def committed(log, *names, codec=0):
    batch = build_batch([Record(name.encode(), b"v" * 20) for name in names], now_ms=1_000, codec=codec)
    appending.stage(log, memoryview(batch), read_header(batch), 0)
    appending.commit(log)


def in_transaction(log, *names, producer_id=7):
    records = [Record(name.encode(), b"v") for name in names]
    batch = build_batch(records, now_ms=1_000, producer_id=producer_id, producer_epoch=0, transactional=True)
    appending.stage(log, memoryview(batch), read_header(batch), 0)
    appending.commit(log)


def marker(log, *, committed, producer_id=7):
    record = Record(b"\0\0\0" + bytes([committed]), b"\0\0\0\0\0\1")
    batch = build_batch(
        [record], now_ms=1_000, producer_id=producer_id, producer_epoch=0, transactional=True, control=True
    )
    appending.stage(log, memoryview(batch), read_header(batch), 0)
    appending.commit(log)


class Heard:
    """What a coordinator is told that wants to know of transactions."""

    def __init__(self):
        self.told = []

    def plain(self, key, _value):
        self.told.append(key.decode())

    def take(self, producer_id, position, key, _value):
        self.told.append((producer_id, position, key.decode()))

    def end(self, producer_id, *, committed):
        yield None
        self.told.append((producer_id, "committed" if committed else "aborted"))


def filled(count=20, config=SMALL):
    files = new_files()
    log = open_log(files, config=config)
    for n in range(count):
        committed(log, f"{n}")
    return files, log


def loaded(log):
    """What was read, and the sentences about what was not."""
    names = []
    sentences = run_through(load(log, lambda key, value: names.append(key.decode())))
    return names, sentences


def drive(steps, work):
    while True:
        work = steps.send(None if work is None else work())


END = object()


def next_of(steps, work):
    """Do what the steps have asked for; what they ask for next, or END."""
    try:
        return steps.send(None if work is None else work())
    except StopIteration:
        return END


def damage(files, log, offset, at, byte=0xFF):
    """Change one byte of the batch that holds an offset."""
    segment = next(s for s in reversed(log.segments) if s.base_offset <= offset)
    path = f"{segment.path}.log"
    data = bytearray(files.read_file(path))
    data[segment.position_of(offset) + at] ^= byte
    files.put_file(path, bytes(data))
    for other in log.segments:
        other.close()


def test_everything_in_order_over_many_segments_and_packed_batches(monkeypatch):
    monkeypatch.setattr(replay, "_CHUNK_BYTES", 150)  # less than a batch of many
    _, log = filled()
    committed(log, *(f"many{n}" for n in range(30)), codec=GZIP)
    committed(log, *(f"large{n}" for n in range(15)))
    assert len(log.segments) > 3
    expected = [*map(str, range(20)), *(f"many{n}" for n in range(30)), *(f"large{n}" for n in range(15))]
    assert loaded(log) == (expected, [])


def test_what_is_deleted_is_not_read():
    _, log = filled()
    removing.set_start_offset(log, 7)
    assert loaded(log)[0] == [str(n) for n in range(7, 20)]


def test_a_pause_after_so_many_records():
    _, log = filled(3)
    committed(log, *(f"many{n}" for n in range(10 * RECORDS_PER_PAUSE)))
    taken, most, steps, answer = [], 0, None, None
    steps = load(log, lambda key, value: taken.append(key))
    while True:
        before = len(taken)
        try:
            work = steps.send(answer)
        except StopIteration:
            break
        answer = None if work is None else work()
        most = max(most, len(taken) - before)
    assert len(taken) == 10 * RECORDS_PER_PAUSE + 3
    assert most <= RECORDS_PER_PAUSE


@pytest.mark.parametrize("at", [70, 25, 17], ids=["in a record", "in the header", "in the CRC"])
def test_a_batch_that_cannot_be_read_is_passed_over_and_told(at):
    files, log = filled()
    damage(files, log, 11, at)
    names, [sentence] = loaded(log)
    assert names == [str(n) for n in range(20) if n != 11]
    assert "offset 11" in sentence or "offsets 11" in sentence


def test_records_that_were_written_wrong_do_not_stop_the_others():
    _, log = filled(2)
    batch = build_batch([Record(b"k", b"v")], now_ms=1)
    wrong = bytearray(batch)
    wrong[61] = 0x7F  # a record longer than its batch
    wrong[17:21] = crc32c(bytes(wrong[21:])).to_bytes(4, "big")
    appending.stage(log, memoryview(wrong), read_header(wrong), 0)
    appending.commit(log)
    committed(log, "last")
    names, sentences = loaded(log)
    assert (names, len(sentences)) == (["0", "1", "last"], 1)


@pytest.mark.parametrize("at", [8, 9, 10, 11, 0, 4], ids=["length", "length", "length", "length", "offset", "offset"])
def test_where_the_next_batch_cannot_be_found_nothing_is_believed(at):
    files, log = filled()
    damage(files, log, 11, at, 0x80)
    with pytest.raises(CorruptBatchError):
        loaded(log)


def test_a_segment_that_is_replaced_meanwhile_is_read_to_its_end(monkeypatch):
    monkeypatch.setattr(replay, "_CHUNK_BYTES", 150)
    files, log = filled()
    names = []
    steps = load(log, lambda key, value: names.append(key.decode()))
    work = next(steps)
    while len(names) < 2:
        work = steps.send(None if work is None else work())
    first, second = log.segments[:2]
    merged = bytes(files.read_file(f"{first.path}.log")) + bytes(files.read_file(f"{second.path}.log"))
    for old in (first, second):  # as compaction does
        old.close()
        files.remove(f"{old.path}.log")
        old.remove_indexes()
    files.put_file(f"{DIRECTORY}/{first.base_offset:020d}.log", merged)
    log.segments[:2] = [replaced := Segment(files, DIRECTORY, first.base_offset)]
    replaced.trust(len(merged))
    with pytest.raises(StopIteration):
        drive(steps, work)
    assert names == [str(n) for n in range(20)]


# --- transactions -----------------------------------------------------------------------------------------------------


def test_who_does_not_ask_for_transactions_gets_their_records_like_others_and_no_markers():
    _, log = filled(1)
    in_transaction(log, "a", "b")
    marker(log, committed=False)
    committed(log, "last")
    assert loaded(log) == (["0", "a", "b", "last"], [])


def test_who_asks_is_told_whose_they_are_and_where_and_how_they_end():
    _, log = filled(1)
    in_transaction(log, "a", "b")
    in_transaction(log, "c", producer_id=8)
    marker(log, committed=True)
    marker(log, committed=False, producer_id=8)
    heard = Heard()
    assert run_through(load(log, heard.plain, heard)) == []
    assert heard.told == ["0", (7, 1, "a"), (7, 1, "b"), (8, 3, "c"), (7, "committed"), (8, "aborted")]


def test_a_marker_that_cannot_be_read_is_told():
    files, log = filled(1)
    in_transaction(log, "a")
    marker(log, committed=True)
    damage(files, log, 2, 70)
    heard = Heard()
    [sentence] = run_through(load(log, heard.plain, heard))
    assert "offsets 2 to 2" in sentence
    assert heard.told == ["0", (7, 1, "a")]


def test_a_marker_that_compaction_has_emptied_says_nothing():
    _, log = filled(1)
    marker(log, committed=True)
    [segment] = log.segments
    batch = bytearray(segment.file.read(segment.position_of(1), 10_000))[:61]
    batch[8:12], batch[57:61] = (49).to_bytes(4), bytes(4)
    batch[0:8], batch[17:21] = bytes(8), crc32c(bytes(batch[21:])).to_bytes(4)
    appending.stage(log, memoryview(batch), read_header(batch), 0)
    appending.commit(log)
    heard = Heard()
    assert run_through(load(log, heard.plain, heard)) == []
    assert heard.told == ["0", (7, "committed")]


@pytest.mark.parametrize("pieces", range(6))
def test_what_is_appended_while_it_is_read_is_read_once(pieces, monkeypatch):
    """In the segment that is read, in one that was rolled meanwhile, and at the very end."""
    monkeypatch.setattr(replay, "_CHUNK_BYTES", 200)
    _, log = filled(12)
    heard = Heard()
    steps = load(log, heard.plain, heard)
    work, done = next(steps), 0
    while work is not END:
        if done == pieces:
            in_transaction(log, "late")
            marker(log, committed=True)
            for n in range(12, 20):
                committed(log, f"{n}")
        work = next_of(steps, work)
        done += 1
    late = [(7, 12, "late"), (7, "committed"), *map(str, range(12, 20))]
    assert heard.told == [*map(str, range(12)), *late]
