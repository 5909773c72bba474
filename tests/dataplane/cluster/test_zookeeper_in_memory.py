"""The in-memory ZooKeeper keeps the contract of the door, and its faults are the real one's."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from dataplane.doors import ZooKeeperError
from dataplane.tasks import Future
from tests.dataplane.cluster.zookeeper_contract import ZooKeeperContract
from tests.simulation.virtual_time import VirtualTime
from tests.simulation.zookeeper import ZooKeeperClient, ZooKeeperServer


class InMemory:
    def __init__(self) -> None:
        self.time = VirtualTime()
        delays = Random(7)
        self.server = ZooKeeperServer(self.time.call_later, lambda: delays.uniform(0.001, 0.02))

    def connect(self) -> ZooKeeperClient:
        client = self.server.connect(session_timeout_s=2.0, party=None)
        self.time.until(lambda: client.session_id() != 0)
        return client

    def wait(self, future: Future[Any]) -> Any:
        return self.time.wait(future)

    def until(self, condition: Callable[[], bool]) -> None:
        self.time.until(condition)

    def expire(self, zookeeper: ZooKeeperClient) -> None:
        zookeeper.expire()


@pytest.fixture
def ensemble() -> InMemory:
    return InMemory()


class TestInMemoryZooKeeper(ZooKeeperContract):
    pass


def test_a_session_survives_a_short_interruption(ensemble: InMemory) -> None:
    client, other = ensemble.connect(), ensemble.connect()
    told: list[str] = []
    client.on_session(told.append)
    ensemble.wait(client.create("/e", ephemeral=True))
    client.suspend()
    ensemble.time.run(1.9)
    client.resume()
    ensemble.until(lambda: told == ["suspended", "resumed"])
    ensemble.time.run(5.0)
    assert ensemble.wait(other.exists("/e")) is not None


def test_two_short_interruptions_are_not_added_up(ensemble: InMemory) -> None:
    client, other = ensemble.connect(), ensemble.connect()
    ensemble.wait(client.create("/e", ephemeral=True))
    for _ in range(2):
        client.suspend()
        ensemble.time.run(1.5)
        client.resume()
        ensemble.time.run(0.1)
    assert ensemble.wait(other.exists("/e")) is not None


def test_a_call_under_way_fails_when_the_connection_breaks_though_it_may_have_been_applied(ensemble: InMemory) -> None:
    client, other = ensemble.connect(), ensemble.connect()
    under_way = client.create("/a")
    ensemble.until(lambda: "/a" in ensemble.server.tree.dump())
    client.suspend()
    with pytest.raises(ZooKeeperError):
        ensemble.wait(under_way)
    assert ensemble.wait(other.exists("/a")) is not None


def test_a_silent_cut_is_noticed_by_the_client_before_the_session_ends(ensemble: InMemory) -> None:
    client, other = ensemble.connect(), ensemble.connect()
    told: list[tuple[str, bool]] = []
    client.on_session(lambda state: told.append((state, "/e" in ensemble.server.tree.dump())))
    ensemble.wait(client.create("/e", ephemeral=True))
    client.cut()
    ensemble.time.run(10.0)
    assert told == [("suspended", True)]
    assert ensemble.wait(other.exists("/e")) is None
    waiting = client.get("/")
    client.resume()
    ensemble.until(lambda: [state for state, _ in told] == ["suspended", "expired", "connected"])
    with pytest.raises(ZooKeeperError):
        ensemble.wait(waiting)


def test_a_killed_client_is_never_called_back_and_its_session_ends(ensemble: InMemory) -> None:
    client, other = ensemble.connect(), ensemble.connect()
    told: list[str] = []
    client.on_session(told.append)
    ensemble.wait(client.create("/e", ephemeral=True))
    ensemble.wait(client.exists("/e", lambda: told.append("watch")))
    client.kill()
    ensemble.time.run(1.9)
    assert ensemble.wait(other.exists("/e")) is not None
    ensemble.time.run(0.2)
    assert ensemble.wait(other.exists("/e")) is None
    assert told == []
