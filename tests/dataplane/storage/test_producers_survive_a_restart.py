"""Producer-state snapshots: Kafka's file, exact answers after a restart, and what happens when one is wrong."""

import errno
import struct

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.records.batch import read_header
from dataplane.storage.checkpoints import snapshots
from dataplane.storage.checkpoints.producers import (
    Duplicate,
    Producers,
    ProducerState,
    Written,
)
from dataplane.storage.checkpoints.snapshots import SnapshotError
from dataplane.storage.log import LogConfig, closing, cutting, flushing, producing, removing
from tests.dataplane.storage.support import DIRECTORY, append, batch_of, new_files, open_log
from tests.support.memory_files import ImmediateBackground

TOP = 2**31 - 1
ROLLS = LogConfig(segment_bytes=400)


def written(log, count: int, *, producer: int = 7, first: int = 0) -> list:
    """Batches of one record each; their headers."""
    headers = []
    for sequence in range(first, first + count):
        how = {"producer_id": producer, "producer_epoch": 2, "base_sequence": sequence}
        append(log, "v", **how)
        headers.append(read_header(batch_of("v", **how)))
    return headers


def snapshots_of(files) -> list[str]:
    return [name for name in files.list(DIRECTORY) if name.endswith(".snapshot")]


def test_the_file_is_kafkas():
    state = ProducerState(7, 2, [Written(0, 1, 40), Written(2, 4, 50)], 50, 1_700_000_000_000)
    data = snapshots.pack([state])
    version, crc, count = struct.unpack_from(">hIi", data)
    assert (version, count) == (1, 1)
    assert crc == crc32c.crc32c(data[6:])
    # producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, open transaction
    assert struct.unpack_from(">qhiqiqiq", data, 10) == (7, 2, 4, 52, 2, 1_700_000_000_000, -1, -1)
    older = data[10 + 46 :]
    assert struct.unpack(">iqiiq", older) == (1, 7, 0, 1, 40)


def test_a_file_that_kafka_wrote_is_read():
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 9, 1, 0, 100, 2, 5, 3, -1)
    data = struct.pack(">hI", 1, crc32c.crc32c(body)) + body
    assert snapshots.unpack(data).producers == [ProducerState(9, 1, [Written(TOP - 1, 0, 98)], 100, 5, 3)]


batches = st.builds(
    lambda first, delta, base: Written(first, (first + delta) & TOP, base),
    st.integers(0, TOP),
    st.integers(0, 100),
    st.integers(0, 2**60),
)
states = st.builds(
    lambda producer, epoch, written, seen: ProducerState(
        producer, epoch, written, written[-1].base_offset if written else -1, seen
    ),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.lists(batches, max_size=5),
    st.integers(0, 2**60),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(states, max_size=5, unique_by=lambda state: state.producer_id))
def test_what_is_packed_comes_back(given_states):
    back = snapshots.unpack(snapshots.pack(given_states)).producers
    assert [state[:3] for state in back] == [state[:3] for state in given_states]
    assert [state.seen_ms for state in back] == [state.seen_ms for state in given_states]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damage_is_noticed(data):
    packed = bytearray(snapshots.pack([ProducerState(7, 2, [Written(0, 1, 40)], 40, 1)]))
    if data.draw(st.booleans()):
        packed = packed[: data.draw(st.integers(0, len(packed) - 1))]
    else:
        packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(SnapshotError):
        snapshots.unpack(bytes(packed))


def test_after_an_orderly_stop_the_last_five_are_duplicates_and_no_header_is_read():
    files = new_files()
    log = open_log(files)
    headers = written(log, 7)
    closing.close(log)
    assert snapshots_of(files) == [f"{7:020d}.snapshot"]
    log = open_log(files, clean=True)
    read = []
    files.fault = lambda operation, path: read.append(path) if operation in ("read", "read_file") else None
    assert [producing.producers_of(log).check(header) for header in headers[2:]] == [Duplicate(n) for n in range(2, 7)]
    assert read == [f"{DIRECTORY}/{7:020d}.snapshot"]


def test_an_idle_log_does_not_read_its_snapshot():
    files = new_files()
    log = open_log(files)
    written(log, 3)
    closing.close(log)
    touched = []
    files.fault = lambda operation, path: touched.append(path)
    log = open_log(files, clean=True)
    producing.expire_producers(log, 10**15, 1)
    removing.apply_retention(log, 0, 0)
    closing.close(log)
    assert not [path for path in touched if path.endswith(".snapshot")]


@pytest.mark.parametrize("damage", ["missing", "flipped", "empty"])
def test_a_wrong_snapshot_is_made_good_from_the_log(damage):
    files = new_files()
    log = open_log(files)
    headers = written(log, 3)
    closing.close(log)
    path = f"{DIRECTORY}/{3:020d}.snapshot"
    if damage == "missing":
        files.remove(path)
    elif damage == "flipped":
        files.content(path)[20] ^= 1
    else:
        files.content(path).clear()
    log = open_log(files, clean=True)
    assert [producing.producers_of(log).check(header) for header in headers] == [Duplicate(n) for n in range(3)]


def test_a_roll_leaves_a_snapshot_and_few_are_kept():
    files = new_files()
    log = open_log(files, config=ROLLS)
    written(log, 40)
    assert len(log.segments) > 5
    assert len(snapshots_of(files)) == snapshots.KEPT


def test_after_a_kill_only_what_follows_the_snapshot_is_replayed():
    files = new_files()
    log = open_log(files, config=ROLLS)
    headers = written(log, 40)
    flushing.flush(log)
    newest = int(snapshots_of(files)[-1].split(".")[0])
    before = [segment for segment in log.segments if segment.base_offset < newest - 5]
    assert len(before) > 3
    read = []
    files.fault = lambda operation, path: read.append(path) if operation == "read" and path.endswith(".log") else None
    again = open_log(files, config=ROLLS, recovery_point=log.recovery_point)
    assert [producing.producers_of(again).check(header) for header in headers[-5:]] == [
        Duplicate(n) for n in range(35, 40)
    ]
    assert not [segment.base_offset for segment in before if segment.path + ".log" in read]


def test_a_truncation_goes_back_to_an_older_snapshot_or_to_none():
    files = new_files()
    log = open_log(files, config=ROLLS)
    headers = written(log, 40)
    for end in (39, 30, 9, 2):
        cutting.truncate(log, end)
        assert all(int(name.split(".")[0]) <= end for name in snapshots_of(files))
        first = max(0, end - 5)
        assert [producing.producers_of(log).check(h) for h in headers[first:end]] == [
            Duplicate(n) for n in range(first, end)
        ]
        assert producing.producers_of(log).check(headers[end]) is None
    headers = written(log, 5, first=2)
    closing.close(log)
    log = open_log(files, config=ROLLS, clean=True)
    assert [producing.producers_of(log).check(header) for header in headers] == [Duplicate(n) for n in range(2, 7)]


def test_a_snapshot_that_is_written_after_a_cut_is_not_believed():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=ROLLS)
    background.held = True
    written(log, 6)
    cutting.truncate(log, 1)
    background.release()
    background.release()
    assert snapshots_of(files) == []
    headers = written(log, 20, producer=8)
    background.release()
    background.release()
    again = open_log(files, config=ROLLS)
    assert producing.producers_of(again).check(headers[-1]) == Duplicate(20)
    assert len(producing.producers_of(again)) == 2


def test_state_outlives_the_segments_it_came_from():
    files = new_files()
    log = open_log(files, config=ROLLS)
    headers = written(log, 20)
    removing.set_start_offset(log, 20)
    closing.close(log)
    log = open_log(files, config=ROLLS, clean=True, start_offset=20)
    assert producing.producers_of(log).check(headers[-1]) == Duplicate(19)
    assert (
        producing.producers_of(log).check(read_header(batch_of("v", producer_id=7, producer_epoch=1, base_sequence=0)))
        is not None
    )


def test_after_a_reset_nothing_is_left():
    files = new_files()
    log = open_log(files, config=ROLLS)
    headers = written(log, 20)
    cutting.reset(log, 100)
    assert snapshots_of(files) == []
    closing.close(log)
    log = open_log(files, config=ROLLS, clean=True)
    assert producing.producers_of(log).check(headers[-1]) is None


def test_when_it_was_seen_is_remembered():
    producers = Producers()
    producers.update(read_header(batch_of("v", producer_id=7, producer_epoch=0, base_sequence=0)), 0)
    producers.expire(1_000, 500)
    again = Producers()
    again.restore(*snapshots.unpack(snapshots.pack(producers.states(1_200))))
    again.expire(1_400, 500)
    assert len(again) == 1
    again.expire(1_600, 500)
    assert len(again) == 0


def test_a_disk_that_does_not_remove_an_old_snapshot_fails_the_log_and_raises_at_nobody():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=ROLLS)
    written(log, 6)
    background.held = True
    written(log, 20, first=6)

    def refuse(operation: str, path: str) -> None:
        if operation == "remove" and path.endswith(".snapshot"):
            raise OSError(errno.EIO, "Input/output error", path)

    files.fault = refuse
    background.release()
    assert log.failed
