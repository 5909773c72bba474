"""Connections whose account has to wait: epoll tells of each once, however many turns go by, and of what is new."""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest

from dataplane.network.accounts import CALLS_AT_ONCE, TURN_S
from tests.dataplane.network.test_connection import Server, echo, framed, read_exactly, wait_until

CLIENTS = 20
MOST_TOLD = 3
"""When it is ready, once more while it waits, and when epoll is told to tell of news only."""


@pytest.fixture
def server():
    server = Server(echo)
    yield server
    server.stop()


@pytest.fixture
def clients(server):
    with ExitStack() as made:
        clients = [made.enter_context(server.connect()) for _ in range(CLIENTS)]
        wait_until(lambda: len(server.protocols) == CLIENTS)
        yield clients


@pytest.fixture
def told(server, clients):
    told = server.on_loop(lambda: Told(server))
    yield told
    server.on_loop(told.leave)


class Told:
    """How often epoll told of each connection, and in how many turns."""

    def __init__(self, server):
        self.turns, self.times, self._loop = 0, {}, server.loop
        ended = server.loop.turns.ended

        def counted(*figures):
            self.turns += 1
            ended(*figures)

        server.loop.turns = type("Counted", (), {"ended": staticmethod(counted)})()
        for protocol in server.protocols:
            self._count(server.loop, protocol.connection)

    def _count(self, loop, connection):
        self.times[connection] = 0

        def ready(events):
            self.times[connection] += 1
            connection.ready(events)

        loop._handlers[connection._fd] = ready

    def turn_on(self, turns=100):
        """Let so many turns go by."""
        until = self.turns + turns
        wait_until(lambda: self.turns > until)

    def leave(self):
        """The loop knows its connections again, and closes those that are left when it ends."""
        for connection in self.times:
            if connection._fd >= 0:
                self._loop._handlers[connection._fd] = connection.ready


@contextmanager
def overdrawn(server):
    """The account does without for as long: it uses more in each turn than a turn gives it."""
    accounts, goes_on = server.loop.accounts, [True]

    def use():
        if goes_on:
            accounts.charge(accounts.internal, 2 * TURN_S)
            server.loop.call_soon(use)

    server.on_loop(use)
    yield
    server.on_loop(goes_on.clear)


def test_what_waits_is_told_once_and_served_when_its_time_comes(server, clients, told):
    with overdrawn(server):
        for client in clients:
            client.sendall(framed(b"first"))
        wait_until(lambda: all(told.times.values()))
        told.turn_on()
    for client in clients:
        assert read_exactly(client, 9) == framed(b"first")
    assert max(told.times.values()) <= MOST_TOLD
    for client in clients:  # and afterwards they are told of as before
        client.sendall(framed(b"again"))
        assert read_exactly(client, 9) == framed(b"again")


def test_what_comes_while_it_waits_is_served_too(server, clients):
    with overdrawn(server):
        for number in range(5):
            for client in clients:
                client.sendall(framed(b"%d" % number))
            time.sleep(0.02)
    for client in clients:
        assert read_exactly(client, 25) == b"".join(framed(b"%d" % number) for number in range(5))


def test_more_than_one_serving_takes_is_read_to_its_end(server, clients):
    """Two hundred frames: what is left in the socket is told of again."""
    frames = framed(b"x" * 1000) * 200
    with overdrawn(server):
        for client in clients[:3]:
            client.sendall(frames)
    for client in clients[:3]:
        assert read_exactly(client, len(frames)) == frames


def test_who_goes_while_it_waits_is_gone(server, clients, told):
    with overdrawn(server):
        for client in clients:
            client.sendall(framed(b"last"))
        wait_until(lambda: all(told.times.values()))
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        told.turn_on()
        times = dict(told.times)  # of a reset the system may tell twice, as it sets about it and when it is done
        told.turn_on()
        assert told.times == times
    wait_until(lambda: all(protocol.closed_for for protocol in server.protocols))


def test_it_is_closed_here_while_it_waits(server, clients):
    with overdrawn(server):
        for client in clients:
            client.sendall(framed(b"never answered"))
        time.sleep(0.05)
        server.on_loop(lambda: [protocol.connection.close() for protocol in server.protocols])
    wait_until(lambda: all(protocol.closed_for == ["closed here"] for protocol in server.protocols))
    with server.connect() as late:
        late.sendall(framed(b"served"))
        assert read_exactly(late, 10) == framed(b"served")


def test_who_go_together_are_let_go_a_few_a_turn(server):
    """What a protocol lets go at its end may take long: a fetch of thousands of partitions that waits."""
    with ExitStack() as made:
        clients = [made.enter_context(server.connect()) for _ in range(5 * CALLS_AT_ONCE)]
        wait_until(lambda: len(server.protocols) == len(clients))
        turns, ended = [0], server.loop.turns.ended
        closed_in = Counter()

        def counted(*figures):
            turns[0] += 1
            ended(*figures)

        def slowly(_reason):
            closed_in.update([turns[0]])
            time.sleep(0.000_5)

        def close_all():
            server.loop.turns = type("Counted", (), {"ended": staticmethod(counted)})()
            for protocol in server.protocols:
                protocol.closed = slowly
                protocol.connection.close()

        server.on_loop(close_all)
        wait_until(lambda: closed_in.total() == len(clients))
    assert max(closed_in.values()) <= 2 * CALLS_AT_ONCE
