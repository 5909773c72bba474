"""The invariant that keeps consumers and followers safe: what is below `end_offset` is in the file."""

import errno

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.storage.checkpoints.epochs import Epochs
from dataplane.storage.log import LogConfig, LogFailedError, appending, flushing, reading
from tests.dataplane.storage.support import DIRECTORY, append, batch_of, new_files, open_log, records_in, stage
from tests.support.memory_files import ImmediateBackground

LOG = f"{DIRECTORY}/{0:020d}.log"


def test_nothing_is_readable_before_the_commit():
    log = open_log(new_files())
    assert stage(log, batch_of("a", "b")) == 0
    assert stage(log, batch_of("c")) == 2
    assert (log.end_offset, log.staged_end, log.size_bytes) == (0, 3, 0)
    assert reading.read(log, 0, 1000, 3, at_least_one=True) is None
    appending.commit(log)
    assert (log.end_offset, log.staged_end) == (3, 3)
    assert records_in(log) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_while_the_file_is_written_the_end_has_not_moved():
    files = new_files()
    log = open_log(files, config=LogConfig(segment_bytes=200))
    seen = []

    def watch(operation, path):
        if operation == "append":
            in_file = sum(len(files.content(segment.path + ".log")) for segment in log.segments)
            seen.append((log.end_offset, log.size_bytes == in_file))

    files.fault = watch
    for _ in range(6):
        stage(log, batch_of("x" * 30))
    appending.commit(log)
    assert [in_step for _, in_step in seen] == [True] * len(seen)
    assert [end for end, _ in seen] == [0, 2, 4]  # two batches fill a segment
    assert log.end_offset == 6


def test_one_turn_is_one_write():
    files = new_files()
    log = open_log(files)
    appends = []
    files.fault = lambda operation, path: appends.append(path) if operation == "append" else None
    for n in range(50):
        stage(log, batch_of(str(n)))
    appending.commit(log)
    assert appends == [LOG]
    appending.commit(log)
    assert appends == [LOG]


def test_a_full_disk_fails_the_log_and_drops_what_was_staged():
    files = new_files()
    log = open_log(files)
    append(log, "kept")
    files.capacity = files.used() + 100
    stage(log, batch_of("lost" * 50))
    with pytest.raises(LogFailedError) as caught:
        appending.commit(log)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.failed
    assert (log.end_offset, log.staged_end) == (1, 1)
    assert records_in(log) == [(0, b"kept")]
    files.capacity = None
    stage(log, batch_of("refused"))
    with pytest.raises(LogFailedError):
        appending.commit(log)
    assert log.end_offset == 1
    recovered = open_log(files)
    assert recovered.bytes_cut == 100
    append(recovered, "again")
    assert records_in(recovered) == [(0, b"kept"), (1, b"again")]


@pytest.mark.parametrize("failing", ["open", "append"])
def test_a_failure_in_the_middle_of_a_roll_keeps_what_was_written(failing):
    files = new_files()
    log = open_log(files, config=LogConfig(segment_bytes=200))

    def fault(operation, path):
        if operation == failing and path != LOG:
            raise OSError(errno.EIO, "the disk is gone", path)

    files.fault = fault
    for _ in range(5):
        stage(log, batch_of("x" * 30))
    with pytest.raises(LogFailedError):
        appending.commit(log)
    files.fault = None
    assert log.end_offset == 2
    assert [offset for offset, _ in records_in(log)] == [0, 1]
    assert open_log(files).end_offset == 2


def test_a_failed_sync_in_the_background_fails_the_log():
    files = new_files()
    log = open_log(files, config=LogConfig(segment_bytes=200))

    def fault(operation, path):
        if operation == "sync":
            raise OSError(errno.EIO, "the disk is gone", path)

    files.fault = fault
    for _ in range(3):
        append(log, "x" * 30)
    assert log.failed
    assert log.recovery_point == 0


def test_a_failure_between_stage_and_commit_is_not_taken_for_success():
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=LogConfig(segment_bytes=200))
    background.held = True
    for _ in range(3):
        append(log, "x" * 30)
    stage(log, batch_of("waited for"))

    def fault(operation, path):
        if operation == "sync":
            raise OSError(errno.EIO, "the disk is gone", path)

    files.fault = fault
    background.release()
    with pytest.raises(LogFailedError):
        appending.commit(log)
    assert log.end_offset == 3


def test_the_first_batch_of_an_epoch_waits_for_no_disk():
    files = new_files()
    log = open_log(files)
    order = []
    files.fault = lambda operation, path: order.append((operation, path.rpartition("/")[2]))
    append(log, "a", epoch=7)
    assert [step for step in order if step[0] != "open"] == [("append", f"{0:020d}.log")]


@pytest.mark.parametrize("how", ["flush", "roll", "sync"])
def test_the_recovery_point_passes_an_epoch_that_is_on_disk(how):
    files, background = new_files(), ImmediateBackground()
    log = open_log(files, background, config=LogConfig(segment_bytes=200))
    points = {}

    def fault(operation, path):
        points.setdefault((operation, path.rpartition("/")[2]), log.recovery_point)

    files.fault = fault
    append(log, "x" * 60, epoch=7)
    if how == "flush":
        flushing.flush(log)
    elif how == "roll":
        append(log, "x" * 60, epoch=7)
    else:
        flushing.syncer(log)()
        assert log.recovery_point == 0
        flushing.synced(log, 1, log.truncations)
    assert points["write_file", "leader-epoch-checkpoint"] == 0
    assert log.recovery_point == 1
    assert Epochs(files, DIRECTORY).entries() == [(7, 0)]
    points.clear()
    flushing.flush(log)
    assert ("write_file", "leader-epoch-checkpoint") not in points


def test_epochs_that_cannot_be_written_fail_the_log():
    files = new_files()
    log = open_log(files)
    append(log, "a", epoch=7)

    def fault(operation, path):
        if operation == "write_file":
            raise OSError(errno.ENOSPC, "no space left", path)

    files.fault = fault
    with pytest.raises(LogFailedError):
        flushing.flush(log)
    assert (log.failed, log.recovery_point) == (True, 0)


def test_a_batch_larger_than_a_segment_gets_one_of_its_own():
    log = open_log(new_files(), config=LogConfig(segment_bytes=200))
    for value in ("a", "b" * 500, "c"):
        append(log, value)
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]
    assert [value for _, value in records_in(log)] == [b"a", b"b" * 500, b"c"]
