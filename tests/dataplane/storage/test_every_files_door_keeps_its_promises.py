"""One suite for the real door and the one in memory."""

import os
import pickle
import time
from pathlib import Path

import pytest

from dataplane.storage.files import SystemFiles
from dataplane.storage.log import appending, closing, cutting, lookup, reading
from tests.dataplane.storage.support import append, batch_of, open_log, records_in, stage
from tests.support.memory_files import MemoryFiles


@pytest.fixture(params=["system", "memory"])
def door(request, tmp_path):
    root = str(tmp_path / "root")
    files = SystemFiles() if request.param == "system" else MemoryFiles()
    files.make_directory(root)
    return files, root


def test_appending_reading_cutting(door):
    files, root = door
    file = files.open(f"{root}/a", create=True)
    assert file.append([b"one", bytearray(b"two"), memoryview(b"three")]) == 11
    assert (file.size(), file.read(0, 100), file.read(3, 3), file.read(99, 5)) == (11, b"onetwothree", b"two", b"")
    file.truncate(4)
    assert file.append([b"!"]) == 1
    assert file.read(0, 100) == b"onet!"
    file.sync()
    assert files.open(f"{root}/a").read(0, 9) == b"onet!"


def test_more_buffers_than_one_system_call_takes(door):
    files, root = door
    file = files.open(f"{root}/a", create=True)
    parts = [b"%05d" % n for n in range(3000)]
    assert file.append(parts) == 15_000
    assert file.read(0, 20_000) == b"".join(parts)


def test_a_closed_file_refuses_writes_and_ranges_stay_readable(door):
    files, root = door
    file = files.open(f"{root}/a", create=True)
    file.append([b"data"])
    file.close()
    file.close()
    with pytest.raises(OSError, match="closed"):
        file.append([b"x"])
    with pytest.raises(OSError, match="closed"):
        file.truncate(0)
    files.remove(f"{root}/a")
    assert file.read(0, 4) == b"data"


def test_small_files(door):
    files, root = door
    with pytest.raises(FileNotFoundError):
        files.read_file(f"{root}/a")
    with pytest.raises(FileNotFoundError):
        files.open(f"{root}/a")
    files.write_file(f"{root}/a", b"1")
    files.write_file(f"{root}/a", b"22")
    assert files.read_file(f"{root}/a") == b"22"
    assert files.list(root) == ["a"]
    with pytest.raises(FileNotFoundError):
        files.write_file(f"{root}/none/a", b"")


def test_files_have_dates(tmp_path):
    files, now_ms = SystemFiles(), time.time_ns() // 1_000_000
    file = files.open(f"{tmp_path}/a", create=True)
    file.append([b"x"])
    assert now_ms - 10_000 < files.modified_ms(f"{tmp_path}/a") < now_ms + 60_000
    with pytest.raises(FileNotFoundError):
        files.modified_ms(f"{tmp_path}/none")


def test_small_files_that_are_synced_later_together(door):
    files, root = door
    files.make_directory(f"{root}/b")
    files.put_file(f"{root}/b/a", b"1")
    files.put_file(f"{root}/b/a", b"22")
    files.sync_below(root)
    assert files.read_file(f"{root}/b/a") == b"22"
    assert files.list(f"{root}/b") == ["a"]
    with pytest.raises(FileNotFoundError):
        files.put_file(f"{root}/none/a", b"")


def test_directories(door):
    files, root = door
    assert files.list(f"{root}/none") == []
    files.make_directory(f"{root}/b/c")
    files.make_directory(f"{root}/b/c")
    files.write_file(f"{root}/b/c/file", b"x")
    files.write_file(f"{root}/a", b"x")
    assert files.list(root) == ["a", "b"]
    assert (files.exists(f"{root}/b"), files.exists(f"{root}/b/c/file"), files.exists(f"{root}/x")) == (
        True,
        True,
        False,
    )
    files.rename(f"{root}/b", f"{root}/d")
    assert files.read_file(f"{root}/d/c/file") == b"x"
    with pytest.raises(FileNotFoundError):
        files.rename(f"{root}/b", f"{root}/e")
    files.remove(f"{root}/a")
    files.remove(f"{root}/a")
    files.remove_tree(f"{root}/d")
    files.remove_tree(f"{root}/d")
    assert files.list(root) == []


def test_room_on_the_disk(door):
    files, root = door
    total, usable = files.space(root)
    assert 0 < usable <= total
    with pytest.raises(FileNotFoundError):
        files.space(f"{root}/none")


def test_a_log_lives_on_it(door):
    files, root = door
    log = open_log(files, directory=root)
    for n in range(20):
        append(log, str(n))
    cutting.truncate(log, 15)
    closing.close(log)
    log = open_log(files, directory=root, clean=True)
    assert [value for _, value in records_in(log)] == [str(n).encode() for n in range(15)]


def test_descriptors_go_with_the_last_reference(tmp_path):
    def descriptors() -> int:
        """Those of files below `tmp_path`: other tests' threads open and close theirs meanwhile."""
        return sum(str(fd.resolve()).startswith(f"{tmp_path}/") for fd in Path("/proc/self/fd").iterdir())

    log = open_log(SystemFiles(), directory=str(tmp_path))
    append(log, "a")
    assert descriptors() > 0
    found = reading.read(log, 0, 1000, 1, at_least_one=True)
    closing.close(log)
    log = None
    assert descriptors() == 1
    assert os.pread(found.file.fileno(), found.size, found.position) == found.read()
    found = None
    assert descriptors() == 0


def test_writing_to_a_full_disk_says_so():
    """/dev/full takes nothing."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with pytest.raises(OSError, match="No space"):
        SystemFiles().open("/dev/full").append([b"x"])


def test_staged_memory_is_written_as_it_is(door):
    files, root = door
    log = open_log(files, directory=root)
    frame = bytearray(b"head") + batch_of("in a frame") + b"tail"
    from dataplane.records.batch import read_header

    view = memoryview(frame)[4:-4]
    appending.stage(log, view, read_header(view), 9)
    stage(log, batch_of("second"), 9)
    appending.commit(log)
    assert [(h.base_offset, h.leader_epoch) for h, _ in lookup.batches(log, 0, 2)] == [(0, 9), (1, 9)]
    assert (frame[:4], frame[-4:]) == (b"head", b"tail")


def test_mapped_memory_is_the_file(door):
    files, root = door
    memory = files.map(f"{root}/counters", 4096)
    assert len(memory) == 4096
    assert bytes(memory) == bytes(4096)
    memory[7:10] = b"abc"
    assert files.read_file(f"{root}/counters")[5:12] == b"\0\0abc\0\0"
    again = files.map(f"{root}/counters", 10_000)
    again[9_999] = 1
    assert len(files.read_file(f"{root}/counters")) == 10_000
    assert bytes(again[5:12]) == b"\0\0abc\0\0"
    files.remove(f"{root}/counters")
    again[0] = 1  # whoever still has it may write
    assert not files.exists(f"{root}/counters")
    with pytest.raises(FileNotFoundError):
        files.map(f"{root}/nowhere/counters", 4096)


def test_work_for_another_process_takes_no_lock_and_no_open_file_along(tmp_path):
    files = SystemFiles()
    files.lock(str(tmp_path / ".lock"))
    there = pickle.loads(pickle.dumps(files))
    del there  # what it had taken along would be closed now, in the process that works
    with pytest.raises(BlockingIOError):
        SystemFiles().lock(str(tmp_path / ".lock"))
