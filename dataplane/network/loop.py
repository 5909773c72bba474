"""The network door: one thread, one epoll, raw non-blocking sockets.

A turn: what epoll reports is queued with the account of its connection (an instance's, or the cluster's own), and the
accounts are served in rounds of about half a millisecond (`accounts`): bytes are received into one shared arena and cut into
frames; each frame goes to its connection's protocol, which may answer at once or later. Then the turn-end callbacks run
(group commit), then every connection with output sends. Frames are views into the arena, so they are valid until the end
of the turn only; when the arena is full in the middle of a round, the turn ends there and a new one begins, as it does
before an account that has used more of the loop lately than its share: the others' answers have left by then. Who has used
least lately sends first, and who has overdrawn sends in a later turn (`accounts`). What was to be
called soon, slices of long work above all, comes when all that has left: no connection served in a turn waits for its slice.

How long turns are, and who had them, is kept (`turns`): one that was too long is a line on standard error.

Why not asyncio or uvloop: measured at 2-4 times the CPU per small request (see docs/subsystems/performance.md).
"""

from __future__ import annotations

import errno
import heapq
import os
import select
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable
from itertools import count

from dataplane.doors import Callback, Clock, Connection, FrameProtocol, Load, Preface, TlsClient
from dataplane.network.accounts import INTERNAL, Accounts
from dataplane.network.arena import Arena
from dataplane.network.connection import SocketConnection
from dataplane.network.memory import LargeMemory
from dataplane.network.preface import Prefaces
from dataplane.network.refusals import Refusals
from dataplane.network.sending import Sender
from dataplane.network.tls import MOST_RECEIVED_BYTES
from dataplane.network.tls_connection import TlsConnection
from dataplane.network.turns import Turns
from dataplane.storage.cold import ColdReads
from quota.core.bucket import TokenBucket

_MAX_ACCEPTS_PER_TURN, _ACCEPTING_S = 16, 0.000_25
"""Of one listener, whichever comes first: a connection costs about 0.2 ms, and who likes may begin thousands a second."""
_LEAST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 1.0
"""For which a listener accepts nobody, where nobody can be accepted or may."""
_PASSES_BEFORE_SENDING = 2
"""Of callbacks at the end of a turn, those that the first had called too: their answers leave together. Not more, since a
portion that is written may begin the next of its request at once, and others' answers are ready."""
_MANY_CANCELLED = 1_000
_COMPLAINTS_PER_SECOND = 5
_MOST_PATIENCE_S = 3_600.0
"""epoll takes milliseconds in 32 bits, 24.8 days; a timer may be further off, and turns without work cost nothing."""
_IN, _OUT, _HANGUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR


class _Timer:
    __slots__ = ("_loop", "callback", "when")

    def __init__(self, loop: EpollLoop, when: float, callback: Callback) -> None:
        self._loop = loop
        self.when = when
        self.callback: Callback | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None  # the heap drops it when its time comes, or when there are many
            self._loop.cancelled()


class _Listener:
    """Accepts in its account's time: those who come are paid for by whose port they come to, let in or not."""

    def __init__(
        self,
        loop: EpollLoop,
        sock: socket.socket,
        accept: Callable[[Connection], FrameProtocol | None],
        preface: Preface | None,
        *,
        tls: bool,
        account: str,
        wait_s: Callable[[], float] | None,
    ) -> None:
        self._loop, self._socket, self._accept, self._tls = loop, sock, accept, tls
        self._wait_s = wait_s
        self._account = loop.accounts.of(account)
        self._in_queue = False
        self.address: tuple[str, int] = sock.getsockname()[:2]
        self._prefaces = None if preface is None else Prefaces(loop, preface, self.address, self._begin)

    def close(self) -> None:
        if self._prefaces is not None:
            self._prefaces.close()
        if self._socket.fileno() >= 0:
            self._loop.forget(self._socket.fileno())
            self._socket.close()

    def _pause(self, seconds: float) -> None:
        """Nobody is accepted for a while: whoever waits would be reported in every turn."""
        self._loop.forget(self._socket.fileno())
        self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.watch(self._socket.fileno(), _IN, self.ready)

    def ready(self, _events: int) -> None:
        """What epoll calls, in every turn until nobody waits."""
        if not self._in_queue:
            self._in_queue = True
            self._loop.accounts.ready(self._account, self._serve)

    def _serve(self) -> None:
        self._in_queue = False
        if self._socket.fileno() < 0:
            return
        begin = self._begin if self._prefaces is None else self._prefaces.begin
        clock = self._loop.clock
        until = clock.monotonic() + _ACCEPTING_S
        for _ in range(_MAX_ACCEPTS_PER_TURN):
            if self._wait_s is not None and (seconds := self._wait_s()) > 0.0:
                self._pause(min(max(seconds, _LEAST_PAUSE_S), _LONGEST_PAUSE_S))
                return
            try:
                sock, peer = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._loop.report(f"cannot accept: {error.strerror}")
                    self._pause(_LONGEST_PAUSE_S)
                    return
                continue
            begin(sock, peer[:2])
            if clock.monotonic() > until:
                return

    def _begin(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        """A connection of this peer, whoever the socket says it is."""
        began = self._loop.clock.monotonic()
        connection = self._loop.adopt(sock, peer, tls=self._tls)
        protocol = self._accept(connection)
        if protocol is None:
            connection.abandon()
        else:
            connection.start(protocol)
        self._loop.accounts.charge(self._account, self._loop.clock.monotonic() - began)


class _Connecting:
    """A socket on its way to a peer."""

    def __init__(
        self,
        loop: EpollLoop,
        sock: socket.socket,
        peer: tuple[str, int],
        opened: Callable[[Connection], FrameProtocol],
        failed: Callable[[str], None],
        tls: TlsClient | None,
    ) -> None:
        self._loop, self._socket, self._peer = loop, sock, peer
        self._opened, self._failed, self._tls = opened, failed, tls
        self._greeting: TlsConnection | None = None  # connected, and its handshake is under way

    def ready(self, _events: int) -> None:
        self._loop.forget(self._socket.fileno())
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._socket.close()
            self._failed(os.strerror(code))
            return
        if self._tls is not None:
            self._greeting = TlsConnection(self._loop, self._loop.prepared(self._socket), self._peer, trusted=True)
            self._greeting.greet(self._tls, self._secured, self._insecure)
            return
        connection = self._loop.adopt(self._socket, self._peer, trusted=True)
        connection.start(self._opened(connection))

    def _secured(self, connection: Connection) -> FrameProtocol:
        self._greeting = None
        return self._opened(connection)

    def _insecure(self, reason: str) -> None:
        if self._greeting is not None:  # else it was given up
            self._greeting = None
            self._failed(reason)

    def give_up(self) -> None:
        greeting, self._greeting = self._greeting, None
        if greeting is not None:
            greeting.close()
            return
        if self._socket.fileno() >= 0 and self._loop.handles(self):
            self._loop.forget(self._socket.fileno())
            self._socket.close()


class EpollLoop:
    """The loop. `run` returns after `stop`."""

    def __init__(self, clock: Clock, congestion_control: str = "") -> None:
        self.clock = clock
        self.arena = Arena()
        self.large_memory = LargeMemory()
        self._congestion_control = congestion_control.encode()
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, _Timer]] = []
        self._serial = count()
        self._soon: deque[Callback] = deque()
        self._turn_end: list[Callback] = []
        self._unsent: list[Sender] = []
        self._foreign: deque[Callback] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._running = False
        self._complained = (0, 0)  # in which second, how often
        self._cancelled = 0  # timers in the heap that will do nothing
        self._scratch = memoryview(b"")
        self.cold_reads: ColdReads | None = None  # without, what is sent from files is taken to be in the page cache
        self.accounts = Accounts(clock.monotonic, self._broken)
        self.turns = Turns(self.report)
        self.turn_number = 0
        self.refusals = Refusals(clock.monotonic, self.report)
        self.watch(self._wake, _IN, self._woken)

    # --- scheduling ---------------------------------------------------------------------------------------------------

    def call_later(self, delay_s: float, callback: Callback) -> _Timer:
        """Run once after `delay_s` seconds.

        A moment that has passed is now: one that is set again and again in the past would hold the loop forever.
        """
        timer = _Timer(self, self.clock.monotonic() + max(delay_s, 0.0), callback)
        heapq.heappush(self._timers, (timer.when, next(self._serial), timer))
        return timer

    def cancelled(self) -> None:
        """A timer was cancelled. When most are, those that are far off go too: they would only pile up."""
        self._cancelled += 1
        timers = self._timers
        if self._cancelled > _MANY_CANCELLED and self._cancelled > len(timers) // 2:
            timers[:] = [entry for entry in timers if entry[2].callback is not None]
            heapq.heapify(timers)
            self._cancelled = 0

    def call_soon(self, callback: Callback) -> None:
        """Run in the next turn."""
        self._soon.append(callback)

    def at_turn_end(self, callback: Callback) -> None:
        """Run once, before this turn's output goes out."""
        self._turn_end.append(callback)

    def call_threadsafe(self, callback: Callback) -> None:
        """From any thread: run on the loop, soon."""
        self._foreign.append(callback)
        os.eventfd_write(self._wake, 1)

    def _woken(self, _events: int) -> None:
        os.eventfd_read(self._wake)
        while self._foreign:
            self._call(self._foreign.popleft())

    # --- sockets ------------------------------------------------------------------------------------------------------

    def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Connection], FrameProtocol | None],
        preface: Preface | None = None,
        backlog: int = 512,
        *,
        tls: bool = False,
        account: str = INTERNAL,
        wait_s: Callable[[], float] | None = None,
    ) -> _Listener:
        """As `doors.Loop` says it."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(backlog)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        listener = _Listener(self, sock, accept, preface, tls=tls, account=account, wait_s=wait_s)
        self.watch(sock.fileno(), _IN, listener.ready)
        return listener

    def connect(
        self,
        host: str,
        port: int,
        opened: Callable[[Connection], FrameProtocol],
        failed: Callable[[str], None],
        tls: TlsClient | None = None,
    ) -> Callback:
        """Connect; `opened` or `failed` is called later. Returns how to give up."""
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        code = sock.connect_ex((host, port))
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            reason = os.strerror(code)
            self.call_soon(lambda: failed(reason))
            return lambda: None
        connecting = _Connecting(self, sock, (host, port), opened, failed, tls)
        self.watch(sock.fileno(), _OUT, connecting.ready)
        return connecting.give_up

    def adopt(
        self, sock: socket.socket, peer: tuple[str, int], *, trusted: bool = False, tls: bool = False
    ) -> SocketConnection:
        """A connection over a connected socket; it reads once started."""
        return (TlsConnection if tls else SocketConnection)(self, self.prepared(sock), peer, trusted=trusted)

    def prepared(self, sock: socket.socket) -> socket.socket:
        """A connected socket with the options that all have."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._congestion_control:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._congestion_control)
        return sock

    def scratch(self) -> memoryview:
        """Memory for the length of one call: what came from a wire before it is decrypted."""
        if not self._scratch:
            self._scratch = memoryview(bytearray(MOST_RECEIVED_BYTES))
        return self._scratch

    def watch(self, fd: int, events: int, handler: Callable[[int], None]) -> None:
        """Call `handler` with the events that epoll reports for `fd`."""
        self._handlers[fd] = handler
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def handles(self, owner: object) -> bool:
        """Whether something is still watched for `owner`."""
        return any(getattr(handler, "__self__", None) is owner for handler in self._handlers.values())

    def will_send(self, connection: Sender) -> None:
        """Send this connection's output at the end of the turn."""
        self._unsent.append(connection)

    def charge_to(self, account: str, bucket: TokenBucket | None) -> None:
        """From now on what is worked for an account is charged to this bucket, in microseconds."""
        self.accounts.of(account).loop_bucket = bucket

    def forget_account(self, account: str) -> None:
        """Its instance is gone from this broker."""
        self.accounts.forget(account)

    def when_due(self, account: str, callback: Callback) -> None:
        """Run for an account: at once if this turn has done so a few times only, else when the account's time comes."""
        if self.accounts.may_run(self.accounts.known(account)):
            callback()
        else:
            self.accounts.ready(self.accounts.known(account), callback)

    def worked_for(self, account: str, seconds: float) -> None:
        """Something else than a connection has used the loop."""
        self.accounts.charge(self.accounts.known(account), seconds)

    def share_of(self, account: str) -> float:
        """Of the time in a turn that is for long work: half of it for a greedy account while another tenant comes as well."""
        return self.accounts.share(self.accounts.known(account))

    def will_write(self, account: str, size: int) -> None:
        """What came in an earlier turn is written at the end of this one."""
        self.accounts.brought(self.accounts.known(account), size)

    def worked_s(self, account: str) -> float:
        """Since it was made; 0: there is none."""
        return self.accounts.spent_s(account)

    def charge(self, connection: Sender, began: float) -> float:
        """The loop has worked for a connection since then; returns the present."""
        now = self.clock.monotonic()
        self.accounts.charge(connection.payer, now - began)
        return now

    def take_load(self) -> Load:
        """What the loop did since this was asked last."""
        figures = self.turns.take()
        accounts = self.accounts.all()
        cut = {each.name: each.cut_connections for each in accounts if each.cut_connections}
        too_large = {each.name: each.too_large for each in accounts if each.too_large}
        return Load(figures.longest_s, figures.longest_of, figures.busy_s, cut, too_large)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Turn until `stop`."""
        self._running = True
        poll, handlers, accounts, clock = self._epoll.poll, self._handlers, self.accounts, self.clock.monotonic
        while self._running:
            events_of = poll(self._patience())
            began = clock()
            self.turn_number += 1
            for fd, events in events_of:
                handler = handlers.get(fd)
                if handler is not None:
                    try:
                        handler(events)
                    except Exception:  # noqa: BLE001 - one connection's bug must not stop the others
                        self._broken(getattr(handler, "__self__", None))
            if self._timers:
                self._run_timers()
            due = len(self._soon)
            if accounts.is_busy:
                accounts.serve(self.end_turn)
            self.end_turn()
            if due:  # long work above all: connections served in this turn have their answers before it
                for _ in range(due):
                    self._call(self._soon.popleft())
                self.end_turn()
            if self.large_memory.is_leaving:
                self.large_memory.give_back()
            ended = clock()
            self.turns.ended(ended, ended - began, accounts.end_turn(ended))

    def stop(self) -> None:
        """Let `run` return after this turn."""
        self._running = False

    def end_turn(self) -> None:
        """Run the turn-end callbacks, send, and free the arena."""
        follows = False
        while self._turn_end or self._unsent:
            for _ in range(_PASSES_BEFORE_SENDING):
                if not self._turn_end:
                    break
                callbacks, self._turn_end = self._turn_end, []
                began = self.clock.monotonic()
                for callback in callbacks:
                    self._call(callback)
                self.accounts.charge_turn_end(self.clock.monotonic() - began, follows=follows)
                follows = True
            unsent, self._unsent = self._unsent, []
            if unsent:
                self._flush(self.accounts.modest_first(unsent))
        self.arena.reset()

    def _flush(self, unsent: list[Sender]) -> None:
        began = self.clock.monotonic()
        for connection in unsent:
            if self.accounts.may_send(connection.payer):
                try:
                    connection.flush()
                except Exception:  # noqa: BLE001 - one connection's bug must not stop the others
                    self._broken(connection)
                began = self.charge(connection, began)
            else:
                connection.put_off()

    def close(self) -> None:
        """Close every socket that is still watched, and the loop's own descriptors. Only after `run` has returned."""
        for handler in list(self._handlers.values()):
            owner = getattr(handler, "__self__", None)
            if isinstance(owner, (_Listener, SocketConnection)):
                owner.close()
            elif isinstance(owner, _Connecting):
                owner.give_up()
        self._epoll.close()
        os.close(self._wake)

    def _patience(self) -> float:
        if self._soon or self._foreign or self.accounts.is_busy or self.large_memory.is_leaving:
            return 0
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        return min(_MOST_PATIENCE_S, max(0.0, timers[0][0] - self.clock.monotonic())) if timers else -1

    def _run_timers(self) -> None:
        now = self.clock.monotonic()
        timers = self._timers
        while timers and timers[0][0] <= now:
            timer = heapq.heappop(timers)[2]
            callback, timer.callback = timer.callback, None  # who keeps a timer that has fired is no cycle (`garbage`)
            if callback is not None:
                self._call(callback)

    def _call(self, callback: Callback) -> None:
        try:
            callback()
        except Exception:  # noqa: BLE001 - a bug in one callback must not stop the broker
            self._complain()

    def _complain(self) -> None:
        """Of an exception; not of each where a peer causes them at will: it would fill the disk."""
        second = int(self.clock.monotonic())
        if second != self._complained[0]:
            self._complained = (second, 0)
        self._complained = (second, self._complained[1] + 1)
        if self._complained[1] <= _COMPLAINTS_PER_SECOND:
            self.report(traceback.format_exc())

    def _broken(self, owner: object) -> None:
        self._complain()
        if isinstance(owner, SocketConnection):
            self._call(owner.close)  # it tells others, which may have the same bug

    @staticmethod
    def report(text: str) -> None:
        """Say something on standard error, where the supervisor keeps logs."""
        print(text.rstrip(), file=sys.stderr, flush=True)
