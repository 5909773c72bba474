"""The door over kazoo keeps the contract on a real ZooKeeper server."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from dataplane.cluster.zookeeper import KazooZooKeeper
from dataplane.tasks import Future
from tests.dataplane.cluster.zookeeper_contract import ZooKeeperContract
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.integration

SESSION_S = 8.0
"""Nobody waits for it to end by itself, and a busy machine must not end it."""


class ThreadLoop:
    """What the door uses of the loop, and a way to run what it queued."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Callable[[], None]] = queue.Queue()

    def call_threadsafe(self, callback: Callable[[], None]) -> None:
        self._queue.put(callback)

    call_soon = call_threadsafe

    def until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {within_s} s"
            try:
                self._queue.get(timeout=0.05)()
            except queue.Empty:
                continue


class Real:
    def __init__(self, server: ZooKeeperServer, chroot: str) -> None:
        self.server = server
        self.chroot = chroot
        self.loop = ThreadLoop()
        self.doors: list[KazooZooKeeper] = []

    def connect(self) -> KazooZooKeeper:
        door = KazooZooKeeper(self.loop, self.server.hosts, SESSION_S, self.chroot)  # type: ignore[arg-type]
        self.doors.append(door)
        door.connect()
        self.until(lambda: door.session_id() != 0)
        if len(self.doors) == 1:
            self.wait(door.create("/made", parents=True))  # and so the chroot
        return door

    def wait(self, future: Future[Any]) -> Any:
        self.until(lambda: future.done)
        return future.result()

    def until(self, condition: Callable[[], bool]) -> None:
        self.loop.until(condition)

    def expire(self, zookeeper: KazooZooKeeper) -> None:
        """Somebody else connects with the session's id and password, and ends it."""
        thief = KazooClient(self.server.hosts, client_id=zookeeper._kazoo.client_id, timeout=2.0)
        thief.start(10)
        thief.stop()
        thief.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), free_port()) as running:
        yield running


@pytest.fixture
def ensemble(server: ZooKeeperServer, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Real]:
    real = Real(server, f"/tests/{tmp_path.name}")
    yield real
    for door in real.doors:
        door.close()


class TestRealZooKeeper(ZooKeeperContract):
    pass


def test_a_restarted_server_resumes_the_session(ensemble: Real) -> None:
    door = ensemble.connect()
    told: list[str] = []
    door.on_session(told.append)
    ensemble.wait(door.create("/e", ephemeral=True))
    ensemble.server.restart()
    ensemble.until(lambda: told[-1:] in (["resumed"], ["connected"]))
    assert told[0] == "suspended"
    assert (ensemble.wait(door.exists("/e")) is not None) == (told[-1] == "resumed")


def test_the_chroot_keeps_two_clusters_apart(server: ZooKeeperServer, tmp_path: Path) -> None:
    one, other = Real(server, f"/one-{tmp_path.name}"), Real(server, f"/other-{tmp_path.name}")
    try:
        first, second = one.connect(), other.connect()
        assert one.wait(first.create("/a", b"x")) == "/a"
        assert other.wait(second.exists("/a")) is None
        assert one.wait(first.children("/")) == ["a", "made"]
    finally:
        for door in one.doors + other.doors:
            door.close()
