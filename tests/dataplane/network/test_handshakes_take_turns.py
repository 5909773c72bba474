"""An address that opens TLS handshakes without end keeps out itself, and no other address of its instance."""

from __future__ import annotations

import socket
import ssl
from types import SimpleNamespace

import pytest

from dataplane.network import handshakes
from dataplane.network.handshakes import Handshakes
from dataplane.tasks import Future
from tests.dataplane.network.tls_server import ByHand, Server, echo, framed, is_ended, read_exactly, wait_until


class Loop:
    """A clock that stands still until it is moved, and its timers."""

    def __init__(self):
        self.now, self.timers = 0.0, []
        self.clock = SimpleNamespace(monotonic=lambda: self.now)

    def call_later(self, delay_s, callback):
        self.timers.append((self.now + delay_s, callback))

    def pass_time(self, seconds):
        end = self.now + seconds
        while self.timers and min(self.timers, key=lambda timer: timer[0])[0] <= end:
            due = min(self.timers, key=lambda timer: timer[0])
            self.timers.remove(due)
            self.now = max(self.now, due[0])
            due[1]()
        self.now = end


class Connection:
    """It remembers in `begun` that it may begin."""

    def __init__(self, line, address, begun):
        self.line, self.peer, self.begun = line, (address, 1), begun
        self.is_here = line.came(self)
        if self.is_here and line.may_begin(self):
            begun.append(address)

    def begin_handshake(self):
        self.begun.append(self.peer[0])
        return True

    def make_room(self):
        self.go()

    def go(self):
        self.is_here = False
        self.line.went(self)


def test_an_address_that_has_one_waits_for_one_of_another_at_most():
    loop, begun = Loop(), []
    line = Handshakes(loop, 10)
    for _ in range(50):
        Connection(line, "flood", begun)
    Connection(line, "rightful", begun)
    loop.pass_time(0.25)
    assert begun[-3:].count("rightful") == 1
    assert len(begun) < 5
    loop.pass_time(10)
    assert len(begun) == 51


def test_where_there_is_no_place_the_address_that_has_most_makes_room():
    loop = Loop()
    line = Handshakes(loop, 1)
    flood = [Connection(line, "flood", []) for _ in range(handshakes.WAIT_AT_MOST_S + 5)]
    assert [one.is_here for one in flood] == [True] * 10 + [False] * 5
    assert Connection(line, "rightful", []).is_here
    assert [one.is_here for one in flood[:3]] == [False, True, True]
    assert line.present == 10
    assert not Connection(line, "flood", []).is_here


def test_a_flood_that_never_stops_does_not_keep_another_address_waiting():
    """It opens ten for each that may begin, and the other opens one now and then."""
    loop, rightful, begun = Loop(), [], []
    line = Handshakes(loop, 5)
    for turn in range(100):
        for _ in range(5):
            Connection(line, "flood", begun)
        if turn % 10 == 5:
            before = begun.count("rightful")
            one = Connection(line, "rightful", begun)
            loop.pass_time(0.41)
            assert begun.count("rightful") == before + 1
            one.go()
            rightful.append(one)
        loop.pass_time(0.1)
    assert len(rightful) == 10


def test_who_has_gone_waits_for_nothing():
    loop, begun = Loop(), []
    line = Handshakes(loop, 1)
    gone = [Connection(line, "a", begun) for _ in range(5)]
    for one in gone:
        one.go()
    Connection(line, "b", begun)
    loop.pass_time(1.1)
    assert begun == ["a", "b"]
    assert line.present == 1
    assert not line._waiting


def test_steps_beside_the_loop_are_taken_by_addresses_in_turn_and_not_for_who_has_gone():
    loop, running, told = Loop(), [], []
    line = Handshakes(loop, 100)

    def run(step):
        future = Future()
        running.append((step(), future))
        return future

    def submit(address, number):
        one = Connection(line, address, [])
        line.beside(one, run, lambda: f"{address}/{number}", lambda future: told.append(future.result()))
        return one

    flood = [submit("flood", number) for number in range(10)]
    submit("rightful", 1)
    flood[1].go()
    for _ in range(3):
        name, future = running.pop()
        future.resolve(name)
    assert told == ["flood/0", "flood/2", "rightful/1"]
    for one in flood:
        one.go()
    assert line._steps == {}
    assert not line._beside


@pytest.fixture
def server():
    one = Server(echo, per_s=1)
    yield one
    one.stop()


def test_a_client_gets_in_while_another_address_has_all_places(server):
    """Real sockets: ten of one address hold all places with handshakes that they never end."""
    flood = []
    for _ in range(handshakes.WAIT_AT_MOST_S):
        client = ByHand(socket.create_connection(server.listener.address, timeout=10, source_address=("127.0.0.2", 0)))
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
        flood.append(client.sock)
    line = server.loop.accounts.of("tenant01").handshakes
    wait_until(lambda: line.present == handshakes.WAIT_AT_MOST_S)
    with server.connect_securely() as client:  # from 127.0.0.1
        client.sendall(framed(b"x"))
        assert read_exactly(client, 5) == framed(b"x")
    assert is_ended(flood[0])
    assert server.said[0].startswith("instance ins-tenant01: others of this address")
    for sock in flood:
        sock.close()
