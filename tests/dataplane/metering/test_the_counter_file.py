"""The file that outlives the process: what was counted is in it at every moment, in the real door and in memory."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from dataplane.metering.counters import (
    BYTES,
    CONSUMED,
    FIRST_SLOTS,
    MOST_TOLD,
    NO_ID,
    NOWHERE,
    PRODUCED,
    Counters,
    CountersError,
    CounterSnapshot,
    Row,
)
from dataplane.storage.files import SystemFiles
from tests.support.memory_files import MemoryFiles


@pytest.fixture(params=["system", "memory"])
def door(request, tmp_path):
    files = SystemFiles() if request.param == "system" else MemoryFiles()
    files.make_directory(str(tmp_path))
    return files, f"{tmp_path}/usage-1.counters"


def counters_of(door, slots=4):
    return Counters(door[0], door[1], boot=0xABC, broker=7, slots=slots)


def counted(snapshot):
    return [row for row in snapshot.rows() if row is not None]


def rows(door):
    return {row.name: row for row in counted(CounterSnapshot(door[0].read_file(door[1])))}


def test_what_is_counted_is_in_the_file_at_once(door):
    counters = counters_of(door)
    at = counters.claim("aaaabbbb.orders", 3)
    counters.words[at + PRODUCED] = 2**40
    counters.words[at + CONSUMED] = 5
    counters.alive(0, 12)
    remains = CounterSnapshot(door[0].read_file(door[1]))
    assert (remains.boot, remains.broker, remains.hour) == (0xABC, 7, 12)
    assert counted(remains) == [Row("aaaabbbb.orders", 3, 2**40, 5, 0)]


def test_storage_is_counted_up_to_the_last_sign_of_life(door):
    counters = counters_of(door)
    at = counters.claim("aaaabbbb.orders", 0)
    counters.words[at + BYTES] = 10
    counters.alive(7_000, 0)
    assert rows(door)["aaaabbbb.orders"].byte_seconds == 70


def test_more_topics_than_slots_make_the_file_larger_and_lose_nothing(door):
    counters = counters_of(door, slots=2)
    for number in range(100):
        at = counters.claim(f"aaaabbbb.t{number}", 0)
        counters.words[at + PRODUCED] = number + 1
    assert {name: row.produced_bytes for name, row in rows(door).items()} == {
        f"aaaabbbb.t{n}": n + 1 for n in range(100)
    }


def test_a_slot_that_was_given_back_is_used_again_from_zero(door):
    counters = counters_of(door)
    at = counters.claim("aaaabbbb.a-rather-long-name", 0)
    counters.words[at + PRODUCED] = 9
    counters.release(at)
    assert rows(door) == {}
    assert counters.claim("aaaabbbb.b", 1) == at
    assert rows(door) == {}
    counters.words[at + CONSUMED] = 1
    assert rows(door) == {"aaaabbbb.b": Row("aaaabbbb.b", 1, 0, 1, 0)}


def test_the_longest_name_fits(door):
    counters = counters_of(door)
    name = "aaaabbbb." + "x" * 230
    counters.words[counters.claim(name, 0) + PRODUCED] = 1
    assert list(rows(door)) == [name]


def test_where_the_disk_is_full_further_topics_go_without():
    files = MemoryFiles()
    files.make_directory("/data")
    counters = Counters(files, "/data/usage", boot=1, broker=1, slots=2)
    first = counters.claim("aaaabbbb.first", 0)
    counters.words[first + PRODUCED] = 1
    files.capacity = files.used()
    nowhere = counters.claim("aaaabbbb.second", 0)
    counters.words[nowhere + PRODUCED] = 2
    counters.release(nowhere)
    assert counters.claim("aaaabbbb.third", 0) == nowhere == NOWHERE
    assert [row.name for row in counted(CounterSnapshot(files.read_file("/data/usage")))] == ["aaaabbbb.first"]
    files.capacity = None
    assert counters.claim("aaaabbbb.fourth", 0) != NOWHERE


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"x" * 63, os.urandom(4096)])
def test_what_is_no_counter_file_is_refused(data):
    with pytest.raises(CountersError):
        CounterSnapshot(data)


def test_a_file_cut_short_gives_the_rows_that_it_has(door):
    counters = counters_of(door)
    for name in ("aaaabbbb.a", "aaaabbbb.b", "aaaabbbb.c"):
        counters.words[counters.claim(name, 0) + PRODUCED] = 1
    data = door[0].read_file(door[1])
    assert [row.name for row in counted(CounterSnapshot(data[: 8 * (8 + 37 * 2)]))] == ["aaaabbbb.a"]


def test_mapping_on_a_full_disk_says_so(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="full"):
        Counters(SystemFiles(), f"{tmp_path}/usage", boot=1, broker=1)
    monkeypatch.undo()
    counters = Counters(SystemFiles(), f"{tmp_path}/usage", boot=1, broker=1)
    status = (tmp_path / "usage").stat()
    assert status.st_blocks * 512 >= status.st_size >= FIRST_SLOTS * 37 * 8  # no holes
    assert counters.claim("aaaabbbb.a", 0) != NOWHERE


COUNT_UNTIL_KILLED = """
import sys
from dataplane.metering.counters import PRODUCED, Counters
from dataplane.storage.files import SystemFiles
counters = Counters(SystemFiles(), sys.argv[1], boot=1, broker=1)
at = counters.claim("aaaabbbb.orders", 0)
value = 0
while True:
    value += 1
    counters.words[at + PRODUCED] = value
    if value == 100_000:
        print("counting", flush=True)
"""


def test_a_killed_process_leaves_what_it_counted(tmp_path):
    path = f"{tmp_path}/usage"
    with subprocess.Popen([sys.executable, "-c", COUNT_UNTIL_KILLED, path], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"counting\n"
        process.send_signal(signal.SIGKILL)
    (row,) = counted(CounterSnapshot(SystemFiles().read_file(path)))
    assert row.produced_bytes >= 100_000


ORDERS_ID = bytes(range(16))


def test_the_uuid_of_a_topic_outlives_the_process_too(door):
    counters = counters_of(door)
    counters.words[counters.claim("aaaabbbb.orders", 0, ORDERS_ID) + PRODUCED] = 1
    counters.words[counters.claim("aaaabbbb.clicks", 0) + PRODUCED] = 1
    assert {name: row.topic_id for name, row in rows(door).items()} == {
        "aaaabbbb.orders": ORDERS_ID,
        "aaaabbbb.clicks": NO_ID,
    }


@pytest.mark.parametrize("length", [215, 216, 230])
def test_a_name_that_needs_the_room_of_the_uuid_is_kept_whole(door, length):
    counters = counters_of(door)
    name = "aaaabbbb." + "x" * length
    counters.words[counters.claim(name, 0, ORDERS_ID) + PRODUCED] = 1
    assert {row.name: row.topic_id for row in rows(door).values()} == {name: ORDERS_ID if length <= 215 else NO_ID}


def test_a_slot_that_had_a_longer_name_before_says_nothing_of_it(door):
    counters = counters_of(door)
    counters.release(counters.claim("aaaabbbb." + "x" * 230, 0))
    counters.words[counters.claim("aaaabbbb.orders", 0) + PRODUCED] = 1
    assert rows(door)["aaaabbbb.orders"].topic_id == NO_ID


def test_a_file_of_the_release_before_has_no_uuids_whatever_stands_behind_its_names(door):
    counters = counters_of(door)
    counters.words[counters.claim("aaaabbbb.orders", 0, ORDERS_ID) + PRODUCED] = 5
    counters.words[NOWHERE + 7] = 0  # as that release leaves it
    assert rows(door) == {"aaaabbbb.orders": Row("aaaabbbb.orders", 0, 5, 0, 0)}


def boots(door):
    return CounterSnapshot(door[0].read_file(door[1])).boots()


def test_the_file_names_the_boots_that_were_told_before_it_the_oldest_first(door):
    counters = counters_of(door)
    at = counters.claim("aaaabbbb.orders", 0)
    counters.words[at + PRODUCED] = 5
    assert boots(door) == [0xABC]
    for boot in (0x7, 0x2, 0x7):
        counters.has_told(boot)
    assert boots(door) == [0x7, 0x2, 0xABC]
    assert rows(door) == {"aaaabbbb.orders": Row("aaaabbbb.orders", 0, 5, 0, 0)}, "they are no topics"
    counters.spoke(0xABC)
    assert boots(door) == [0x7, 0x2, 0xABC], "a reader may not have believed it"


def test_of_very_many_boots_the_last_are_named(door):
    counters = counters_of(door)
    for boot in range(1, MOST_TOLD + 6):
        counters.has_told(boot)
    assert boots(door) == [*range(6, MOST_TOLD + 6), 0xABC]
