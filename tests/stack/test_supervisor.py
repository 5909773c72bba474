"""The supervisor with stand-in processes: what it starts, starts again, stops, and what it leaves alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from controlplane.stack.supervisor import Program, StartError, StopRequested, Supervisor
from tests.stack.programs import (
    PARENT,
    SLEEP,
    STUBBORN,
    command,
    eventually,
    is_alive,
    listening,
    server,
    step,
)
from tests.support.ports import free_port
from tests.support.waiting import promised


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervise(tmp_path, said):
    made: list[Supervisor] = []

    def make(*programs: Program, **rest) -> Supervisor:
        supervisor = Supervisor(programs, tmp_path / "log", dict(os.environ), said.append, **rest)
        made.append(supervisor)
        return supervisor

    yield make
    for supervisor in made:
        supervisor.stop()


@contextmanager
def watching(supervisor: Supervisor, act):
    """Run `act` beside `watch`, which must stay in the thread that starts children."""
    problems: list[BaseException] = []

    def body() -> None:
        try:
            act()
        except BaseException as problem:  # noqa: BLE001 - raised again in the thread that waits
            problems.append(problem)
        finally:
            supervisor.request_stop()

    thread = threading.Thread(target=body)
    thread.start()
    supervisor.watch()
    thread.join()
    if problems:
        raise problems[0]
    yield


def test_a_program_starts_only_when_what_it_needs_answers(supervise, tmp_path):
    port = free_port()
    look = f"""
import socket
socket.create_connection(("127.0.0.1", {port}), 1).close()
"""
    supervisor = supervise(step("look", look, needs=("store",)), listening("store", port))
    supervisor.start()
    assert set(supervisor.pids()) == {"store"}


def test_programs_without_needs_start_at_the_same_time(supervise, tmp_path):
    meet = """
import pathlib, sys, time
mine, other = map(pathlib.Path, sys.argv[1:])
mine.touch()
while not other.exists(): time.sleep(0.01)
"""
    one, two = tmp_path / "one", tmp_path / "two"
    supervise(step("one", meet, one, two, patience_s=5), step("two", meet, two, one, patience_s=5)).start()
    assert one.exists()
    assert two.exists()


def test_a_killed_child_is_started_again_and_one_line_says_so(supervise, said):
    port = free_port()
    changes: list[int] = []
    supervisor = supervise(listening("broker-1", port), changed=lambda: changes.append(1))
    supervisor.start()
    first = supervisor.pids()["broker-1"]

    def kill() -> None:
        os.kill(first, signal.SIGKILL)
        eventually(lambda: supervisor.pids().get("broker-1", first) != first)

    with watching(supervisor, kill):
        assert is_alive(supervisor.pids()["broker-1"])
    lines = [line for line in said if "SIGKILL" in line]
    assert lines == [f"broker-1 (process {first}) was killed by SIGKILL: starting it again in 0.3 s"]
    assert changes == [1]


def test_a_child_that_keeps_dying_is_tried_less_and_less_often(supervise, said):
    supervisor = supervise(server("flaky", "import sys; sys.exit(3)"))
    supervisor._children["flaky"].ready = True  # it answered once; what follows is its later life
    supervisor.start()
    supervisor._launch(supervisor._children["flaky"])
    with watching(supervisor, lambda: eventually(lambda: len(said) >= 3)):
        pauses = [line.rpartition(" in ")[2] for line in said[:3]]
    assert pauses == ["0.3 s", "0.6 s", "1.2 s"]
    assert "ended with status 3" in said[0]


def test_what_a_dead_child_leaves_behind_goes_before_its_successor_comes(supervise, tmp_path):
    note = tmp_path / "pool"
    supervisor = supervise(server("worker", PARENT, note, answers=note.exists))
    supervisor.start()
    main, pool = supervisor.pids()["worker"], int(note.read_text())
    note.unlink()

    def kill() -> None:
        os.kill(main, signal.SIGKILL)
        eventually(lambda: not is_alive(pool))
        eventually(note.exists)

    with watching(supervisor, kill):
        assert int(note.read_text()) != pool


def test_stop_ends_everything_it_started_and_nothing_else(supervise):
    stranger = subprocess.Popen(command(SLEEP))
    try:
        supervisor = supervise(server("one", SLEEP), server("two", SLEEP, tier=1))
        supervisor.start()
        pids = supervisor.pids().values()
        supervisor.stop()
        assert not any(is_alive(pid) for pid in pids)
        assert supervisor.pids() == {}
        assert is_alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_higher_tiers_stop_before_lower_ones(supervise, tmp_path):
    log = tmp_path / "order"
    farewell = """
import pathlib, signal, sys, time
def leave(*_):
    with pathlib.Path(sys.argv[1]).open("a") as file: file.write(sys.argv[2] + " ")
    sys.exit()
signal.signal(signal.SIGTERM, leave)
pathlib.Path(sys.argv[1] + sys.argv[2]).touch()
while True: time.sleep(60)
"""

    def polite(name: str, tier: int) -> Program:
        return server(name, farewell, log, name, answers=Path(f"{log}{name}").exists, tier=tier)

    supervisor = supervise(polite("store", 0), polite("web", 2), polite("broker", 1))
    supervisor.start()
    supervisor.stop()
    assert log.read_text().split() == ["web", "broker", "store"]


def test_a_child_that_ignores_sigterm_is_killed_after_its_patience(supervise, said, tmp_path):
    log = tmp_path / "log" / "deaf.log"
    deaf = server("deaf", STUBBORN, answers=lambda: log.read_text() == "deaf\n", stop_patience_s=0.2)
    supervisor = supervise(deaf)
    supervisor.start()
    pid = supervisor.pids()["deaf"]
    supervisor.stop()
    assert not is_alive(pid)
    assert said[-1] == "deaf does not stop: killing it"


def test_a_server_that_ends_before_it_answers_is_a_sentence_with_its_last_words(supervise):
    supervisor = supervise(server("broker-2", "import sys; sys.exit('no disk left')", answers=lambda: False))
    with pytest.raises(StartError, match=r"(?s)broker-2 ended with status 1 before it was ready.*no disk left"):
        supervisor.start()


def test_a_step_that_fails_is_a_sentence(supervise):
    with pytest.raises(StartError, match="migrate ended with status 2"):
        supervise(step("migrate", "import sys; sys.exit(2)")).start()


def test_a_server_that_never_answers_is_a_sentence(supervise):
    with pytest.raises(StartError, match=r"mute did not answer within 0 s\. It wrote nothing"):
        supervise(server("mute", SLEEP, answers=lambda: False, patience_s=0.2)).start()


def test_a_stop_during_the_start_ends_the_start(supervise):
    supervisor = supervise(server("slow", SLEEP, answers=lambda: False))
    threading.Timer(0.3, supervisor.request_stop).start()
    with pytest.raises(StopRequested):
        supervisor.start()
    supervisor.stop()
    assert supervisor.pids() == {}


SUPERVISOR_TO_KILL = """
import os, pathlib, sys
from controlplane.stack.supervisor import Supervisor
from tests.stack.programs import PARENT, STUBBORN, server
folder = pathlib.Path(sys.argv[1])
supervisor = Supervisor(
    (
        server("worker", PARENT, folder / "pool", answers=(folder / "pool").exists),
        server("deaf", STUBBORN, answers=lambda: (folder / "log" / "deaf.log").read_text() == "deaf\\n"),
    ),
    folder / "log", dict(os.environ), print,
)
supervisor.start()
print(*supervisor.pids().values(), supervisor._warden.pid, flush=True)
supervisor.watch()
"""


def test_children_and_their_children_die_with_a_killed_supervisor(tmp_path):
    root = Path(__file__).parent.parent.parent
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR_TO_KILL, tmp_path], cwd=root, stdout=subprocess.PIPE, text=True
    ) as supervisor:
        lines = [supervisor.stdout.readline() for _ in range(3)]
        pids = [*map(int, lines[-1].split()), int((tmp_path / "pool").read_text())]
        assert len(pids) == 4
        assert all(is_alive(pid) for pid in pids)
        supervisor.kill()
    began = time.monotonic()
    eventually(lambda: not any(is_alive(pid) for pid in pids), within_s=60)
    assert time.monotonic() - began < promised(12)  # the deaf one needs the warden's SIGKILL, 8 s later
