"""The proxies carry, hold what is cut in the direction that is cut, and know who talks."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest

from tests.chaos.network import HOST, Links

HELLO = b"\0\0\0\x12" + b"\0\x12\0\3" + b"\0\0\0\1" + b"\0\x08broker-1"


@pytest.fixture
def links():
    made = Links()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def pair(links):
    """Broker 1's end of a connection to broker 2, and broker 2's."""
    with socket.create_server((HOST, 0)) as server:
        links.target("2", server.getsockname())
        with socket.create_connection((HOST, links.listen("2")), timeout=5) as near:
            near.sendall(HELLO)
            far, _ = server.accept()
            with far:
                far.settimeout(5)
                assert far.recv(100) == HELLO
                yield near, far


def hears_nothing(connection: socket.socket) -> bool:
    connection.settimeout(0.2)
    try:
        return not connection.recv(100)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)


def test_one_direction_is_cut_and_healing_brings_what_was_held(links, pair):
    near, far = pair
    links.cut("1", "2")
    near.sendall(b"held")
    far.sendall(b"answer")
    assert near.recv(100) == b"answer"
    assert hears_nothing(far)
    links.heal()
    assert far.recv(100) == b"held"


def test_a_cut_between_others_does_not_touch_them(links, pair):
    near, far = pair
    links.cut("1", "3")
    near.sendall(b"through")
    assert far.recv(100) == b"through"


def test_healing_may_end_the_connections_that_were_cut(links, pair):
    near, far = pair
    links.cut("2", "1")
    links.heal(reset=True)
    for end in (near, far):
        with contextlib.suppress(ConnectionResetError):
            assert end.recv(100) == b""


def test_what_is_said_over_a_slow_link_comes_later_and_whole(links, pair):
    near, far = pair
    links.slow("1", "2", 0.3)
    began = time.monotonic()
    for word in (b"one", b"two", b"three"):
        near.sendall(word)
        time.sleep(0.01)
    heard = b""
    while len(heard) < 11:
        heard += far.recv(100)
    assert heard == b"onetwothree"
    assert time.monotonic() - began >= 0.3


def test_one_direction_is_mended_and_another_stays_cut(links, pair):
    near, far = pair
    links.cut("1", "2")
    links.cut("2", "1")
    near.sendall(b"there")
    far.sendall(b"back")
    links.mend("1", "2")
    assert far.recv(100) == b"there"
    assert hears_nothing(near)
