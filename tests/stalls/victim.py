"""Who is disturbed: a tenant that produces and consumes 1,000 records a second, and a probe; in a process of its own.

Four connections on one epoll, each in the rhythm of a clock, whether answers have come or not:

    producer    five records every 5 ms, acks=all; from the moment at which they were due to the acknowledgement
    consumer    waits for whatever comes; from the same moment to the record's arrival
    halves      a request of 200 KiB four times a second, whose second half leaves 10 ms after the first: an incomplete frame
    probe       ApiVersions, again 4 ms after each answer: who waits longest for it was kept by the loop's longest turn

What the machine took meanwhile (`lost`) is taken off every wait. The probe's round trip is told twice: as a client sees it
(`longest`), and without that (`held`).
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Self

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from dataplane.records.header import read_header
from tests.stalls.lost import Losses
from tests.stalls.pauses import Pause, Pauses, lost_ms

PRODUCE_EVERY_S, RECORDS_EACH, RECORD_BYTES = 0.005, 5, 100
PROBE_EVERY_S = 0.004
HALVES_EVERY_S, HALVES_APART_S, HALVES_BYTES = 0.25, 0.01, 200 * 2**10
PAUSE_S = 0.000_3
"""Of the victim's own: what is shorter is nobody's doing."""
TIMED_OUT_S = 30.0
"""As librdkafka's and the Java client's `request.timeout.ms`."""
QUIET_MS, QUIET_FOR = 10.0, 20
"""All is as before when so many probes in a row were answered within this time."""
_PRODUCE, _FETCH = 7, 11

Address = tuple[str, int]


class Wait(NamedTuple):
    """For something that was due (seconds of the monotonic clock); milliseconds."""

    due_s: float
    took_ms: float
    left_ms: float  # without what the machine took

    @property
    def over_s(self) -> float:
        return self.due_s + self.took_ms / 1000

    def without(self, broker: Pauses, victim: Pauses) -> Wait:
        """Two ways to know what the machine took: what is left by either."""
        lost = lost_ms(broker, victim, self.due_s, self.over_s)
        return self._replace(left_ms=min(self.left_ms, self.took_ms - lost))


@dataclass
class Window:
    """What happened between two moments. A wait that is not over is one of as long as it has lasted."""

    acknowledgements: list[Wait] = field(default_factory=list)
    arrivals: list[Wait] = field(default_factory=list)
    probes: list[Wait] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)  # the victim's own

    def without(self, broker: Pauses) -> Window:
        """Without what either was kept from running, moment by moment."""
        victim = Pauses(self.pauses)
        waits = self.acknowledgements, self.arrivals, self.probes
        return Window(*([wait.without(broker, victim) for wait in some] for some in waits), self.errors, self.pauses)

    @property
    def acknowledged(self) -> list[float]:
        """Milliseconds."""
        return [wait.left_ms for wait in self.acknowledgements]

    @property
    def consumed(self) -> list[float]:
        """Milliseconds."""
        return [wait.left_ms for wait in self.arrivals]

    def as_seen(self, what: str) -> list[float]:
        """`acknowledged` or `consumed` by the clock, whatever the machine took; milliseconds."""
        waits = {"acknowledged": self.acknowledgements, "consumed": self.arrivals}[what]
        return [wait.took_ms for wait in waits]

    @property
    def longest(self) -> float:
        """Of the probe's round trips, as a client sees them; milliseconds."""
        return max((wait.took_ms for wait in self.probes), default=0.0)

    @property
    def held(self) -> float:
        """The same, without what the machine took."""
        return max((wait.left_ms for wait in self.probes), default=0.0)


class Victim:
    """The process, from entering the context; the moments are those of the machine's monotonic clock."""

    def __init__(self, address: Address, topic: str, pid: int | None) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(address, topic, pid, theirs), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._told(60)
        return self

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process.pid is not None
        return self._process.pid

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def quiet(self, within_s: float) -> bool:
        """Wait until the broker answers as if nothing were; False: it does not."""
        self._pipe.send(("quiet", time.monotonic() + within_s, 0.0))
        return bool(self._told(within_s + 60))

    def window(self, began: float, ended: float, until: float) -> Window:
        """What became of what was due from `began` to `ended`.

        The probe is looked at for longer, until `until`, and one that was on its way when the window began is in it: it may be
        the one that a stall kept waiting.
        """
        self._pipe.send(("window", began, ended, until))
        return self._told(TIMED_OUT_S + 60 + max(0.0, until - time.monotonic()))

    def _told(self, within_s: float) -> Any:
        assert self._pipe.poll(within_s), "the victim does not answer"
        return self._pipe.recv()


def _run(address: Address, topic: str, pid: int | None, pipe: Connection) -> None:
    with suppress(PermissionError):  # it has a processor when it asks for one, as on a machine of its own
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    gc.freeze()
    gc.disable()  # to look at all objects takes it 14 ms, in which it asks for nothing: three requests of four hundred are late
    Life(address, topic, pid, pipe).run()


class Life:
    """The four connections and what is known of them."""

    def __init__(self, address: Address, topic: str, pid: int | None, pipe: Connection) -> None:
        self._address, self._topic, self._pipe = address, topic, pipe
        self._losses = Losses(pid)
        self._epoll = select.epoll()
        self._lines: dict[int, Line] = {}
        self._timers: list[Timer] = []
        self._due_of: dict[int, float] = {}  # by the offset of a batch's first record
        self._arrived: dict[int, float] = {}
        self._acknowledged: list[Wait] = []
        self._consumed: list[Wait] = []
        self._errors: list[tuple[float, str]] = []
        self._probes: list[Wait] = []
        self._pauses: list[Pause] = []
        self._awake_s, self._ran_s = time.monotonic(), time.thread_time()
        self._fast = 0
        self._offset = -1
        self._asked: tuple[Any, ...] | None = None

    def run(self) -> None:
        producer = Line(self, "producer", self._on_produced)
        consumer = Line(self, "consumer", self._on_fetched)
        halves = Line(self, "halves", self._on_halves)
        probe = Line(self, "probe", self._on_probed)
        small, large = _produce(self._topic, 0, RECORDS_EACH, RECORD_BYTES), _produce(self._topic, 1, 1, HALVES_BYTES)
        hello = encode_request(APIS[ApiKey.API_VERSIONS], 0, 1, "probe", ApiVersionsRequest())
        middle = len(large) // 2

        def send_half() -> None:
            if halves.waiting:
                return
            halves.ask(large[:middle], time.monotonic())
            self._timers.append(Timer(time.monotonic() + HALVES_APART_S, 0, lambda: halves.more(large[middle:])))

        def send_probe() -> None:
            if not probe.waiting:
                probe.ask(hello, time.monotonic())

        now = time.monotonic()
        every = Timer(now, PRODUCE_EVERY_S, lambda: producer.ask(small, every.due))
        self._timers += [every, Timer(now, HALVES_EVERY_S, send_half), Timer(now, PROBE_EVERY_S, send_probe)]
        self._consumer = consumer
        self._epoll.register(self._pipe.fileno(), select.EPOLLIN)
        self._pipe.send("ready")
        self._awake_s, self._ran_s = time.monotonic(), time.thread_time()
        while True:
            self._turn()

    def _turn(self) -> None:
        now = time.monotonic()
        for timer in [timer for timer in self._timers if timer.due <= now]:
            timer.call()
            if timer.every_s:
                timer.due += timer.every_s
            else:
                self._timers.remove(timer)
        if self._offset >= 0 and not self._consumer.waiting:
            self._consumer.ask(_fetch(self._topic, self._offset), now)
        if self._asked is not None:
            self._answer(now)
        wait_s = max(0.0, min(timer.due for timer in self._timers) - time.monotonic())
        asleep_s = time.monotonic()
        self._paused(self._awake_s, asleep_s, asleep_s - self._awake_s - (time.thread_time() - self._ran_s))
        found = self._epoll.poll(wait_s)
        self._awake_s = awake_s = time.monotonic()
        self._ran_s = time.thread_time()
        wakes_s = asleep_s + math.ceil(wait_s * 1000) / 1000  # epoll counts milliseconds
        self._paused(wakes_s, awake_s, awake_s - wakes_s)
        self._losses.look(awake_s)
        for fd, events in found:
            if fd == self._pipe.fileno():
                self._asked = self._pipe.recv()
                self._fast = 0
            else:
                self._lines[fd].ready(events)

    def _paused(self, began_s: float, ended_s: float, lost_s: float) -> None:
        if lost_s > PAUSE_S:
            self._pauses.append(Pause(began_s, ended_s, lost_s * 1000))

    # --- answers ------------------------------------------------------------------------------------------------------

    def _on_produced(self, frame: bytes, due: float) -> None:
        now = time.monotonic()
        answer = decode_response(APIS[ApiKey.PRODUCE], _PRODUCE, frame)[1].responses[0].partition_responses[0]
        if answer.error_code:
            self.error(due, f"produce {answer.error_code}")
            return
        if self._offset < 0:
            self._offset = answer.base_offset
        self._acknowledged.append(self._waited(due, now))
        self._due_of[answer.base_offset] = due
        self._both(answer.base_offset)

    def _on_fetched(self, frame: bytes, asked: float) -> None:
        now = time.monotonic()
        answer = decode_response(APIS[ApiKey.FETCH], _FETCH, frame)[1].responses[0].partitions[0]
        if answer.error_code:
            self.error(asked, f"fetch {answer.error_code}")
            return
        view = memoryview(answer.records or b"")
        while len(view) >= 12 and len(view) >= (size := 12 + int.from_bytes(view[8:12])):
            header = read_header(view[:size])
            self._arrived[header.base_offset] = now
            self._both(header.base_offset)
            self._offset = header.base_offset + header.last_offset_delta + 1
            view = view[size:]

    def _both(self, offset: int) -> None:
        if offset in self._due_of and offset in self._arrived:
            due = self._due_of.pop(offset)
            self._consumed.append(self._waited(due, self._arrived.pop(offset)))

    def _waited(self, due: float, until: float) -> Wait:
        took_ms = (until - due) * 1000
        return Wait(due, took_ms, self._losses.without(due, took_ms))

    def _on_halves(self, frame: bytes, due: float) -> None:
        answer = decode_response(APIS[ApiKey.PRODUCE], _PRODUCE, frame)[1].responses[0].partition_responses[0]
        if answer.error_code:
            self.error(due, f"halves {answer.error_code}")

    def _on_probed(self, _frame: bytes, asked: float) -> None:
        wait = self._waited(asked, time.monotonic())
        self._probes.append(wait)
        self._fast = self._fast + 1 if wait.took_ms < QUIET_MS else 0

    def error(self, due: float, what: str) -> None:
        self._errors.append((due, what))

    # --- questions ----------------------------------------------------------------------------------------------------

    def _answer(self, now: float) -> None:
        """Whoever asks for a window waits until it is over and all that was due in it has come, or never will."""
        assert self._asked is not None
        kind, first, last, *until = self._asked
        if kind == "quiet":
            if self._fast >= QUIET_FOR or now > first:
                self._pipe.send(self._fast >= QUIET_FOR)
                self._asked = None
            return
        owed = any(
            line.waiting and line.waiting[0] < last
            for line in self._lines.values()
            if line.name in ("producer", "halves")
        )
        owed = owed or any(due < last for due in self._due_of.values())  # acknowledged, and not consumed yet
        if now < last or (owed and now < last + TIMED_OUT_S):
            return
        late = [due for line in self._lines.values() if line.name == "producer" for due in line.waiting if due < last]
        late += [due for due in self._due_of.values() if first <= due < last and now - due > TIMED_OUT_S]
        self._asked = None
        self._pipe.send(self._window(first, last, until[0], late))
        self._forget(last)

    def _window(self, first: float, last: float, until: float, late: list[float]) -> Window:
        def not_over(since: float) -> Wait:
            took_ms = (time.monotonic() - since) * 1000
            return Wait(since, took_ms, took_ms)

        errors: dict[str, int] = {"timed out": len(late)} if late else {}
        for due, what in self._errors:
            if due >= first:
                errors[what] = errors.get(what, 0) + 1
        overdue = sum(due < first - TIMED_OUT_S for due in self._due_of.values())
        if overdue:
            errors["never consumed"] = overdue
        stuck = [not_over(line.waiting[0]) for line in self._lines.values() if line.is_stuck_probe]
        return Window(
            [wait for wait in self._acknowledged if first <= wait.due_s < last] + [not_over(due) for due in late],
            [wait for wait in self._consumed if first <= wait.due_s < last],
            stuck or [wait for wait in self._probes if wait.due_s < until and wait.over_s > first],
            errors,
            list(self._pauses),
        )

    def _forget(self, before: float) -> None:
        for entries in (self._acknowledged, self._consumed, self._errors):
            entries[:] = [entry for entry in entries if entry[0] >= before]
        self._probes = [probe for probe in self._probes if probe.over_s >= before]
        self._due_of = {offset: due for offset, due in self._due_of.items() if due > before - TIMED_OUT_S}
        self._arrived = {offset: at for offset, at in self._arrived.items() if at > before - TIMED_OUT_S}
        self._losses.forget(before - TIMED_OUT_S)
        self._pauses = [pause for pause in self._pauses if pause.ended_s > before - TIMED_OUT_S]

    # --- lines --------------------------------------------------------------------------------------------------------

    def opened(self, line: Line, fd: int) -> None:
        self._lines[fd] = line
        self._epoll.register(fd, select.EPOLLIN)

    def listen(self, fd: int, *, sends: bool) -> None:
        self._epoll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if sends else 0))

    def lost(self, line: Line, fd: int) -> None:
        self._epoll.unregister(fd)
        del self._lines[fd]
        for due in line.waiting:
            self.error(due, f"{line.name} closed")
        self.error(time.monotonic(), f"{line.name} closed")
        self._timers.append(Timer(time.monotonic() + 0.1, 0, line.open))

    @property
    def address(self) -> Address:
        return self._address


class Timer:
    """Something that is due; again after `every_s`, if that is not 0."""

    def __init__(self, due: float, every_s: float, call: Callable[[], None]) -> None:
        self.due, self.every_s, self.call = due, every_s, call


class Line:
    """One connection: requests in order with the moments at which they were due, answers handed to `take`."""

    def __init__(self, life: Life, name: str, take: Callable[[bytes, float], None]) -> None:
        self.name, self.waiting = name, deque[float]()
        self._life, self._take = life, take
        self._out, self._in = bytearray(), bytearray()
        self._socket: socket.socket | None = None
        self.open()

    @property
    def is_stuck_probe(self) -> bool:
        return self.name == "probe" and bool(self.waiting) and time.monotonic() - self.waiting[0] > 1.0

    def open(self) -> None:
        self.waiting.clear()
        self._out.clear()
        self._in.clear()
        try:
            self._socket = socket.create_connection(self._life.address, timeout=1.0)
        except OSError:
            self._socket = None
            self._life.error(time.monotonic(), f"{self.name} not connected")
            self._life._timers.append(Timer(time.monotonic() + 0.5, 0, self.open))
            return
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._life.opened(self, self._socket.fileno())

    def ask(self, request: bytes, due: float) -> None:
        if self._socket is None:
            self._life.error(due, f"{self.name} not connected")
            return
        self.waiting.append(due)
        self.more(request)

    def more(self, data: bytes) -> None:
        self._out += data
        if self._socket is not None:
            self._send()

    def ready(self, events: int) -> None:
        if events & ~select.EPOLLOUT and not self._receive():
            return
        if events & select.EPOLLOUT:
            self._send()

    def _send(self) -> None:
        assert self._socket is not None
        try:
            while self._out:
                del self._out[: self._socket.send(self._out)]
        except BlockingIOError:
            pass
        except OSError:
            self._lose()
            return
        self._life.listen(self._socket.fileno(), sends=bool(self._out))

    def _receive(self) -> bool:
        assert self._socket is not None
        try:
            found = self._socket.recv(2**18)
        except BlockingIOError:
            return True
        except OSError:
            found = b""
        if not found:
            self._lose()
            return False
        self._in += found
        while len(self._in) >= 4 and len(self._in) >= (end := 4 + int.from_bytes(self._in[:4])):
            frame = bytes(self._in[4:end])
            del self._in[:end]
            self._take(frame, self.waiting.popleft())
        return True

    def _lose(self) -> None:
        assert self._socket is not None
        fd, sock, self._socket = self._socket.fileno(), self._socket, None
        self._life.lost(self, fd)
        sock.close()


def _produce(topic: str, partition: int, records: int, size: int) -> bytes:
    batch = bytes(build_batch([Record(None, os.urandom(size))] * records, now_ms=int(time.time() * 1000)))
    data = TopicProduceData(topic, (PartitionProduceData(partition, batch),))
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,))
    return encode_request(APIS[ApiKey.PRODUCE], _PRODUCE, 1, "victim", request)


def _fetch(topic: str, offset: int) -> bytes:
    wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=2**20)
    topics = (FetchTopic(topic, partitions=(wanted,)),)
    request = FetchRequest(replica_id=-1, max_wait_ms=500, min_bytes=1, session_epoch=-1, topics=topics)
    return encode_request(APIS[ApiKey.FETCH], _FETCH, 1, "victim", request)
