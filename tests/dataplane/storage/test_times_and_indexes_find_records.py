"""Look-ups by time, the index files' format, and that cost does not grow with the log."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.records import compression
from dataplane.records.batch import Record, build_batch
from dataplane.storage.log import LogConfig, appending, closing, reading, removing
from dataplane.storage.segments.index import SparseIndex
from tests.dataplane.storage.support import (
    DIRECTORY,
    append,
    batch_of,
    latest_timestamp,
    new_files,
    offset_for_timestamp,
    open_log,
    records_in,
    stage,
)

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)


def log_with(times: list[list[int]], codec: int = 0):
    log = open_log(new_files(), config=SMALL)
    for epoch, batch in enumerate(times):
        stage(log, build_batch([Record(None, b"v", (), time) for time in batch], now_ms=0, codec=codec), epoch)
    appending.commit(log)
    return log


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1, max_size=25),
    st.integers(0, 52),
    st.integers(0, 60),
    st.integers(0, 10),
)
def test_the_first_record_not_older(batches, wanted, bound, start):
    log = log_with(batches)
    removing.set_start_offset(log, start)
    epochs = [epoch for epoch, batch in enumerate(batches) for _ in batch]
    flat = list(enumerate(time for batch in batches for time in batch))
    found = next(((o, t, epochs[o]) for o, t in flat if t >= wanted and o >= log.start_offset), None)
    assert offset_for_timestamp(log, wanted, bound) == (found if found and found[0] < bound else None)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=4), min_size=1, max_size=25))
def test_the_youngest_record(batches):
    log = log_with(batches)
    flat = [time for batch in batches for time in batch]
    offset, time, _ = latest_timestamp(log)
    assert (offset, time) == (flat.index(max(flat)), max(flat))
    assert latest_timestamp(log, offset) is None
    assert latest_timestamp(log, offset + 1) is not None


def test_compressed_batches_are_looked_into():
    log = log_with([[10, 20, 30], [40, 50]], codec=compression.GZIP)
    assert offset_for_timestamp(log, 25, 99) == (2, 30, 0)
    assert offset_for_timestamp(log, 41, 99) == (4, 50, 1)


def test_an_empty_log_has_no_times():
    log = open_log(new_files())
    assert offset_for_timestamp(log, 0, 99) is None
    assert latest_timestamp(log) is None


def test_a_batch_that_cannot_be_read_is_answered_by_its_header():
    log = open_log(new_files())
    batch = batch_of("v" * 50, now_ms=77)
    batch[70:] = bytes(len(batch) - 70)
    stage(log, batch, 3)
    appending.commit(log)
    assert offset_for_timestamp(log, 5, 99) == (0, 77, 3)


def test_a_record_beyond_the_end_of_time_is_answered_by_its_batchs_header():
    log = open_log(new_files())
    batch = build_batch([Record(None, b"1", timestamp=1), Record(None, b"2", timestamp=2**62)], now_ms=1)
    base = 2**62 + 2**61
    batch[27:43] = base.to_bytes(8) + (base + 1).to_bytes(8)
    stage(log, batch, 3)
    appending.commit(log)
    assert offset_for_timestamp(log, base + 1, 99) == (0, base + 1, 3)


def test_index_files_are_kafkas():
    files = new_files()
    log = open_log(files, config=SMALL)
    for n in range(8):
        append(log, "x" * 20, now_ms=1_000 + n)
    size = log.size_bytes // 8
    closing.close(log)
    offsets = files.read_file(f"{DIRECTORY}/{6:020d}.index")
    first = files.read_file(f"{DIRECTORY}/{0:020d}.index")
    assert list(struct.iter_unpack(">ii", first)) == [(n, n * size) for n in (2, 4)]
    assert list(struct.iter_unpack(">qi", files.read_file(f"{DIRECTORY}/{0:020d}.timeindex"))) == [
        (1_002, 2),
        (1_004, 4),
        (1_005, 5),
    ]
    assert offsets == b""
    assert list(struct.iter_unpack(">qi", files.read_file(f"{DIRECTORY}/{6:020d}.timeindex"))) == [(1_007, 1)]


columns = st.lists(st.integers(0, 2**31 - 2), unique=True, max_size=20).map(sorted)


@settings(max_examples=100, deadline=None)
@given(columns, st.data())
def test_an_index_comes_back_from_its_files(offsets, data):
    index = SparseIndex()
    size = st.lists(st.integers(1, 2**31 - 2), unique=True, min_size=len(offsets), max_size=len(offsets)).map(sorted)
    times = data.draw(
        st.lists(st.integers(0, 2**62), unique=True, min_size=len(offsets), max_size=len(offsets)).map(sorted)
    )
    for offset, position, time in zip(offsets, data.draw(size), times, strict=True):
        index.add(offset, position, time, offset)
    index.add_time(2**62 + 1, 2**31 - 1)
    back = SparseIndex.stored(*index.pack(), 2**31 - 1)
    assert back is not None
    assert back.pack() == index.pack()
    assert (back.entries(), back.last_time()) == (index.entries(), index.last_time())
    for value in data.draw(st.lists(st.integers(0, 2**31 - 1), max_size=20)) + offsets:
        assert back.entry_at(value) == index.entry_at(value)
        assert back.entry_before(value) == index.entry_before(value)
        assert back.time_before(value) == index.time_before(value)


@settings(max_examples=100, deadline=None)
@given(columns, st.integers(0, 20), st.integers(0, 2**31 - 1))
def test_what_is_stored_and_what_came_since_are_one_index(offsets, stored, cut):
    whole, part = SparseIndex(), SparseIndex()
    for number, offset in enumerate(offsets):
        if number == stored:
            again = SparseIndex.stored(*part.pack(), 2**31 - 1)
            assert again is not None
            part = again
        for index in (whole, part):
            index.add(offset, offset, 10 * offset, offset)
    for _ in range(2):
        assert part.pack() == whole.pack()
        for value in [*offsets, cut, cut - 1, cut + 1]:
            assert part.entry_at(value) == whole.entry_at(value)
            assert part.entry_before(value) == whole.entry_before(value)
            assert part.time_before(10 * value) == whole.time_before(10 * value)
            assert (part.last_offset(), part.last_position()) == (whole.last_offset(), whole.last_position())
        whole.cut(cut)
        part.cut(cut)


def test_an_index_that_is_packed_while_it_grows_forgets_what_is_cut():
    index = SparseIndex()
    for number in range(5_000):
        index.add(number, 10 * number, 3 * number, number)
    index.cut(27_500)
    for number in range(2_750, 6_000):
        index.add(number, 11 * number, 4 * number, number)
    offsets, times = index.pack()
    assert list(struct.iter_unpack(">ii", offsets)) == list(zip(index.offsets, index.positions, strict=True))
    assert list(struct.iter_unpack(">qi", times)) == list(zip(index.timestamps, index.time_offsets, strict=True))
    assert index.positions[2_749:2_751].tolist() == [27_490, 30_250]


@pytest.mark.parametrize(
    ("offsets", "times"),
    [
        (b"1234567", b""),
        (b"", b"1234567"),
        (struct.pack(">iiii", 5, 10, 5, 20), b""),
        (struct.pack(">iiii", 5, 10, 6, 10), b""),
        (struct.pack(">ii", 5, 1000), b""),
        (struct.pack(">ii", -5, 10), b""),
        (b"", struct.pack(">qiqi", 9, 1, 9, 2)),
        (b"", struct.pack(">qiqi", 9, 2, 10, 1)),
    ],
)
def test_files_that_cannot_be_an_index_are_refused(offsets, times):
    assert SparseIndex.stored(offsets, times, 1000) is None


@pytest.mark.parametrize("damage", ["missing", "empty", "of another log"])
def test_a_wrong_index_is_built_again(damage):
    files = new_files()
    log = open_log(files, config=LogConfig(segment_bytes=5_000, index_interval_bytes=100))
    for n in range(100):
        append(log, "x" * 20, now_ms=n)
    closing.close(log)
    path = f"{DIRECTORY}/{0:020d}.index"
    entries = list(struct.iter_unpack(">ii", files.read_file(path)))
    assert len(entries) > 20
    if damage == "missing":
        files.remove(path)
    elif damage == "empty":
        files.write_file(path, b"")
    else:
        shifted = [(offset, position + (3 if n < 20 else 0)) for n, (offset, position) in enumerate(entries)]
        files.write_file(path, b"".join(struct.pack(">ii", *entry) for entry in shifted))
    log = open_log(files, clean=True)
    for offset in range(100):
        assert records_in(log, offset, offset + 1)[0][0] == offset


TIME_INDEX_DAMAGE = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "cut in the middle": lambda data: data[: len(data) // 24 * 12],
    "without its last entry": lambda data: data[:-12],
    "of another log": lambda data: struct.pack(">qi", 2**40, 3),
    "with an entry that is too young": lambda data: struct.pack(">qi", 5, 98) + data[12:],
}


@pytest.mark.parametrize("damage", TIME_INDEX_DAMAGE)
@pytest.mark.parametrize("number", [0, 400], ids=["sealed", "active"])
def test_a_wrong_time_index_is_built_again(damage, number):
    files = new_files()
    config = LogConfig(segment_bytes=400 * len(batch_of("x" * 20)), index_interval_bytes=100, retention_ms=200)
    log = open_log(files, config=config)
    times = [n ^ 3 for n in range(500)]  # not in order
    for time in times:
        append(log, "x" * 20, now_ms=time)
    closing.close(log)
    bases = [segment.base_offset for segment in log.segments]
    assert bases == [0, 400]
    path = f"{DIRECTORY}/{number:020d}.timeindex"
    damaged = TIME_INDEX_DAMAGE[damage](files.read_file(path))
    files.remove(path)
    if damaged is not None:
        files.write_file(path, damaged)
    log = open_log(files, clean=True, config=config)
    for wanted in range(500):
        first = next(offset for offset, time in enumerate(times) if time >= wanted)
        assert offset_for_timestamp(log, wanted, 500)[0] == first
    assert latest_timestamp(log)[:2] == (times.index(499), 499)
    assert removing.apply_retention(log, 599, 500) == 0, "the youngest of the first segment is 399"
    assert removing.apply_retention(log, 600, 500) > 0


def reads_needed(batches: int) -> dict[str, int]:
    files = new_files()
    log = open_log(files, config=LogConfig(index_interval_bytes=4096))
    for _ in range(batches):
        stage(log, batch_of("x" * 100))
    appending.commit(log)
    count = 0

    def counted(operation, path):
        nonlocal count
        count += 1

    files.fault = counted
    costs = {}
    for name, offset in (("tail", batches - 1), ("middle", batches // 2), ("start", 0)):
        count = 0
        assert reading.read(log, offset, 2**20, batches, at_least_one=True) is not None
        costs[name] = count
    count = 0
    append(log, "one more")
    costs["append"] = count
    return costs


def test_cost_does_not_grow_with_the_log():
    small, large = reads_needed(600), reads_needed(12_000)
    assert large["tail"] == 0, "no system call at the tail"
    assert large["append"] == 1
    assert large["middle"] <= 3
    assert large["start"] <= 3
    assert all(large[name] <= small[name] + 1 for name in large)
