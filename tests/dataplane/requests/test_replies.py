"""A handler's reply is told by its type: whichever it is, the same frame goes out; and one that comes later can be given up."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

import dataplane
from dataplane.handlers.context import RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Encoded
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.headers import encode_frame
from dataplane.protocol.messages.groups import HeartbeatResponse
from dataplane.requests.dispatch import ClientConnection
from dataplane.slices import Slices
from dataplane.tasks import Future, Later, resolved
from dataplane.tenancy.session import Session
from quota.contracts.namespace import ClusterNames
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork

ROW = HANDLERS[ApiKey.HEARTBEAT]
VERSION = 4
MESSAGE = HeartbeatResponse(error_code=27)
FRAME = encode_frame(ROW.api, VERSION, 7, MESSAGE, ClusterNames())


class Socket:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = b""
        self.reads = True
        self.is_closed = False

    def send(self, parts):
        self.sent += b"".join(parts)

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def close(self):
        self.is_closed = True


class World:
    """A connection that is given replies."""

    def __init__(self):
        self.network = VirtualNetwork(1)
        loop = self.network.loop("b1")
        slices = Slices(loop, ImmediateBackground())
        doors = SimpleNamespace(loop=loop, clock=loop.clock)
        self.broker = SimpleNamespace(
            doors=doors, slices=slices, replicas=SimpleNamespace(registry=None, appending=None, waiting=None)
        )
        self.socket = Socket()
        self.session = Session(None, "internal", ClusterNames(), "127.0.0.1")
        self.client = ClientConnection(self.broker, self.socket, self.session)

    def take(self, reply, *, is_long=False):
        ctx = RequestContext(self.broker, self.session, ROW.api.key, VERSION, 7, None, 100, is_long)
        self.client._take(ROW, ctx, reply, None)

    def run(self):
        self.network.run_for(0.01)


class Stoppable(Later):
    """Notes that nobody wants it any more."""

    __slots__ = ("given_up",)

    def __init__(self):
        super().__init__()
        self.given_up = 0

    def give_up(self):
        self.given_up += 1


class Held(Stoppable):
    """Nothing more is read until it is done."""

    @property
    def held_until(self):
        return self


def steps(result, pauses):
    for _ in range(pauses):
        yield None
    return result


async def later(future):
    return await future


REPLIES = {
    "a message": lambda: MESSAGE,
    "encoded": lambda: Encoded(FRAME),
    "a future that is done": lambda: resolved(MESSAGE),
    "a future of what is encoded": lambda: resolved(Encoded(FRAME)),
    "a coroutine": lambda: later(resolved(MESSAGE)),
    "steps that are over at once": lambda: steps(MESSAGE, 0),
    "steps": lambda: steps(MESSAGE, 100),
    "steps of a future": lambda: steps(resolved(MESSAGE), 3),
    "steps of what is encoded": lambda: steps(Encoded(FRAME), 3),
}


@pytest.mark.parametrize("kind", REPLIES)
def test_every_kind_of_reply_is_answered_with_the_same_frame(kind):
    world = World()
    world.take(REPLIES[kind]())
    world.run()
    assert world.socket.sent == b"".join(FRAME)
    assert world.socket.reads


@pytest.mark.parametrize("make", [Future, Stoppable, Held])
def test_a_reply_that_comes_later_has_its_place_and_is_answered_when_it_is_there(make):
    world = World()
    reply = make()
    world.take(reply)
    world.take(Encoded([b"behind"]))
    assert world.socket.sent == b""
    assert world.socket.reads == (make is not Held)
    reply.resolve(MESSAGE)
    assert world.socket.sent == b"".join(FRAME) + b"behind"
    assert world.socket.reads


def test_only_a_later_is_told_that_its_client_has_gone_and_only_while_it_is_waited_for():
    world = World()
    waits, answered, plain = Stoppable(), Stoppable(), Future()
    for reply in (waits, answered, plain):
        world.take(reply)
    answered.resolve(MESSAGE)
    world.client.closed("gone")
    assert (waits.given_up, answered.given_up, plain.done) == (1, 0, False)
    waits.resolve(MESSAGE)
    assert world.socket.sent == b""


@pytest.mark.parametrize("make", [Future, Stoppable])
def test_a_reply_that_fails_ends_the_connection(make):
    world = World()
    reply = make()
    world.take(reply)
    reply.fail(CloseConnectionError("no"))
    assert world.socket.is_closed


def test_a_connection_whose_long_request_waits_for_others_is_read_no_further():
    world = World()
    waits = Future()
    world.take(later(waits), is_long=True)
    assert not world.socket.reads
    waits.resolve(MESSAGE)
    world.run()
    assert world.socket.reads
    assert world.socket.sent == b"".join(FRAME)


def test_nobody_probes_a_reply_for_what_it_might_have():
    root = Path(dataplane.__file__).parent
    paths = [root / "slices.py", *sorted((root / "requests").rglob("*.py"))]
    probing = [
        path.name
        for path in paths
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and node.id in {"getattr", "hasattr"}
    ]
    assert probing == []
