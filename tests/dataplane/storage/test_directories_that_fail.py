"""Several data directories: each is locked, and the first error of the disk takes one offline while the others go on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from uuid import UUID

import pytest

from dataplane.config import BrokerConfig
from dataplane.storage.checkpoints.formats import MetadataError
from dataplane.storage.directories import DirectoryInUseError, NoDirectoryError
from dataplane.storage.errors import LogFailedError
from dataplane.storage.files import SystemFiles
from dataplane.storage.log import flushing
from dataplane.storage.manager import LogManager
from tests.crashpoints.workload import StoppedClock
from tests.dataplane.storage.support import append, records_in
from tests.support.memory_files import ImmediateBackground, MemoryFiles

HOMES = ("/a", "/b", "/c")


def manager_on(files, homes=HOMES, background=None) -> LogManager:
    manager = LogManager(
        files, StoppedClock(), background or ImmediateBackground(), BrokerConfig(1, homes, ("127.0.0.1", 0))
    )
    manager.open_all()
    return manager


def fails_below(home: str, *operations: str, code: int = errno.EIO):
    def fault(operation: str, path: str) -> None:
        if path.startswith(home) and (not operations or operation in operations):
            raise OSError(code, os.strerror(code), path)

    return fault


def with_logs(files, count=3):
    manager = manager_on(files)
    return manager, [manager.create("topic", n, UUID(int=1)) for n in range(count)]


def test_new_logs_go_where_there_are_fewest():
    _, logs = with_logs(MemoryFiles(), 6)
    assert [log.directory.rpartition("/")[0] for log in logs] == ["/a", "/b", "/c", "/a", "/b", "/c"]


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_an_error_takes_all_logs_of_its_directory_and_no_other(code):
    files = MemoryFiles()
    manager, logs = with_logs(files, 6)
    heard = []
    manager.on_directory_failure(lambda *what: heard.append(what))
    append(logs[1], "kept")
    files.fault = fails_below("/b", "append", code=code)
    with pytest.raises(LogFailedError):
        append(logs[1], "refused")
    assert manager.directories() == [("/a", None), ("/b", os.strerror(code)), ("/c", None)]
    assert heard == [("/b", os.strerror(code), [("topic", 1), ("topic", 4)])]
    assert [log.failed for log in logs] == [False, True, False, False, True, False]
    append(logs[0], "goes on")
    assert manager.create("other", 0, UUID(int=2)).directory.startswith(("/a", "/c"))


def test_what_was_acknowledged_before_the_disk_was_full_is_there_after_the_next_start():
    files = MemoryFiles()
    manager, logs = with_logs(files, 1)
    append(logs[0], "kept")
    files.capacity = files.used() + 40
    with pytest.raises(LogFailedError):
        append(logs[0], "x" * 100)
    manager.close()
    files.capacity = None
    log = manager_on(files).get("topic", 0)
    assert records_in(log) == [(0, b"kept")]
    append(log, "goes on")


def test_a_stop_with_a_directory_offline_is_clean_only_for_the_others():
    files = MemoryFiles()
    manager, logs = with_logs(files)
    files.fault = fails_below("/b", "append")
    with pytest.raises(LogFailedError):
        append(logs[1], "x")
    files.fault = fails_below("/b")
    manager.close()
    assert [files.exists(f"{home}/.kafka_cleanshutdown") for home in HOMES] == [True, False, True]


def test_a_checkpoint_that_cannot_be_written_is_the_end_of_its_directory_only():
    files = MemoryFiles()
    manager, logs = with_logs(files)
    for log in logs:
        append(log, "x")
        flushing.flush(log)
    files.fault = fails_below("/b", "write_file")
    assert manager.checkpoints.write({}).error is None
    assert [error is None for _, error in manager.directories()] == [True, False, True]
    assert b"topic 2 1" in files.read_file("/c/recovery-point-offset-checkpoint")


def test_a_sync_in_the_background_that_fails_takes_the_directory():
    files, background = MemoryFiles(), ImmediateBackground()
    manager = manager_on(files, background=background)
    log = manager.create("topic", 0, UUID(int=1))
    append(log, "x")
    files.fault = fails_below("/a", "sync")
    log.fail(OSError(errno.EIO, "Input/output error"))
    assert manager.directories()[0] == ("/a", "Input/output error")


def test_a_start_goes_on_without_a_directory_that_cannot_be_read():
    files = MemoryFiles()
    manager, _ = with_logs(files)
    manager.close()
    files.fault = fails_below("/b")
    manager = manager_on(files)
    assert manager.directories()[1] == ("/b", "Input/output error")
    assert [(log.topic, log.partition) for log in manager.logs()] == [("topic", 0), ("topic", 2)]
    assert manager.has_offline_directories()


def test_a_start_without_any_directory_says_why():
    files = MemoryFiles()
    files.fault = fails_below("/")
    with pytest.raises(
        NoDirectoryError, match=r"none of the data directories can be used \(/a: Input/output error; /b"
    ):
        manager_on(files)


def test_a_directory_is_locked_against_a_second_process(tmp_path):
    home = str(tmp_path)
    manager = manager_on(SystemFiles(), (home,))
    code = (
        "import fcntl, sys\n"
        "try: fcntl.flock(open(sys.argv[1], 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError: sys.exit(7)"
    )
    assert subprocess.run([sys.executable, "-c", code, f"{home}/.lock"], check=False, timeout=30).returncode == 7
    with pytest.raises(DirectoryInUseError, match="is in use by another process: is this broker running already"):
        manager_on(SystemFiles(), (home,))
    manager.close()
    manager_on(SystemFiles(), (home,)).close()


def test_a_directory_of_another_broker_stops_the_start():
    files = MemoryFiles()
    manager_on(files).close()
    other = LogManager(files, StoppedClock(), ImmediateBackground(), BrokerConfig(2, HOMES, ("127.0.0.1", 0)))
    with pytest.raises(MetadataError, match="belongs to broker 1, not 2"):
        other.open_all()
