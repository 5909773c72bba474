"""Who connects in crowds does not hold the loop: a listener accepts for about a millisecond, and goes on in the next turn."""

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
        assert len(came) == at_once or not takes_s  # a busy machine may end even the first turn early
        for _ in range(5):
            listener.ready(0)
        assert len(came) == 5
    listener.close()
    loop.close()
