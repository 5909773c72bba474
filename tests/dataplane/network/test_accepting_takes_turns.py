"""Who connects in crowds holds up nobody: a listener accepts in its account's time, a little in each turn."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop


class ManualClock(SystemClock):
    """Only what a test says takes time: on a busy machine one accept may take as long as twenty turns give back."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def to_close():
    """Closes what it is given, after a test that failed as well."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def listen(to_close):
    def listening(clock, accept, **options):
        loop = EpollLoop(clock)
        to_close.callback(loop.close)
        listener = loop.listen("127.0.0.1", 0, accept, **options)
        to_close.callback(listener.close)
        return loop, listener

    return listening


@pytest.mark.parametrize(("takes_s", "at_once"), [(0.0, 5), (0.002, 1)])
def test_those_that_take_long_to_let_in_are_accepted_one_after_the_other(listen, to_close, takes_s, at_once):
    clock, came = ManualClock(), []

    def accept(connection):
        clock.now += takes_s
        came.append(connection.peer)  # None is returned: not let in

    loop, listener = listen(clock, accept)
    for _ in range(5):
        to_close.enter_context(socket.create_connection(listener.address))
    listener.ready(0)
    listener.ready(0)  # reported again while it stands in line
    loop.accounts.serve(loop.end_turn)
    assert len(came) == at_once
    for _ in range(20):
        listener.ready(0)
        loop.accounts.serve(loop.end_turn)
    assert len(came) == 5


def test_those_who_come_are_paid_for_by_whose_port_they_come_to_let_in_or_not(listen):
    clock = ManualClock()

    def refuse(_connection):
        clock.now += 0.002

    loop, listener = listen(clock, refuse, account="abcdefgh")
    with socket.create_connection(listener.address):
        listener.ready(0)
        loop.accounts.serve(loop.end_turn)
    loop.accounts.end_turn(clock.now)
    assert loop.accounts.of("abcdefgh").spent_s == pytest.approx(0.002)
    assert loop.accounts.internal.spent_s == 0


def test_who_stands_in_line_when_the_listener_is_closed_is_not_accepted(listen):
    came = []
    loop, listener = listen(ManualClock(), came.append)
    with socket.create_connection(listener.address):
        listener.ready(0)
        listener.close()
        loop.accounts.serve(loop.end_turn)
    assert came == []
