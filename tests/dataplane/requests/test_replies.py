"""A handler's reply is told by its type: whichever it is, the same frame goes out; and one that comes later can be given up."""

from __future__ import annotations

import ast
import itertools
import weakref
from pathlib import Path
from types import SimpleNamespace

import pytest

import dataplane
from dataplane.handlers.context import RequestContext
from dataplane.handlers.outcome import CloseConnectionError, Encoded
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import SIZE_BYTES, encode_frame, encode_request, parse_request_header
from dataplane.protocol.messages.discovery import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from dataplane.protocol.messages.groups import HeartbeatResponse
from dataplane.protocol.release import ELEMENTS_PER_STEP
from dataplane.requests.dispatch import ClientConnection
from dataplane.slices import Slices
from dataplane.tasks import Future, Later, Task, resolved
from dataplane.tenancy.session import Session
from quota.contracts.identity import ANYBODY
from quota.contracts.namespace import ClusterNames
from tests.support.collecting import no_collection
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
        self.held = 0

    def lasting(self, frame):
        return memoryview(bytearray(frame))

    def hold(self, more):
        self.held += more

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
        self.session = Session(None, "internal", ClusterNames(), "127.0.0.1", authenticated=True, identity=ANYBODY)
        self.client = ClientConnection(self.broker, self.socket, self.session)

    def take(self, reply, *, is_long=False):
        ctx = RequestContext(self.broker, self.session, ROW.api.key, VERSION, 7, None, 100, is_long)
        self.client._take(ROW, ctx, reply, None)

    def run(self):
        self.network.run_for(0.01)


class Told(str):  # noqa: SLOT000 - without slots it can be watched
    """A name that can be watched."""


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


def test_what_comes_when_the_client_has_gone_is_given_up():
    world, steps_of_it, reply = World(), Future(), Stoppable()
    world.take(steps_of_it, is_long=True)
    world.client.closed("gone")
    steps_of_it.resolve(reply)
    assert reply.given_up == 1


def test_what_is_known_of_the_request_that_began_last_outlives_a_wait_that_ends():
    world = World()
    turnstile, seen = world.client.turnstile, []
    slot = world.client.answers.reserve()
    world.client.answers.wait_at(slot, len(FRAME[0]) + SIZE_BYTES, None)
    turnstile.told_s, turnstile.reads_nothing = 0.5, True  # a fetch let in before its turn, half received

    def answer():
        seen.append((turnstile.told_s, turnstile.reads_nothing))
        world.client.answers.fill(slot, FRAME)
        return True

    world.client.go_on(slot, FRAME[0], 0.25, answer)
    assert seen == [(0.25, False)]
    assert (turnstile.told_s, turnstile.reads_nothing) == (0.5, True)


# --- long requests ----------------------------------------------------------------------------------------------------


def long_steps(world, handle, elements=5_000, *, is_let_in=True):
    """The steps of a long request that `handle` replies to, and its context."""
    row = SimpleNamespace(api=APIS[ApiKey.METADATA], handle=handle)
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=f"topic-{n}") for n in range(elements)))
    frame = memoryview(bytearray(encode_request(row.api, 9, 7, "client", request)[SIZE_BYTES:]))
    world.socket.hold(len(frame))
    ctx = RequestContext(world.broker, world.session, row.api.key, 9, 7, None, len(frame), True)
    return world.client._long(row, ctx, parse_request_header(frame), frame, is_let_in=is_let_in), ctx


def test_a_reply_that_comes_later_is_given_up_where_its_long_request_is_still_being_let_go():
    world, reply, is_handled = World(), Stoppable(), []

    def handle(_ctx, _request):
        is_handled.append(True)
        return reply

    steps_of_it, _ = long_steps(world, handle)
    while not is_handled:
        next(steps_of_it)
    steps_of_it.close()
    assert (reply.given_up, world.socket.held) == (1, 0)


def test_a_long_request_counts_as_held_until_nothing_of_it_is_needed():
    """Records of old formats are prepared in other steps, which keep all of its memory."""
    world, reply = World(), Held()
    steps_of_it, _ = long_steps(world, lambda _ctx, _request: reply)
    size = world.socket.held
    for _ in steps_of_it:
        assert world.socket.held == size
    assert world.socket.held == size
    reply.resolve(MESSAGE)
    assert world.socket.held == 0


def test_one_that_meets_a_debt_counts_as_held_while_it_waits_and_until_nothing_of_it_is_needed(monkeypatch):
    world, reply, pays = World(), Held(), []
    monkeypatch.setattr(ClientConnection, "_debt", lambda *_: "a debt")
    world.broker.decoded = SimpleNamespace(take=lambda *_: None, give_back=lambda *_: None)

    def join(_debt, _who, _size, paid):
        pays.append(paid)
        return SimpleNamespace(give_up=lambda: None)

    world.broker.debt_queues = SimpleNamespace(join=join)
    steps_of_it, _ = long_steps(world, lambda _ctx, _request: reply, is_let_in=False)
    size = world.socket.held
    answer = None
    while answer is None:
        try:
            next(steps_of_it)
        except StopIteration as stop:
            answer = Task(stop.value)
    assert (world.socket.held, answer.done) == (size, False)
    pays[0]()
    world.run()
    assert answer.result() is reply
    assert world.socket.held == size
    reply.resolve(MESSAGE)
    assert world.socket.held == 0


def test_the_message_that_answers_a_long_request_is_let_go_in_steps():
    world, watches = World(), []

    def handle(_ctx, _request):
        topics = [MetadataResponseTopic(name=Told(f"topic-{n}")) for n in range(5_000)]
        watches.extend(weakref.ref(topic.name) for topic in topics)
        return MetadataResponse(topics=tuple(topics))

    def alive():
        return sum(watch() is not None for watch in watches)

    steps_of_it, _ = long_steps(world, handle, 1)
    with no_collection():  # what a finalizer of another test's garbage warns of keeps the frame that it interrupted
        left = [*(alive() for _ in steps_of_it), alive()]
    assert max(before - after for before, after in itertools.pairwise(left)) <= ELEMENTS_PER_STEP
    assert left[-1] == 0
