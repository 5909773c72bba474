"""Work in a process of its own: the answer comes back, errors too, and the process never outlives its broker."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from dataplane import apart
from dataplane.background import ThreadBackground
from dataplane.storage.files import SystemFiles
from tests.support.waiting import wait_for


def counted(base, pace):
    pace(10)
    return base + 1, os.getpid()


def refused(pace):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def killed(pace):
    os._exit(3)


def endless(path, pace):
    Path(path).write_text(str(os.getpid()))
    while True:
        time.sleep(1)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Loop:
    def call_threadsafe(self, callback):
        callback()


def test_the_answer_comes_from_another_process():
    value, pid = apart.ask(apart.start(), partial(counted, 41), 1e9)
    assert value == 42
    assert pid != os.getpid()
    assert not alive(pid)


def test_errors_are_raised_here():
    with pytest.raises(OSError, match="No space left") as raised:
        apart.ask(apart.start(), refused, 1e9)
    assert raised.value.errno == errno.ENOSPC


def test_a_process_that_dies_is_an_error():
    with pytest.raises(apart.ApartError, match="status 3"):
        apart.ask(apart.start(), killed, 1e9)


def test_the_background_door_gives_the_answer_and_ends_what_runs_when_it_closes(tmp_path):
    background = ThreadBackground(Loop())
    answered = background.run_apart(partial(counted, 1), 1e9)
    endless_one = background.run_apart(partial(endless, str(tmp_path / "pid")), 1e9)
    wait_for(lambda: answered.done, 20, "an answer")
    assert answered.result()[0] == 2
    wait_for((tmp_path / "pid").exists, 20, "the other process")
    wait_for((tmp_path / "pid").read_text, 30, "its id")
    background.close()
    wait_for(lambda: endless_one.done, 10, "the end")
    assert isinstance(endless_one.error, apart.ApartError)


def test_it_ends_with_a_broker_that_is_killed(tmp_path):
    pid_file = tmp_path / "pid"
    code = (
        "from functools import partial\nfrom dataplane import apart\nfrom tests.dataplane.test_work_apart import endless\n"
        f"apart.ask(apart.start(), partial(endless, {str(pid_file)!r}), 1e9)"
    )
    broker = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for(lambda: pid_file.exists() and pid_file.read_text(), 20, "the process")
        pid = int(pid_file.read_text())
        assert alive(pid)
    finally:
        broker.kill()
        broker.wait(10)
    wait_for(lambda: not alive(pid), 10, "its end")


def test_the_files_door_can_go_to_another_process():
    assert isinstance(pickle.loads(pickle.dumps(SystemFiles())), SystemFiles)


def test_the_pace_is_what_was_asked():
    now = [100.0]
    pauses: list[float] = []

    def sleep(seconds):
        pauses.append(seconds)
        now[0] += seconds

    pace = apart.Pacer(1000.0, lambda: now[0], sleep)
    for _ in range(50):
        pace(100)
    assert now[0] == pytest.approx(105.0, abs=0.1)
    now[0] += 60  # idle time gives no credit
    pace(1000)
    assert pauses[-1] == pytest.approx(1.0)
