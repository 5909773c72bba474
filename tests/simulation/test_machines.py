"""What a simulated machine does to its broker: late bytes, dates that step, slow disks, exceptions that a loop survives."""

from __future__ import annotations

import struct
from random import Random

import pytest

from tests.simulation.disturbances import PlannedError
from tests.support.memory_files import MemoryFiles
from tests.support.virtual_background import VirtualBackground
from tests.support.virtual_loop import VirtualNetwork


class Listening:
    """What sits at one end of a connection, and writes down what it hears."""

    def __init__(self, said: list[str], connection=None, name: str = "") -> None:
        self.said, self.connection, self.name = said, connection, name

    def frame(self, frame: memoryview) -> None:
        self.said.append(bytes(frame).decode())
        if bytes(frame) == b"raise":
            raise PlannedError

    def closed(self, reason: str) -> None:
        self.said.append(f"{self.name} closed")


class Pair:
    """Two hosts; `connect` opens a connection from `a` to `b`."""

    def __init__(self) -> None:
        self.network = VirtualNetwork(3)
        self.at_a: list[str] = []
        self.at_b: list[str] = []
        self.network.loop("b").listen("b", 1, lambda connection: Listening(self.at_b, connection, "b"))

    def connect(self):
        opened = []

        def accept(connection):
            opened.append(connection)
            return Listening(self.at_a, connection, "a")

        self.network.loop("a").connect("b", 1, accept, lambda reason: None)
        self.network.run_until(lambda: opened)
        self.network.run_for(0.01)
        return opened[0]

    def send(self, connection, text: str) -> None:
        self.network.loop("a").post(lambda: connection.send([struct.pack(">i", len(text)) + text.encode()]))
        self.network.run_for(0.01)


@pytest.fixture
def pair():
    return Pair()


def test_what_was_sent_on_a_connection_that_ended_may_come_after_what_a_new_one_brings(pair):
    old = pair.connect()
    pair.network.delay("a", "b", 1.0)
    pair.send(old, "late")
    pair.network.reset("a", "b")
    pair.network.run_for(0.01)
    assert pair.at_a == ["a closed"]
    pair.send(pair.connect(), "new")
    assert pair.at_b == ["new"]
    pair.network.run_for(1.0)
    assert pair.at_b == ["new", "late", "b closed"]


def test_what_is_delayed_keeps_its_order_and_connections_opened_since_are_not_delayed(pair):
    old = pair.connect()
    pair.network.delay("a", "b", 0.5)
    for text in ("1", "2", "3"):
        pair.send(old, text)
    new = pair.connect()
    pair.send(new, "other")
    pair.network.run_for(0.6)
    pair.send(old, "4")
    assert pair.at_b == ["other", "1", "2", "3", "4"]


def test_a_host_has_a_date_of_its_own_and_time_passes_for_all(pair):
    here, there = pair.network.loop("a").clock, pair.network.loop("b").clock
    pair.network.step_clock("a", -5_000)
    assert there.now_ms() - here.now_ms() == 5_000
    assert here.monotonic() == there.monotonic()


def test_an_exception_ends_the_run(pair):
    pair.network.loop("a").post(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        pair.network.run_for(0.1)


def test_a_loop_survives_what_is_planned_and_does_what_else_it_has_to_do(pair):
    pair.network.survives = lambda error: isinstance(error, PlannedError)
    done = []

    def fails() -> None:
        raise PlannedError

    loop = pair.network.loop("a")
    loop.post(fails)
    loop.post(lambda: done.append("the next"))
    loop.at_turn_end(fails)
    loop.at_turn_end(lambda: done.append("at the end"))
    pair.network.run_for(0.1)
    assert done == ["the next", "at the end"]


def test_a_connection_whose_frame_raises_ends(pair):
    pair.network.survives = lambda error: isinstance(error, PlannedError)
    connection = pair.connect()
    pair.send(connection, "raise")
    pair.network.run_for(0.01)
    assert (pair.at_b, pair.at_a) == (["raise", "b closed"], ["a closed"])


def test_work_in_the_background_takes_effect_and_is_heard_of_later():
    network = VirtualNetwork(1)
    background = VirtualBackground(network.loop("a"), Random(1))
    done: list[int] = []
    future = background.run(lambda: done.append(1))
    assert not done
    network.run_until(lambda: bool(done), 1.0)
    assert not future.done
    network.run_until(lambda: future.done, 1.0)


def test_what_a_crash_interrupts_is_not_done():
    network = VirtualNetwork(1)
    background = VirtualBackground(network.loop("a"), Random(1))
    done: list[int] = []
    background.run(lambda: done.append(1))
    network.crash("a")
    network.run_for(5.0)
    assert not done


def test_more_jobs_than_threads_wait():
    network = VirtualNetwork(1)
    background = VirtualBackground(network.loop("a"), Random(1))
    background.slow = (1.0, 1.0)
    futures = [background.run(lambda: None) for _ in range(5)]
    network.run_for(1.5)
    assert [future.done for future in futures] == [True] * 4 + [False]


def test_a_job_that_fails_tells_its_future():
    network = VirtualNetwork(1)
    future = VirtualBackground(network.loop("a"), Random(1)).run(lambda: 1 // 0)
    network.run_until(lambda: future.done, 1.0)
    assert isinstance(future.error, ZeroDivisionError)


def test_what_is_on_disk_is_what_a_power_cut_leaves():
    files = MemoryFiles()
    opened = files.open("/log", create=True)
    opened.append([b"synced"])
    opened.sync()
    opened.append([b", and not"])
    assert files.on_disk("/log") == b"synced"
    opened.truncate(3)
    assert files.on_disk("/log") == b"syn"  # what was cut is not of this file, even if it may come back
    assert files.on_disk("/none") == b""
