"""What is away costs a page its time once: ZooKeeper that was lost, ZooKeeper that hangs, Redis that hangs."""

from __future__ import annotations

import logging
import socket
import time

import pytest
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from redis.exceptions import RedisError, ResponseError

from controlplane.accounts import attempts
from controlplane.ckafka_api import limits
from controlplane.clusters import zookeeper
from controlplane.clusters.zookeeper import KazooTree
from controlplane.core import caching, kept
from controlplane.core.caching import CarefulRedisCache, RedisAway
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.operations import wake  # before a fixture puts another in its place
from tests.support.waiting import promised


class Stat:
    version = 3


class FakeClient:
    """kazoo's, whose answers come when the test gives them."""

    def __init__(self, *_arguments, **_named) -> None:
        self.handler = SequentialThreadingHandler()
        self.owed: list = []
        self.tell = None

    def add_listener(self, listener) -> None:
        self.tell = listener

    def start_async(self) -> None:
        """Nothing to start."""

    def get_async(self, _path):
        self.owed.append(self.handler.async_result())
        return self.owed[-1]


@pytest.fixture
def clients(monkeypatch):
    made = []

    def client(*arguments, **named):
        made.append(FakeClient(*arguments, **named))
        return made[-1]

    monkeypatch.setattr(zookeeper, "Client", client)
    return made


def asked(tree: KazooTree) -> float:
    """Seconds until it is said that ZooKeeper does not answer."""
    began = time.monotonic()
    with pytest.raises(ClusterUnavailable):
        tree.get("/sluice/instances")
    return time.monotonic() - began


def test_a_connection_that_was_lost_is_waited_for_from_its_loss_and_not_by_each_call(clients, monkeypatch):
    monkeypatch.setattr(zookeeper, "RECONNECT_TIMEOUT_S", 0.5)
    tree = KazooTree("127.0.0.1:1")
    (client,) = clients
    client.tell(KazooState.CONNECTED)
    began = time.monotonic()
    client.tell(KazooState.SUSPENDED)
    asked(tree)
    assert time.monotonic() - began >= 0.5
    client.tell(KazooState.LOST)  # of the session, later: that is no other loss
    assert sum(asked(tree) for _ in range(10)) < promised(0.4)
    assert client.owed == []


def test_a_connection_that_comes_back_is_used_at_once(clients):
    tree = KazooTree("127.0.0.1:1")
    (client,) = clients
    client.tell(KazooState.CONNECTED)
    client.tell(KazooState.SUSPENDED)
    client.tell(KazooState.CONNECTED)
    monkey = client.get_async

    def answered(path):
        result = monkey(path)
        result.set((b"data", Stat))
        return result

    client.get_async = answered
    assert tree.get("/sluice/instances") == (b"data", 3)


def test_an_answer_that_is_owed_is_waited_for_once(clients, monkeypatch):
    monkeypatch.setattr(zookeeper, "READ_TIMEOUT_S", 0.6)
    monkeypatch.setattr(zookeeper, "SILENT_TIMEOUT_S", 0.02)
    tree = KazooTree("127.0.0.1:1")
    (client,) = clients
    client.tell(KazooState.CONNECTED)
    assert asked(tree) >= 0.5
    assert sum(asked(tree) for _ in range(10)) < promised(0.5)
    for result in client.owed:  # late, and it answers again: it is trusted as before
        result.set((b"data", Stat))
    assert asked(tree) >= 0.5


def test_a_write_has_its_time_whatever_is_owed(clients, monkeypatch):
    """It may be carried out although nobody waits for it: who asked would be told that it was not."""
    monkeypatch.setattr(zookeeper, "READ_TIMEOUT_S", 0.01)
    monkeypatch.setattr(zookeeper, "SILENT_TIMEOUT_S", 0.01)
    tree = KazooTree("127.0.0.1:1")
    (client,) = clients
    client.tell(KazooState.CONNECTED)
    asked(tree)
    patience = []

    class Late:
        def get(self, timeout):
            patience.append(timeout)

    client.ensure_path_async = lambda _path: Late()
    tree.ensure("/sluice")
    client.get_async = lambda _path: Late()
    with pytest.raises(TypeError):
        tree.get("/sluice")
    assert patience == [zookeeper.TIMEOUT_S, 0.01]


# --- Redis ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hanging():
    """A cache whose Redis takes connections, and answers none of them."""
    caching.AWAY.forget()
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"redis://127.0.0.1:{server.getsockname()[1]}"
        yield CarefulRedisCache(url, {"OPTIONS": {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}})
    caching.AWAY.forget()


def test_a_redis_that_hangs_is_not_asked_again_for_some_seconds(hanging, monkeypatch):
    began = time.monotonic()
    with pytest.raises(RedisError) as first:
        hanging.get("a")
    took_s = time.monotonic() - began
    assert took_s >= 0.4
    assert not isinstance(first.value, RedisAway)
    began = time.monotonic()
    for question in (lambda: hanging.get("a"), lambda: hanging.set("a", 1), lambda: hanging.get_many(["a"])):
        with pytest.raises(RedisAway):
            question()
    assert time.monotonic() - began < promised(0.4)
    later = time.monotonic() + caching.PAUSE_S
    monkeypatch.setattr(caching, "monotonic", lambda: later)
    with pytest.raises(RedisError) as again:
        hanging.get("a")
    assert not isinstance(again.value, RedisAway)


def test_who_insists_asks_all_the_same_and_whoever_else_counts_does_not(hanging):
    questions = (lambda: hanging.get("a"), lambda: hanging.incr("a"), lambda: hanging.add("a", 0))
    with caching.insisting():
        for question in questions:
            with pytest.raises(RedisError) as refused:
                question()
            assert not isinstance(refused.value, RedisAway)
    for question in questions:
        with pytest.raises(RedisAway):
            question()


def test_an_attempt_to_sign_in_is_counted_although_redis_did_not_answer_a_moment_ago(hanging, monkeypatch):
    """Nobody may guess passwords uncounted for two seconds because one answer was lost; the limits of SDKs may be missed."""
    monkeypatch.setattr(kept, "cache", hanging)
    monkeypatch.setattr(limits, "cache", hanging)
    asked_for = []
    monkeypatch.setattr(hanging._cache, "_client", Answering(asked_for))
    caching.AWAY.forget()
    monkeypatch.setattr(caching.AWAY, "_until_s", time.monotonic() + 3600)
    limits.request_count(secret_id="a", action="DescribeRegion", clock=SYSTEM_CLOCK)
    assert asked_for == []
    attempts.asked(what="sign-up", address="192.0.2.7")
    assert asked_for == ["incr"]


class Answering:
    """A client of a Redis that is back."""

    def __init__(self, asked_for):
        self._asked_for = asked_for

    def add(self, _key, _value, _timeout):
        self._asked_for.append("add")
        return True

    def incr(self, _key, _delta):
        self._asked_for.append("incr")
        return 1


def test_an_answer_that_refuses_is_an_answer(hanging, monkeypatch):
    def refuse(_key, _default):
        raise ResponseError("WRONGTYPE")

    monkeypatch.setattr(hanging._cache._client, "get", refuse)
    for _ in range(2):
        with pytest.raises(ResponseError):
            hanging.get("a")


def test_what_it_raises_is_what_those_who_ask_expect_of_a_cache_that_is_away():
    assert issubclass(RedisAway, kept.AWAY)


def test_no_message_is_sent_by_a_redis_that_is_known_to_be_away(monkeypatch, caplog):
    """The row is written, and beat offers it when Redis is back: the request need not wait five seconds for a message."""

    def away(_key):
        raise RedisAway("away")

    monkeypatch.setattr(kept, "cache", type("Away", (), {"get": staticmethod(away)}))
    sent = []
    monkeypatch.setattr("controlplane.core.tasks.operation_run.apply_async", lambda **_named: sent.append(1))
    with caplog.at_level(logging.WARNING):
        wake(["op-1"])
    assert sent == []
    assert "Redis does not answer" in caplog.text
    monkeypatch.setattr(kept, "cache", type("There", (), {"get": staticmethod(lambda _key: None)}))
    wake(["op-1"])
    assert sent == [1]
