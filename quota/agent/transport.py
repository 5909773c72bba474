"""The agent's line to the active master, over a loop that the broker hands in. No socket, no clock of its own.

`MasterLink` keeps at most one connection. Whoever watches ZooKeeper's ``/sluice/master`` calls `set_master`; without a
master the link is quiet, and buckets fall back to initial shares as leases expire.

======================  ================================================================================================
on connecting           the hello with the broker's credential, and a report of everything at once
every 100 ms            the agent's tick; a report where one is due (built and dropped while there is no connection, so
                        that the first report after a gap does not smear its flow over the gap)
closed, or refused      again after 0.1, 0.2, 0.4 … 2 s; an answer resets the pause
a report                what has changed; in pieces, with the loop's other work between them where there are many instances
no answer for 5 s       the connection is closed and opened again: a peer may be gone without a word
======================  ================================================================================================

The door that the broker gives (`LoopDoor`) may deliver any pieces of the stream to `on_data`; a loop that cuts frames
by their 4-byte length already puts the length back in front (`quota.wire.frame`) and passes whole frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

from quota.agent.agent import Agent, InstanceFacts
from quota.contracts.grant import Grants
from quota.contracts.instance import ContractError
from quota.contracts.report import Absent, LoopLoad
from quota.contracts.requests import Told
from quota.steps import Steps
from quota.wire import Decoder, Hello, WireError, frame

TICK_S = 0.1
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
NO_ANSWER_S = 5.0


class Conn(Protocol):
    """A connection, or one that is being made."""

    def send(self, data: bytes) -> None:
        """Queue bytes. Called between `on_open` and `on_closed` only."""
        ...

    def close(self) -> None:
        """Close, or give up connecting. Harmless twice. `on_closed` may follow or not."""
        ...


class Timer(Protocol):
    """A call that has not been made yet."""

    def cancel(self) -> None:
        """It will not be made."""
        ...


class LoopDoor(Protocol):
    """What the broker's loop offers. Every callback is called on the loop, never from inside these methods."""

    def connect(
        self,
        host: str,
        port: int,
        on_open: Callable[[], None],
        on_data: Callable[[bytes], None],
        on_closed: Callable[[], None],
    ) -> Conn:
        """Connect. `on_closed` is called once where the connection cannot be made or the peer ends it."""
        ...

    def call_later(self, seconds: float, fn: Callable[[], None]) -> Timer: ...

    def now(self) -> float:
        """Monotonic seconds."""
        ...


Facts = Callable[[], Iterable[tuple[str, InstanceFacts]]]
Load = Callable[[], LoopLoad | None]


class RequestSteps(Protocol):
    """What is told of requests, in pieces."""

    def __call__(self, *, is_whole: bool) -> Steps[Told]:
        """`is_whole`: in a report that names everything."""
        ...


Log = Callable[[str], None]


def _nobody() -> Absent:
    """Nobody is missed."""
    return {}


def _no_requests(*, is_whole: bool) -> Steps[Told]:
    """Nobody counts."""
    del is_whole
    yield from ()
    return Told({}, None)


def _no_load() -> None:
    """Nobody measures."""


class MasterLink:
    """See the file's text. `facts`, `load` and `requests` are called for every report; `log` gets a line of what goes wrong."""

    def __init__(
        self,
        door: LoopDoor,
        agent: Agent,
        *,
        broker: int,
        secret: str,
        facts: Facts,
        log: Log,
        load: Load = _no_load,
        absent: Callable[[], Absent] = _nobody,
        requests: RequestSteps = _no_requests,
    ) -> None:
        self._door = door
        self._load = load
        self._absent = absent
        self._requests = requests
        self._agent = agent
        self._hello = frame(Hello(secret, broker).to_json())
        self._facts = facts
        self._log = log
        self._master: tuple[str, int] | None = None
        self._conn: Conn | None = None
        self._open = False
        self._attempt = 0  # counts connections: callbacks of an earlier one are stale
        self._decoder = Decoder()
        self._pause_s = FIRST_PAUSE_S
        self._waiting_since: float | None = None
        self._retry: Timer | None = None
        self._tick: Timer | None = None
        self._making: Steps[None] | None = None  # a report

    @property
    def connected(self) -> bool:
        """Whether a connection to the master is open."""
        return self._open

    def start(self) -> None:
        """Begin ticking. Connections follow `set_master`."""
        self._tick = self._door.call_later(TICK_S, self._on_tick)

    def stop(self) -> None:
        """End everything; nothing is called afterwards."""
        if self._tick:
            self._tick.cancel()
            self._tick = None
        self._master = None
        self._making = None
        self._drop()

    def set_master(self, host: str | None, port: int = 0, epoch: int = 0) -> None:
        """The active master's report address and election epoch; None: there is none at the moment."""
        self._agent.see_epoch(epoch)
        master = None if host is None else (host, port)
        if master == self._master:
            return
        self._master = master
        self._pause_s = FIRST_PAUSE_S
        self._drop()
        if master:
            self._connect()

    # --- connection ---------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._retry = None
        if self._master is None:
            return
        self._attempt += 1
        attempt = self._attempt
        self._decoder = Decoder()
        host, port = self._master
        self._conn = self._door.connect(
            host,
            port,
            lambda: self._on_open(attempt),
            lambda data: self._on_data(attempt, data),
            lambda: self._on_closed(attempt, "the master closed the connection, or cannot be reached"),
        )

    def _drop(self) -> None:
        self._attempt += 1
        self._open = False
        self._waiting_since = None
        if self._retry:
            self._retry.cancel()
            self._retry = None
        if self._conn:
            self._conn.close()
            self._conn = None

    def _on_open(self, attempt: int) -> None:
        if attempt == self._attempt and self._conn:
            self._open = True
            self._conn.send(self._hello)
            self._agent.begin_anew()
            self._begin_report()  # one that is being made is not for this master

    def _on_data(self, attempt: int, data: bytes) -> None:
        if attempt != self._attempt:
            return
        try:
            for document in self._decoder.feed(data):
                self._on_document(document)
        except (WireError, ContractError) as error:
            self._on_closed(attempt, str(error))

    def _on_document(self, document: dict[str, Any]) -> None:
        if document.get("type") != "grants":
            raise WireError("the master sent something else than grants")
        self._waiting_since = None
        self._pause_s = FIRST_PAUSE_S
        if not self._agent.apply(Grants.from_document(document), self._door.now()):
            raise WireError("grants of a master that was replaced")

    def _on_closed(self, attempt: int, reason: str) -> None:
        if attempt != self._attempt:
            return
        self._log(f"master {self._master}: {reason}; again in {self._pause_s:.1f} s")
        self._drop()
        self._retry = self._door.call_later(self._pause_s, self._connect)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _on_tick(self) -> None:
        self._tick = self._door.call_later(TICK_S, self._on_tick)
        now = self._door.now()
        self._agent.tick(now)
        if self._open and self._waiting_since is not None and now - self._waiting_since > NO_ANSWER_S:
            self._on_closed(self._attempt, "no answer")
        if self._making is None and self._agent.report_due(now):
            self._begin_report()

    # --- reports ------------------------------------------------------------------------------------------------------

    def _begin_report(self) -> None:
        self._making = self._report_steps()
        self._go_on(self._making)

    def _go_on(self, making: Steps[None]) -> None:
        """One piece, and the others in later turns; of one that another has taken the place of, none."""
        if making is not self._making:
            return
        self._making = None
        try:
            next(making)
        except StopIteration:
            return
        self._making = making
        self._door.call_later(0.0, lambda: self._go_on(making))

    def _report_steps(self) -> Steps[None]:
        attempt, began = self._attempt, self._door.now()
        report = yield from self._agent.report_steps(self._facts(), self._door.now)
        windows, until = yield from self._requests(is_whole=not report.partial)
        whole = replace(report, loop=self._load(), absent=self._absent(), requests=windows, requests_until=until)
        document = yield from whole.json_steps()
        if self._open and self._conn and attempt == self._attempt:
            self._conn.send(frame(document))
            if self._waiting_since is None:
                self._waiting_since = began
