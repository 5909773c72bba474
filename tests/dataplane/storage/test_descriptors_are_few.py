"""A log holds few descriptors, however many segments it has and however they are read: all tenants share them."""

from pathlib import Path

from dataplane.storage.files import SystemFiles
from dataplane.storage.log import LogConfig
from tests.dataplane.storage.support import append, open_log
from tests.support.memory_files import ImmediateBackground


def open_files(directory) -> int:
    return sum(
        str(entry.readlink()).startswith(str(directory))
        for entry in Path("/proc/self/fd").iterdir()
        if entry.is_symlink()
    )


def test_writing_and_reading_many_segments(tmp_path):
    log = open_log(SystemFiles(), ImmediateBackground(), directory=str(tmp_path), config=LogConfig(segment_bytes=200))
    for number in range(200):
        append(log, b"v" * 100 + b"%d" % number)
    assert len(list(tmp_path.glob("*.log"))) == 200
    assert open_files(tmp_path) <= 6
    for offset in range(200):
        found = log.read(offset, 10**6, 200, at_least_one=True)
        assert found is not None
        assert found.read()
    assert open_files(tmp_path) <= 6
    log.close()


def test_a_range_that_is_being_sent_outlives_the_closing(tmp_path):
    log = open_log(SystemFiles(), ImmediateBackground(), directory=str(tmp_path), config=LogConfig(segment_bytes=200))
    for number in range(5):
        append(log, b"v" * 100 + b"%d" % number)
    ranges = [log.read(offset, 10**6, 5, at_least_one=True) for offset in range(5)]
    for number, found in enumerate(ranges):
        assert found is not None
        assert b"v%d" % number in found.read()
    append(log, b"more")
    log.close()
