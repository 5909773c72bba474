"""The door to the loop: its clock, timers, connections and listeners.

A *turn* of the loop: all frames that are ready are handed to their connections, then the turn-end callbacks run (group
commit of what was appended), then what was sent goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ssl import SSLContext

    from dataplane.doors.basics import Buffer, Callback, Clock, Timer
    from dataplane.doors.files import File
    from dataplane.tasks import Future
    from quota.core.bucket import TokenBucket


class FileRange(Protocol):
    """Bytes of a file, to be sent without passing through this process."""

    file: File
    position: int
    size: int
    sent: Callable[[int], None] | None
    """Called once, with the bytes of the range that have left: all of them, or fewer when the connection ended first
    (not at all where none had)."""


@dataclass(frozen=True, slots=True)
class TlsServer:
    """How connections become secure at our end."""

    context: SSLContext
    handshakes_per_s: int  # that begin, of all connections of the account
    beside: Callable[[Callable[[], bool]], Future[bool]] | None
    """Runs a step of a handshake beside the loop (`Background.run`); None: steps are quick enough for the loop."""


class Connection(Protocol):
    """A byte stream whose frames (a 4-byte big-endian length in front) the loop cuts for its protocol."""

    peer: tuple[str, int]
    local: tuple[str, int]
    max_frame_bytes: int  # a peer that announces a larger frame is cut off
    account: str  # whose time, memory and reads from the disk are limited together; "": the cluster's own

    def send(self, parts: Sequence[Buffer | FileRange]) -> None:
        """Queue parts in order; they go out at the end of the turn. The caller does not change buffers afterwards."""
        ...

    def close(self) -> None:
        """Close at once; `closed` is called at the end of the turn. What was queued and not sent is dropped."""
        ...

    def close_after_send(self) -> None:
        """Close once everything queued has left."""
        ...

    def too_large(self, size: int, limit: int) -> None:
        """Close at once because of a request of this size, where `limit` bytes may come: that is said, and counted."""
        ...

    def pause_reading(self) -> None:
        """No more frames until `resume_reading`; frames already received wait."""
        ...

    def resume_reading(self) -> None:
        """Undo `pause_reading`."""
        ...

    def pause_for_limit(self) -> None:
        """As `pause_reading`, because of a limit: until `resume_now` others of the account are read frame by frame."""
        ...

    def resume_now(self) -> None:
        """As `resume_reading`; the first frame that waits, if it is here, is handed out before this returns."""
        ...

    def hold(self, more: int) -> None:
        """So many bytes more (or fewer) are kept for this connection by its protocol: they count as the account's."""
        ...

    def peer_has_finished(self) -> bool:
        """Whether the peer has finished sending, which goes unnoticed while nothing is read."""
        ...

    def queued_bytes(self) -> int:
        """What was queued and has not left."""
        ...

    def secure(self, server: TlsServer, secured: Callable[[bytes | None], str | None]) -> None:
        """Of a connection to a listener of TLS, before it starts: how, and who is told when the handshake is over.

        `secured` is given the client's certificate, as DER, if it has shown one, and says why the client may not stay.
        """
        ...


class FrameProtocol(Protocol):
    """What sits on a connection.

    One that also has `begins(key, size, behind)` is asked before a frame is taken from the socket:
    the first two bytes as a number (-1: there are not two), the size without the length, and how many bytes are here behind
    it. If it says no it has paused the connection, and is asked again when that is read on. A frame that began is not asked
    about again. Its `settle()` is called when what was behind is handed out, or is not going to be now.
    """

    def frame(self, frame: memoryview) -> None:
        """One frame, without its length. The memory is valid until the end of the turn only."""
        ...

    def closed(self, reason: str) -> None:
        """The connection is gone, whoever closed it. Called exactly once."""
        ...


class Said(Protocol):
    """A whole preface."""

    @property
    def size(self) -> int:
        """In bytes; what is behind them is not of it."""
        ...

    @property
    def source(self) -> tuple[str, int] | None:
        """Whose the connection is; None: the socket's own peer's."""
        ...


class Preface(Protocol):
    """What comes on a connection before anything else, and says whose it is: a load balancer speaks for its client."""

    @property
    def most_bytes(self) -> int: ...

    @property
    def within_s(self) -> float: ...

    def admits(self, peer: str) -> bool:
        """Whether the peer at this address may say one."""
        ...

    def read(self, data: bytes) -> Said | None:
        """What has come so far; None: more is needed, and all of it is of the preface. Raises ValueError with why not."""
        ...


class Listener(Protocol):
    """A listening socket; closing it leaves its connections open."""

    address: tuple[str, int]

    def close(self) -> None:
        """Stop accepting. Connections that were accepted stay."""
        ...


class Load(NamedTuple):
    """How busy a loop was."""

    longest_turn_s: float
    longest_of: str  # the account that had most of it; "": the cluster's own
    busy_s: float
    cut: dict[str, int]  # connections that were cut off because their account held too much, since the beginning
    too_large: dict[str, int]  # requests that were larger than may come, likewise


class Loop(Protocol):
    """Scheduling and sockets."""

    clock: Clock

    def call_later(self, delay_s: float, callback: Callback) -> Timer:
        """Run once, `delay_s` seconds of monotonic time from now or a little later."""
        ...

    def call_soon(self, callback: Callback) -> None:
        """Run in the next turn (which is not delayed)."""
        ...

    def at_turn_end(self, callback: Callback) -> None:
        """Run once when this turn's frames have been handled and before its answers go out."""
        ...

    def call_threadsafe(self, callback: Callback) -> None:
        """The only method that other threads may call: run on the loop, soon."""
        ...

    def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Connection], FrameProtocol | None],
        preface: Preface | None = None,
        *,
        tls: bool = False,
    ) -> Listener:
        """Listen; `accept` returns the protocol of a new connection, or None to close it at once. Raises OSError.

        With a preface that is read first, and `Connection.peer` is whom it names; without one, the connection is closed.
        With `tls`, `accept` has to call the connection's `secure`.
        """
        ...

    def charge_to(self, account: str, bucket: TokenBucket | None) -> None:
        """From now on what the loop works for an account is charged to this bucket, in microseconds."""
        ...

    def forget_account(self, account: str) -> None:
        """Its instance is gone from this broker: what comes late is nobody's."""
        ...

    def when_due(self, account: str, callback: Callback) -> None:
        """Run for an account: at once if this turn has done so a few times only, else when the account's time comes."""
        ...

    def worked_for(self, account: str, seconds: float) -> None:
        """Something else than a connection has used the loop for an account."""
        ...

    def take_load(self) -> Load:
        """What the loop did since this was asked last."""
        ...

    def connect(
        self, host: str, port: int, opened: Callable[[Connection], FrameProtocol], failed: Callable[[str], None]
    ) -> Callback:
        """Connect; exactly one of `opened` and `failed` is called, later. Returns how to give up (then neither is)."""
        ...
