"""Who connects in crowds holds up nobody: a listener accepts in its account's time, a little in each turn."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import pytest

from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop


@pytest.mark.parametrize(("takes_s", "at_once"), [(0.0, 5), (0.002, 1)])
def test_those_that_take_long_to_let_in_are_accepted_one_after_the_other(takes_s, at_once):
    came = []

    def accept(connection):
        time.sleep(takes_s)
        came.append(connection.peer)  # None is returned: not let in

    loop = EpollLoop(SystemClock())
    listener = loop.listen("127.0.0.1", 0, accept)
    with ExitStack() as clients:
        for _ in range(5):
            clients.enter_context(socket.create_connection(listener.address))
        listener.ready(0)
        listener.ready(0)  # reported again while it stands in line
        loop.accounts.serve(loop.end_turn)
        assert len(came) == at_once or not takes_s  # a busy machine may end even the first turn early
        for _ in range(20):
            listener.ready(0)
            loop.accounts.serve(loop.end_turn)
        assert len(came) == 5
    listener.close()
    loop.close()


def test_those_who_come_are_paid_for_by_whose_port_they_come_to_let_in_or_not():
    loop = EpollLoop(SystemClock())
    listener = loop.listen("127.0.0.1", 0, lambda _connection: time.sleep(0.002), account="abcdefgh")
    with socket.create_connection(listener.address):
        listener.ready(0)
        loop.accounts.serve(loop.end_turn)
    loop.accounts.end_turn(time.monotonic())
    assert loop.accounts.of("abcdefgh").spent_s > 0.001
    assert loop.accounts.internal.spent_s < 0.001
    listener.close()
    loop.close()


def test_who_stands_in_line_when_the_listener_is_closed_is_not_accepted():
    loop, came = EpollLoop(SystemClock()), []
    listener = loop.listen("127.0.0.1", 0, came.append)
    with socket.create_connection(listener.address):
        listener.ready(0)
        listener.close()
        loop.accounts.serve(loop.end_turn)
    assert came == []
    loop.close()


def test_while_nobody_is_to_be_accepted_who_comes_waits_in_the_systems_line():
    loop, came, waits = EpollLoop(SystemClock()), [], [0.05, 0.05]

    def wait_s():
        return waits.pop(0) if waits else 0.0

    def accept(connection):
        came.append(connection.peer)
        loop.stop()  # not let in

    began = time.monotonic()
    listener = loop.listen("127.0.0.1", 0, accept, wait_s=wait_s)
    with socket.create_connection(listener.address) as client:
        loop.call_later(20.0, loop.stop)
        loop.run()
        assert came == [client.getsockname()]
    assert time.monotonic() - began >= 0.1
    listener.close()
    loop.close()
