"""Garbage that refers to itself is looked for seldom; a connection that ends leaves none."""

import gc
import socket
import sys
import weakref
from types import SimpleNamespace

import pytest

from dataplane.garbage import LEAST_MORE_BLOCKS, LOOK_EVERY_S, Garbage, is_worth_it
from tests.dataplane.network.test_connection import echo, framed, read_exactly, server, wait_until

__all__ = ["server"]


@pytest.mark.parametrize(
    ("more", "left", "worth"),
    [
        (LEAST_MORE_BLOCKS, 100, False),
        (LEAST_MORE_BLOCKS + 1, 100, True),
        (LEAST_MORE_BLOCKS + 1, 2 * LEAST_MORE_BLOCKS, False),
        (2 * LEAST_MORE_BLOCKS + 1, 2 * LEAST_MORE_BLOCKS, True),
    ],
)
def test_all_objects_are_looked_at_when_twice_as_many_have_come_together(more, left, worth):
    assert is_worth_it(left + more, left) is (worth and left + more > 2 * left)


@pytest.fixture
def loop():
    loop = SimpleNamespace(timers=[], clock=SimpleNamespace(monotonic=lambda: 0.0))
    loop.call_later = lambda delay_s, callback: loop.timers.append((delay_s, callback))
    yield loop
    gc.enable()
    gc.unfreeze()


def test_it_looks_each_minute_and_says_what_it_took(loop, monkeypatch):
    said = []
    Garbage(loop, said.append).start()
    blocks = sys.getallocatedblocks()
    assert not gc.isenabled(), "not by itself"
    delay_s, look = loop.timers.pop()
    assert delay_s == LOOK_EVERY_S
    look()
    assert said == []
    monkeypatch.setattr("dataplane.garbage.sys.getallocatedblocks", lambda: 3 * blocks + 2 * LEAST_MORE_BLOCKS)
    delay_s, look = loop.timers.pop()
    look()
    assert len(said) == 1
    assert said[0].startswith("looked for garbage among all objects")
    assert len(loop.timers) == 1


def test_a_connection_that_ends_refers_to_itself_no_more(server):
    target = server(echo)
    with target.connect() as client:
        client.sendall(framed(b"hello"))
        assert read_exactly(client, 9) == framed(b"hello")
        connection = target.protocols[0].connection
        assert connection._protocol is target.protocols[0]
        client.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: connection._protocol is None)
    assert connection._begins is None


@pytest.mark.parametrize("has_to_log_in", [False, True])
def test_a_clients_connection_is_gone_with_its_last_reference(has_to_log_in):
    from dataplane.requests.dispatch import ClientConnection

    class Client(ClientConnection):
        __slots__ = ("__weakref__",)

    gc.disable()
    try:
        clock = SimpleNamespace(monotonic=lambda: 0.0)
        loop = SimpleNamespace(call_later=lambda *_: SimpleNamespace(cancel=lambda: None), clock=clock)
        broker = SimpleNamespace(
            doors=SimpleNamespace(loop=loop, clock=clock),
            replicas=SimpleNamespace(registry=None, appending=None, waiting=None),
        )
        session = SimpleNamespace(instance=None, peer="127.0.0.1", authenticated=not has_to_log_in)
        client = Client(broker, SimpleNamespace(close=lambda: None), session)
        if has_to_log_in:
            client.wait_for_login()
        known = weakref.ref(client)
        client.closed("the end")
        del client
        assert known() is None
    finally:
        gc.enable()
