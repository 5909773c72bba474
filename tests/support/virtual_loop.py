"""The network and clock doors without a network and a clock: many hosts in one process, on virtual time, from a seed.

    network = VirtualNetwork(seed=7)
    a, b = network.loop("a"), network.loop("b")        # each is a doors.Loop
    b.listen("b", 9092, accept); a.connect("b", 9092, opened, failed)
    network.run_for(1.5)                               # seconds of virtual time; returns at once

What it is faithful to: frames are cut from a byte stream; a host works in turns (everything that arrived while it was
busy is handled together, then its turn-end callbacks run, then what was sent leaves); the memory of a frame is
overwritten when the turn ends; a stream keeps its order, whatever the latencies; a close arrives after what was sent
before it; `closed` is called exactly once on each side.

Faults: `cut` and `heal` a pair of hosts, both ways or one (what is sent meanwhile arrives after the healing, as TCP's
retransmission would have it; connections to be opened time out), `crash` a host (its peers see a reset, its timers and
callbacks are gone; `loop(name)` then gives a new life), `pause` and `resume` it (SIGSTOP), `delay` what is under way on
the connections that one host has to another (packets lost, sent again later and later) and `reset` these at one end:
then new connections overtake what was sent on the old ones. `step_clock` moves a host's wall clock.

Every delivery is mixed into `digest`, so two runs of a seed can be compared. An exception in any callback ends the run,
unless `survives` says that this one was planned: then the host goes on as the real loop does, which ends a connection
whose frame raised.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import TYPE_CHECKING

from dataplane.doors import Load
from dataplane.network.refusals import oversize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dataplane.doors import Buffer, Callback, Connection, FileRange, FrameProtocol, Preface, TlsClient

CONNECT_TIMEOUT_S = 5.0
WALL_CLOCK_START_MS = 1_700_000_000_000
MAX_FRAME_BYTES = 100 * 2**20
_SIZE = struct.Struct(">i")
_MOMENT = struct.Struct("<dI")


class VirtualClock:
    """Time that moves when the network says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return WALL_CLOCK_START_MS + int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds


class HostClock:
    """The same time, and a date of the host's own."""

    def __init__(self, network: VirtualNetwork, host: str) -> None:
        self._clock, self._steps, self._host = network.clock, network.clock_steps_ms, host

    def now_ms(self) -> int:
        return self._clock.now_ms() + self._steps.get(self._host, 0)

    def monotonic(self) -> float:
        return self._clock.seconds


class VirtualTimer:
    __slots__ = ("callback", "loop")

    def __init__(self, loop: VirtualLoop, callback: Callback) -> None:
        self.loop = loop
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        self.callback = None

    def ring(self) -> None:
        """Its moment has come: its host does it when it has time, unless it is cancelled until then."""
        if self.callback is not None:
            self.loop.post(self._run)

    def _run(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()


@dataclass
class VirtualListener:
    loop: VirtualLoop
    address: tuple[str, int]
    accept: Callable[[Connection], FrameProtocol | None]
    preface: Preface | None = None

    def close(self) -> None:
        if self.loop.network.listeners.get(self.address) is self:
            del self.loop.network.listeners[self.address]


class VirtualNetwork:
    """All hosts, what is under way between them, and the one queue of events."""

    def __init__(
        self, seed: int = 0, *, latency_s: tuple[float, float] = (0.0001, 0.001), turn_s: float = 0.00005
    ) -> None:
        self.random = Random(seed)
        self.clock = VirtualClock()
        self.latency_s = latency_s
        self.turn_s = turn_s
        self.listeners: dict[tuple[str, int], VirtualListener] = {}
        self.digest = 0
        self.turns = 0  # of all hosts together
        self.deliveries = 0
        self.looks: list[Callable[[str], None]] = []
        """Called after each turn with the host that had it: how a test looks at everything that happens."""
        self.survives: Callable[[Exception], bool] = lambda _error: False
        self.clock_steps_ms: dict[str, int] = {}  # by host, of all its lives
        self.late_until = 0.0  # until then something that was delayed may arrive
        self._events: list[tuple[float, int, Callback]] = []
        self._serial = 0
        self._hosts: dict[str, VirtualLoop] = {}
        self._cut: dict[tuple[str, str], list[Callback]] = {}
        self._next_port = 40_000

    # --- driving ------------------------------------------------------------------------------------------------------

    def loop(self, host: str) -> VirtualLoop:
        """The loop of a host; a new one where there is none, or where it crashed."""
        loop = self._hosts.get(host)
        if loop is None or loop.crashed:
            loop = self._hosts[host] = VirtualLoop(self, host)
        return loop

    def run_for(self, seconds: float) -> None:
        """Let that much time pass."""
        end = self.clock.seconds + seconds
        while self._events and self._events[0][0] <= end:
            self._step()
        self.clock.seconds = end

    def run_until(self, condition: Callable[[], bool], within_s: float = 60.0) -> None:
        """Run until the condition holds (looked at after each event). Raises TimeoutError."""
        end = self.clock.seconds + within_s
        events, step = self._events, self._step
        while not condition():
            if not events or events[0][0] > end:
                raise TimeoutError(f"not within {within_s} s of virtual time: {condition}")
            step()

    def _step(self) -> None:
        when, _, callback = heappop(self._events)
        self.clock.seconds = max(self.clock.seconds, when)
        callback()

    def at(self, when: float, callback: Callback) -> None:
        """Run at a moment of virtual time; in order of scheduling where moments are equal."""
        self._serial += 1
        heappush(self._events, (when, self._serial, callback))

    def latency(self) -> float:
        return self.random.uniform(*self.latency_s)

    def record(self, route: bytes, frame: bytes) -> None:
        """Mix into the digest what arrived, where, and when."""
        self.deliveries += 1
        digest = zlib.crc32(_MOMENT.pack(self.clock.seconds, len(frame)), self.digest)
        self.digest = zlib.crc32(frame, zlib.crc32(route, digest))

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    # --- faults -------------------------------------------------------------------------------------------------------

    def cut(self, a: str, b: str, *, both_ways: bool = True) -> None:
        """From now on nothing that `a` sends reaches `b` (and, both ways, the reverse)."""
        self._cut.setdefault((a, b), [])
        if both_ways:
            self._cut.setdefault((b, a), [])

    def heal(self, a: str, b: str) -> None:
        """What was held back arrives, in order."""
        for pair in ((a, b), (b, a)):
            for deliver in self._cut.pop(pair, []):
                deliver()

    def heal_all(self) -> None:
        for a, b in list(self._cut):
            self.heal(a, b)

    def carry(self, a: str, b: str, deliver: Callback) -> None:
        """Do it now, or when the cut between the hosts is healed."""
        held = self._cut.get((a, b))
        if held is None:
            deliver()
        else:
            held.append(deliver)

    def is_cut(self, a: str, b: str) -> bool:
        return (a, b) in self._cut or (b, a) in self._cut

    def delay(self, a: str, b: str, seconds: float) -> None:
        """Nothing of what `a` sends on the connections that it has to `b` now arrives before that time is over; in order."""
        self.late_until = max(self.late_until, self.clock.seconds + seconds)
        for connection in self._between(a, b):
            connection.delay(seconds)

    def reset(self, a: str, b: str) -> None:
        """The connections between them end for `a` (something on the way says so); `b` gets what was under way, then the end."""
        for connection in self._between(a, b):
            connection.reset_here()

    def _between(self, a: str, b: str) -> list[VirtualConnection]:
        loop = self._hosts[a]
        return [] if loop.crashed else [each for each in loop.connections if each.other.loop.host == b]

    def step_clock(self, host: str, milliseconds: int) -> None:
        """Its date, not the time that has passed; a later life finds it as it is."""
        self.clock_steps_ms[host] = self.clock_steps_ms.get(host, 0) + milliseconds

    def crash(self, host: str) -> None:
        """SIGKILL: nothing of the host runs again; its peers' connections are reset."""
        loop = self._hosts[host]
        loop.crashed = True
        for listener in [x for x in self.listeners.values() if x.loop is loop]:
            listener.close()
        for connection in loop.connections:
            connection.reset_peer()

    def pause(self, host: str) -> None:
        """SIGSTOP: its sockets stay open, it does nothing; its timers are late."""
        self._hosts[host].paused = True

    def resume(self, host: str) -> None:
        loop = self._hosts[host]
        loop.paused = False
        loop.wake()


class VirtualLoop:
    """The loop of one host (`doors.Loop`)."""

    def __init__(self, network: VirtualNetwork, host: str) -> None:
        self.network = network
        self.host = host
        self.clock = HostClock(network, host)
        self.crashed = False
        self.paused = False
        self.connections: list[VirtualConnection] = []
        self.turns = 0
        self.too_large: list[tuple[str, int, int]] = []  # requests: whose, how large, how large they might be
        self._inbox: deque[Callback] = deque()
        self._turn_end: list[Callback] = []
        self._unsent: list[VirtualConnection] = []
        self._frames: list[bytearray] = []  # handed out in this turn
        self._awake = False
        self._busy_until = 0.0

    # --- doors.Loop ---------------------------------------------------------------------------------------------------

    @property
    def turn_number(self) -> int:
        return self.turns

    def call_later(self, delay_s: float, callback: Callback) -> VirtualTimer:
        timer = VirtualTimer(self, callback)
        self.network.at(self.network.clock.seconds + max(0.0, delay_s), timer.ring)
        return timer

    def call_soon(self, callback: Callback) -> None:
        self.post(callback)

    def call_threadsafe(self, callback: Callback) -> None:
        self.post(callback)

    def charge_to(self, account: str, bucket: object) -> None:
        """Work takes no time here."""

    def forget_account(self, account: str) -> None:
        """There are none."""

    def when_due(self, account: str, callback: Callback) -> None:
        """At once, always."""
        callback()

    def worked_for(self, account: str, seconds: float) -> None:
        """As `charge_to`."""

    def share_of(self, account: str) -> float:
        """All of it."""
        return 1.0

    def will_write(self, account: str, size: int) -> None:
        """As `charge_to`."""

    def worked_s(self, account: str) -> float:
        """Nothing takes time here."""
        return 0.0

    def take_load(self) -> Load:
        return Load(0.0, "", 0.0, {}, {})

    def at_turn_end(self, callback: Callback) -> None:
        self._turn_end.append(callback)
        self.wake()  # called from outside of a turn (by a test), it gets one

    def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Connection], FrameProtocol | None],
        preface: Preface | None = None,
        *,
        tls: bool = False,
        account: str = "",
        wait_s: Callable[[], float] | None = None,
    ) -> VirtualListener:
        address = (host, port or self.network.free_port())
        if address in self.network.listeners:
            raise OSError(98, "Address already in use")
        listener = self.network.listeners[address] = VirtualListener(self, address, accept, preface)
        return listener

    def connect(
        self,
        host: str,
        port: int,
        opened: Callable[[Connection], FrameProtocol],
        failed: Callable[[str], None],
        tls: TlsClient | None = None,
    ) -> Callback:
        """As `VirtualConnection.secure`: nobody shows a certificate here."""
        assert tls is None
        attempt = _Attempt(self, (host, port), opened, failed)
        attempt.begin()
        return attempt.give_up

    # --- turns --------------------------------------------------------------------------------------------------------

    def post(self, callback: Callback) -> None:
        """Have it run in the host's next turn."""
        if not self.crashed:
            self._inbox.append(callback)
            self.wake()

    def wake(self) -> None:
        if not self._awake and not self.crashed:
            self._awake = True
            self.network.at(max(self.network.clock.seconds, self._busy_until), self._turn)

    def _turn(self) -> None:
        if self.crashed or self.paused:
            self._awake = False
            return
        self.turns += 1
        self.network.turns += 1
        for _ in range(len(self._inbox)):
            self._call(self._inbox.popleft())
        while self._turn_end or self._unsent:
            callbacks, self._turn_end = self._turn_end, []
            for callback in callbacks:
                self._call(callback)
            unsent, self._unsent = self._unsent, []
            for connection in unsent:
                connection.flush()
        if self._frames:
            for memory in self._frames:
                memory[:] = b"\xdd" * len(memory)
            self._frames.clear()
        self._awake = False  # only now: what was posted during the turn waits until the host is free again
        self._busy_until = self.network.clock.seconds + self.network.turn_s
        if self._inbox:
            self.wake()
        for look in self.network.looks:
            look(self.host)

    def _call(self, callback: Callback) -> None:
        try:
            callback()
        except Exception as error:
            if not self.network.survives(error):
                raise

    def will_send(self, connection: VirtualConnection) -> None:
        self._unsent.append(connection)
        self.wake()

    def lend(self, frame: bytes) -> memoryview:
        """A frame's memory for the length of this turn."""
        memory = bytearray(frame)
        self._frames.append(memory)
        return memoryview(memory)


class VirtualConnection:
    """One end of a stream (`doors.Connection`)."""

    def __init__(self, loop: VirtualLoop, local: tuple[str, int], peer: tuple[str, int]) -> None:
        self.loop = loop
        self.network = loop.network
        self.local, self.peer = local, peer
        self.other: VirtualConnection
        self.protocol: FrameProtocol | None = None
        self.is_open = True
        self.max_frame_bytes = MAX_FRAME_BYTES
        self.account = ""
        self.received_bytes = self.sent_bytes = 0
        self._out: list[Buffer | FileRange] = []
        self._stream = bytearray()
        self._before: tuple[Preface, VirtualListener] | None = None  # what has to be read before there is a protocol
        self._arrives_at = 0.0
        self._late_until = 0.0
        self._paused = False
        self._held: deque[Callback] = deque()
        self._closing = False
        self._route = f"{peer} {local}".encode()
        loop.connections.append(self)

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, parts: Sequence[Buffer | FileRange]) -> None:
        if self.is_open and parts:
            if not self._out:
                self.loop.will_send(self)
            self._out.extend(parts)

    def secure(self, _server: object, secured: Callable[[bytes | None], str | None]) -> None:
        """What goes over this network nobody else reads: the client has no certificate."""
        problem = secured(None)
        assert problem is None, problem

    def queued_bytes(self) -> int:
        return sum(part.size if hasattr(part, "size") else len(part) for part in self._out)

    def flush(self) -> None:
        if not self.is_open or not self._out:
            return
        out, self._out = self._out, []
        data = b"".join([_bytes_of(part) for part in out])
        self.sent_bytes += len(data)
        for part in out:
            if getattr(part, "sent", None) is not None:
                part.sent(part.size)
        other = self.other
        self._transmit(lambda: other.loop.post(lambda: other.receive(data)))
        if self._closing:
            self._gone("closed here", tell="closed by the peer")

    def _transmit(self, deliver: Callback) -> None:
        """To the other host, after what was sent before."""
        network = self.network
        self._arrives_at = max(self._arrives_at, network.clock.seconds + network.latency())
        network.at(self._arrives_at, lambda: self._arrive(deliver))

    def _arrive(self, deliver: Callback) -> None:
        network = self.network
        if network.clock.seconds < self._late_until:
            network.at(self._late_until, lambda: self._arrive(deliver))
        else:
            network.carry(self.loop.host, self.other.loop.host, deliver)

    # --- receiving ----------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        if not self.is_open:
            return
        if self._paused:
            self._held.append(lambda: self.receive(data))
            return
        self._stream += data
        self.received_bytes += len(data)
        if self._before is not None:
            self._read_preface(*self._before)
            if self._before is not None:
                return
        settle = getattr(self.protocol, "settle", None)
        self._hand_out()
        if settle is not None:
            settle()

    def accept(self, listener: VirtualListener) -> None:
        """The listener's end of it."""
        preface = listener.preface
        if preface is None:
            self._begin(listener)
        elif preface.admits(self.peer[0]):
            self._before = (preface, listener)
            self.loop.call_later(preface.within_s, lambda: self._before is None or self.close())
        else:
            self.close()

    def _read_preface(self, preface: Preface, listener: VirtualListener) -> None:
        try:
            said = preface.read(bytes(self._stream))
        except ValueError:
            self.close()
            return
        if said is not None:
            self._before = None
            del self._stream[: said.size]
            self.peer = said.source or self.peer
            self._begin(listener)

    def _begin(self, listener: VirtualListener) -> None:
        self.protocol = listener.accept(self)
        if self.protocol is None:
            self.close()

    def _hand_out(self) -> None:
        while self.is_open and not self._paused and self._may_begin() and (frame := self._next_frame()) is not None:
            assert self.protocol is not None
            self.network.record(self._route, frame)
            try:
                self.protocol.frame(self.loop.lend(frame))
            except Exception as error:
                if not self.network.survives(error):
                    raise
                self.close()

    def _may_begin(self) -> bool:
        """Ask the protocol about a frame when it is all here; one that began is not asked about again."""
        if len(self._stream) < 6 or (begins := getattr(self.protocol, "begins", None)) is None:
            return True
        (size,) = _SIZE.unpack_from(self._stream)
        if not 2 <= size <= self.max_frame_bytes or len(self._stream) < 4 + size:
            return True
        return begins(int.from_bytes(self._stream[4:6]), size, len(self._stream) - 4 - size)

    def _next_frame(self) -> bytes | None:
        if len(self._stream) < 4:
            return None
        (size,) = _SIZE.unpack_from(self._stream)
        if not 0 <= size <= self.max_frame_bytes:
            self.too_large(size, self.max_frame_bytes)
            return None
        if len(self._stream) < 4 + size:
            return None
        frame = bytes(self._stream[4 : 4 + size])
        del self._stream[: 4 + size]
        return frame

    def pause_reading(self) -> None:
        self._paused = True

    pause_for_limit = pause_reading

    def resume_now(self) -> None:
        if self._paused:
            self._paused = False
            self._catch_up()

    def peer_has_finished(self) -> bool:
        return not self.other.is_open

    def lasting(self, frame: memoryview) -> memoryview:
        return memoryview(bytearray(frame))

    def hold(self, more: int) -> None:
        """Memory is not what is looked at here."""

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self.loop.post(self._catch_up)

    def _catch_up(self) -> None:
        self.receive(b"")
        while self._held and not self._paused:
            self._held.popleft()()

    # --- ends ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._gone("closed here", tell="closed by the peer")

    def too_large(self, size: int, limit: int) -> None:
        self.loop.too_large.append((self.account, size, limit))
        self._gone(oversize(size, limit), tell="closed by the peer")

    def close_after_send(self) -> None:
        if self._out:
            self._closing = True
        else:
            self.close()

    def delay(self, seconds: float) -> None:
        """What is on its way, and all that follows within the time, arrives then. Nothing more where it is late already."""
        if self._late_until <= self.network.clock.seconds:
            self._late_until = self.network.clock.seconds + seconds

    def reset_here(self) -> None:
        """For this end it is over; the other gets what was sent, and then hears of it."""
        self._gone("reset on the way", tell="reset on the way")

    def reset_peer(self) -> None:
        """This end's host is gone."""
        if self.is_open:
            self.is_open = False
            self._transmit(lambda: self.other.loop.post(lambda: self.other.peer_gone("reset by the peer")))

    def peer_gone(self, reason: str) -> None:
        if self._paused and reason != "reset by the peer":
            self._held.append(lambda: self.peer_gone(reason))
        else:
            self._gone(reason, tell=None)

    def _gone(self, reason: str, tell: str | None) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._out.clear()
        self.loop.connections.remove(self)
        if tell is not None:
            self._transmit(lambda: self.other.loop.post(lambda: self.other.peer_gone(tell)))
        if self.protocol is not None:
            self.loop.at_turn_end(lambda: self.protocol.closed(reason))


class _Attempt:
    """A connection that is being opened."""

    def __init__(
        self,
        loop: VirtualLoop,
        address: tuple[str, int],
        opened: Callable[[Connection], FrameProtocol],
        failed: Callable[[str], None],
    ) -> None:
        self._loop, self._network, self._address = loop, loop.network, address
        self._opened, self._failed = opened, failed
        self._decided = False

    def begin(self) -> None:
        timeout = self._network.clock.seconds + CONNECT_TIMEOUT_S
        self._network.at(timeout, lambda: self._loop.post(lambda: self._fail("Connection timed out")))
        self._network.at(self._network.clock.seconds + self._network.latency(), self._reach)

    def give_up(self) -> None:
        self._decided = True

    def _reach(self) -> None:
        if self._loop.crashed:
            return
        listener = self._network.listeners.get(self._address)
        if listener is not None and self._network.is_cut(self._loop.host, listener.loop.host):
            return  # nobody answers, until the timeout
        if listener is None:
            self._later(lambda: self._fail("Connection refused"))
            return
        local = (self._loop.host, self._network.free_port())
        here = VirtualConnection(self._loop, local, self._address)
        there = VirtualConnection(listener.loop, self._address, local)
        here.other, there.other = there, here
        listener.loop.post(lambda: self._accept(listener, there))
        self._later(lambda: self._open(here))

    def _later(self, callback: Callback) -> None:
        self._network.at(self._network.clock.seconds + self._network.latency(), lambda: self._loop.post(callback))

    def _accept(self, listener: VirtualListener, connection: VirtualConnection) -> None:
        if connection.is_open:
            connection.accept(listener)

    def _open(self, connection: VirtualConnection) -> None:
        if self._decided:
            connection.close()
            return
        self._decided = True
        connection.protocol = self._opened(connection)
        if not connection.is_open:  # reset before it was known here
            connection.is_open = True
            connection.loop.connections.append(connection)
            connection._gone("reset by the peer", tell=None)

    def _fail(self, reason: str) -> None:
        if not self._decided:
            self._decided = True
            self._failed(reason)


def _bytes_of(part: Buffer | FileRange) -> bytes:
    if hasattr(part, "file"):
        data = part.file.read(part.position, part.size)
        assert len(data) == part.size, "the file is shorter than the range to be sent"
        return data
    return bytes(part)
