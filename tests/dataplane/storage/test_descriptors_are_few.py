"""A log holds few descriptors, however many segments it has and however they are read: all tenants share them."""

from pathlib import Path

from dataplane.storage.files import SystemFiles
from dataplane.storage.log import LogConfig, closing, reading
from dataplane.storage.segments import descriptors as descriptors_module
from dataplane.storage.segments.descriptors import DESCRIPTORS_EACH, REST_S, Descriptors
from tests.dataplane.storage.support import append, offset_for_timestamp, open_log, records_in
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
        found = reading.read(log, offset, 10**6, 200, at_least_one=True)
        assert found is not None
        assert found.read()
    assert open_files(tmp_path) <= 6
    closing.close(log)


def test_a_range_that_is_being_sent_outlives_the_closing(tmp_path):
    log = open_log(SystemFiles(), ImmediateBackground(), directory=str(tmp_path), config=LogConfig(segment_bytes=200))
    for number in range(5):
        append(log, b"v" * 100 + b"%d" % number)
    ranges = [reading.read(log, offset, 10**6, 5, at_least_one=True) for offset in range(5)]
    for number, found in enumerate(ranges):
        assert found is not None
        assert b"v%d" % number in found.read()
    append(log, b"more")
    closing.close(log)


def many_logs(tmp_path, background, *, limit: int, count: int, later=None):
    files = SystemFiles()
    descriptors = Descriptors(limit, background, later)
    logs = []
    for number in range(count):
        directory = tmp_path / str(number)
        directory.mkdir()
        config = LogConfig(index_interval_bytes=100)
        logs.append(open_log(files, background, directory=str(directory), config=config, descriptors=descriptors))
    return logs, descriptors


def test_all_logs_together_hold_what_is_allowed(tmp_path):
    logs, descriptors = many_logs(tmp_path, ImmediateBackground(), limit=5, count=40)
    for turn in range(3):
        for number, log in enumerate(logs):
            append(log, *[b"v" * 100 + b"%d" % number] * 3, now_ms=turn)
            assert open_files(tmp_path) <= 5 * DESCRIPTORS_EACH
    assert descriptors.count() == 5
    for number, log in enumerate(logs):
        assert [value for _, value in records_in(log)] == [b"v" * 100 + b"%d" % number] * 9
        assert open_files(tmp_path) <= 5 * DESCRIPTORS_EACH
        closing.close(log)
    assert descriptors.count() == 0


def test_the_one_in_use_stays_open(tmp_path):
    logs, _ = many_logs(tmp_path, ImmediateBackground(), limit=5, count=40)
    append(logs[0], b"v")
    busy = logs[0].active
    for log in logs[1:]:
        append(log, b"v")
        append(logs[0], b"v")
        assert busy._file is not None
    for log in logs:
        closing.close(log)


def test_what_was_put_away_is_found_again_without_walking_the_log(tmp_path):
    background = ImmediateBackground()
    logs, _ = many_logs(tmp_path, background, limit=2, count=3)
    for number in range(200):
        append(logs[0], b"v" * 100 + b"%d" % number, now_ms=number)
    background.held = True
    append(logs[1], b"v")
    append(logs[2], b"v")
    append(logs[1], b"v")
    assert logs[0].active.has_unsaved_index() is False, "it counts as saved while it is on its way"
    assert records_in(logs[0], 150, 151) == [(150, b"v" * 100 + b"150")]
    background.release()
    append(logs[2], b"v")
    append(logs[1], b"v")
    append(logs[2], b"v")
    assert logs[0].active._index is None
    append(logs[0], b"v", now_ms=1000)
    assert logs[0].active.index.entries() >= 100
    assert records_in(logs[0], 150, 151) == [(150, b"v" * 100 + b"150")]
    assert offset_for_timestamp(logs[0], 77, 999)[:2] == (77, 77)
    for log in logs:
        closing.close(log)


def test_indexes_of_very_many_logs_are_written_one_log_after_the_other(tmp_path):
    """Each takes the interpreter from the loop: threads full of them held an append back for 100 ms and more."""
    background = ImmediateBackground()
    logs, _ = many_logs(tmp_path, background, limit=2, count=30)
    background.held = True
    for log in logs:
        append(log, b"v")
    turns = 0
    while background._waiting:
        assert len(background._waiting) == 1
        background.release()
        turns += 1
    assert turns == 28
    assert [log.active._index is None for log in logs] == [True] * 28 + [False] * 2
    for log in logs:
        assert records_in(log) == [(0, b"v")]
        closing.close(log)


def test_one_that_was_opened_again_or_closed_while_others_were_written_is_not(tmp_path):
    background = ImmediateBackground()
    logs, _ = many_logs(tmp_path, background, limit=2, count=5)
    background.held = True
    for log in logs:
        append(log, b"v")  # the first is being written, the second and the third wait
    append(logs[1], b"v")
    closing.abandon(logs[2])
    while background._waiting:
        background.release()
    written = [(tmp_path / str(number) / "00000000000000000000.timeindex").exists() for number in range(5)]
    assert written == [True, False, False, True, False]
    assert records_in(logs[1]) == [(0, b"v"), (1, b"v")]


def test_indexes_that_are_written_late_do_not_lie_beside_another_log_of_the_same_name(tmp_path):
    """The first log was deleted while its indexes waited for a thread, and its topic was made again."""
    background = ImmediateBackground()
    logs, _ = many_logs(tmp_path, background, limit=2, count=3)
    background.held = True
    for log in logs:
        append(log, b"v")
    closing.abandon(logs[0])
    for path in (tmp_path / "0").iterdir():
        path.unlink()
    again = open_log(SystemFiles(), background, directory=str(tmp_path / "0"))
    background.release()
    assert not has_index(tmp_path, 0)
    for log in (again, *logs[1:]):
        closing.close(log)


def test_a_segment_of_a_log_that_has_gone_is_not_saved_whoever_opens_it_again(tmp_path):
    background = ImmediateBackground()
    logs, _ = many_logs(tmp_path, background, limit=2, count=3)
    append(logs[0], b"v")
    segment = logs[0].active
    closing.abandon(logs[0])
    assert segment.index_saver()() is False
    assert not has_index(tmp_path, 0)
    for log in logs[1:]:
        closing.close(log)


def test_a_name_is_made_durable_also_when_the_file_was_opened_again(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("dataplane.storage.files._sync_directory", synced.append)
    files = SystemFiles()
    path = str(tmp_path / "new")
    first = files.open(path, create=True)
    del first
    again = files.open(path)
    again.sync()
    assert synced == [path]
    again.sync()
    assert synced == [path]


def has_index(tmp_path, number: int) -> bool:
    return (tmp_path / str(number) / "00000000000000000000.timeindex").exists()


def test_there_is_a_rest_after_each(tmp_path):
    rests = []
    logs, _ = many_logs(
        tmp_path, ImmediateBackground(), limit=2, count=6, later=lambda s, go_on: rests.append((s, go_on))
    )
    for log in logs:
        append(log, b"v")
    assert [has_index(tmp_path, number) for number in range(6)] == [True] + [False] * 5
    for done in range(1, 5):
        [(seconds, go_on)] = rests
        assert seconds == REST_S
        rests.clear()
        go_on()
        assert [has_index(tmp_path, number) for number in range(6)] == [
            number < min(done + 1, 4) for number in range(6)
        ]
    append(logs[0], b"v")
    assert has_index(tmp_path, 4), "there was nothing to do at the end of the last rest, so the next is written at once"
    for number, log in enumerate(logs):
        closing.close(log)
        assert has_index(tmp_path, number)


def test_there_is_none_when_much_is_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(descriptors_module, "RESTS_UP_TO_BYTES", 1_000)
    background, rests = ImmediateBackground(), []
    logs, _ = many_logs(tmp_path, background, limit=2, count=6, later=lambda _, go_on: rests.append(go_on))
    background.held = True
    for log in logs:
        for number in range(30):  # an entry of 20 bytes for each
            append(log, b"v" * 100, now_ms=number)
    background.release()
    background.release()
    assert rests == []
    background.release()
    assert len(rests) == 1, "one is left, and that is little"
    for log in logs:
        closing.close(log)
    assert [has_index(tmp_path, number) for number in range(6)] == [True] * 6
