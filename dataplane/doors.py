"""The five doors through which a broker touches the world: clock, network, files, ZooKeeper, background work.

Everything else in `dataplane` is a function of what comes in through them, so a whole cluster can run in one process on
a virtual clock, with a faulty network and disk, from a seed that replays bit for bit (`tests/simulation`). Randomness and
ids are drawn from `Doors.random`. Nothing else may call `time`, `socket`, `open`, `threading`, `random` or kazoo.

Real doors: `dataplane.clock`, `dataplane.network.loop`, `dataplane.storage.files`, `dataplane.cluster.zookeeper`,
`dataplane.background`. One thread runs the loop; every callback below is called on it.

A *turn* of the loop: all frames that are ready are handed to their connections, then the turn-end callbacks run (group
commit of what was appended), then what was sent goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from dataplane.tasks import Future

if TYPE_CHECKING:
    from ssl import SSLContext

    from quota.core.bucket import TokenBucket

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview
Callback = Callable[[], None]


# --- clock ------------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """Two clocks: the wall's, for timestamps that people and clients see, and one that never goes back, for durations."""

    def now_ms(self) -> int:
        """Wall time, milliseconds since 1970 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""
        ...


# --- network ----------------------------------------------------------------------------------------------------------


class Timer(Protocol):
    """A callback that has not run yet."""

    def cancel(self) -> None:
        """It will not run. Harmless when it has."""
        ...


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
    takes_plaintext: bool = False  # a connection that begins with anything but a handshake is served without TLS
    looks_at: Callable[[bytes], object] | None = None
    """Given the certificate that a client has shown and that was verified, as DER, where the last step of the handshake was
    taken: beside the loop, if steps are. What takes long about it can be done there, before anybody waits for it."""


@dataclass(frozen=True, slots=True)
class TlsClient:
    """How a connection that we open becomes secure."""

    context: SSLContext
    beside: Callable[[Callable[[], bool]], Future[bool]] | None  # as of `TlsServer`
    refusal: Callable[[bytes | None], str | None]
    """Given the certificate that the other side has shown and that was verified, as DER: why it is not believed, or None."""


class Connection(Protocol):
    """A byte stream whose frames (a 4-byte big-endian length in front) the loop cuts for its protocol."""

    peer: tuple[str, int]
    local: tuple[str, int]
    max_frame_bytes: int  # a peer that announces a larger frame is cut off
    account: str  # whose time, memory and reads from the disk are limited together; "": the cluster's own
    received_bytes: int  # since it began; over TLS, what was encrypted

    @property
    def sent_bytes(self) -> int:
        """Likewise: what is in the hands of the system."""
        ...

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

    def lasting(self, frame: memoryview) -> memoryview:
        """A frame that was just handed out, in memory that nobody writes to after this turn: where it is, or a copy."""
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
    turn_number: int
    """Of the turn that is running, for what is done so often in a turn: callbacks at its end bring more callbacks at its end."""

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
        account: str = "",
        wait_s: Callable[[], float] | None = None,
    ) -> Listener:
        """Listen; `accept` returns the protocol of a new connection, or None to close it at once. Raises OSError.

        With a preface that is read first, and `Connection.peer` is whom it names; without one, the connection is closed.
        With `tls`, `accept` has to call the connection's `secure`. Accepting is done in the time of `account`, by default
        the cluster's own. `wait_s` is asked before each connection for how long nobody is to be accepted: those who come
        meanwhile wait in the system's line, and cost the loop nothing.
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

    def share_of(self, account: str) -> float:
        """Which part of a turn's time for long work is an account's: less than 1 for a greedy one while others come."""
        ...

    def will_write(self, account: str, size: int) -> None:
        """So many bytes that did not come in this turn are written at its end: who they are of is charged for its end."""
        ...

    def worked_s(self, account: str) -> float:
        """Seconds of the loop that were used for an account since it was made; 0: there is none."""
        ...

    def take_load(self) -> Load:
        """What the loop did since this was asked last."""
        ...

    def connect(
        self,
        host: str,
        port: int,
        opened: Callable[[Connection], FrameProtocol],
        failed: Callable[[str], None],
        tls: TlsClient | None = None,
    ) -> Callback:
        """Connect; exactly one of `opened` and `failed` is called, later. Returns how to give up (then neither is).

        With `tls` it is opened when the handshake is over. What the other side thinks of our certificate may come after that,
        and then it ends the connection.
        """
        ...


# --- files ------------------------------------------------------------------------------------------------------------


class File(Protocol):
    """An open file. Every method may raise OSError: the disk is full, or failing."""

    path: str

    def size(self) -> int: ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end in one call; returns the bytes written (all of them)."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        ...

    def sync(self) -> None:
        """Force to disk (blocks: call it through Background)."""
        ...

    def fileno(self) -> int:
        """For sendfile. Simulated files have none and raise OSError."""
        ...

    def close(self) -> None:
        """Close. Harmless twice. Ranges that are still being sent keep the file readable."""
        ...


class NotInMemoryError(Exception):
    """These bytes would have to come from the disk, and whoever asked was not to wait for it. Nothing is wrong."""

    def __init__(self, file: File, position: int, size: int) -> None:
        super().__init__(f"{size} bytes of {file.path} at {position}")
        self.file, self.position, self.size = file, position, size


class Files(Protocol):
    """The file system below the data directories."""

    def at_once(self) -> AbstractContextManager[None]:
        """Inside of it, on the loop, reading what would have to be waited for raises NotInMemoryError instead."""
        ...

    def bring(self, account: str, missing: NotInMemoryError, done: Callback) -> None:
        """Read from the disk, beside the loop, what was missing; then call `done`. Accounts take turns."""
        ...

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending. Raises FileNotFoundError."""
        ...

    def read_file(self, path: str) -> bytes:
        """A whole small file. Raises FileNotFoundError."""
        ...

    def size(self, path: str) -> int:
        """Bytes in a file. Raises FileNotFoundError."""
        ...

    def modified_ms(self, path: str) -> int:
        """When a file's content was last changed, by the wall's clock. Raises FileNotFoundError."""
        ...

    def view(self, path: str) -> memoryview:
        """A whole file as memory that is only read, brought in as it is looked at.

        Valid whatever is done to the name; the file is replaced or removed, never changed in place. Holds a descriptor
        as long as the memory is referred to. Raises FileNotFoundError.
        """
        ...

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a small file atomically and durably (new file, fsync, rename, fsync of the directory)."""
        ...

    def put_file(self, path: str, data: bytes) -> None:
        """The same without syncing: after a power cut it may be the old one, the new one, or damaged."""
        ...

    def sync_below(self, path: str) -> None:
        """Force to disk what was written, created, renamed and removed anywhere below a directory. Blocks. Raises OSError."""
        ...

    def map(self, path: str, size: int) -> memoryview:
        """A file of `size` bytes as memory: what is written there survives the process, not a power cut.

        Created with zeros, or enlarged, as needed; its room on the disk is taken at once. Mapped again at a larger size,
        the earlier memory is not to be used any more. Raises OSError.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty where there is none."""
        ...

    def space(self, path: str) -> tuple[int, int]:
        """Bytes of the disk that a directory is on, and how many of them can still be written. Raises OSError."""
        ...

    def make_directory(self, path: str) -> None:
        """With parents; harmless when it exists."""
        ...

    def lock(self, path: str) -> None:
        """Hold a lock file, made as needed, against other processes; harmless twice. Raises BlockingIOError, OSError."""
        ...

    def unlock(self, path: str) -> None:
        """Let go; harmless when it is not held."""
        ...

    def sync_directory(self, path: str) -> None:
        """Force to disk which names the directory holds: after create, rename and remove. Blocks. Raises OSError."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """A file; harmless when it does not exist."""
        ...

    def remove_tree(self, path: str) -> None:
        """A directory and all below it; harmless when it does not exist."""
        ...

    def memory(self) -> str:
        """Names the memory that holds what was written and not synced; empty where nobody can tell.

        While the name is the same, nothing of that is lost, whichever processes died.
        """
        ...


# --- ZooKeeper --------------------------------------------------------------------------------------------------------


class ZooKeeperError(Exception):
    """A call did not succeed. Subclasses say why; the bare class means the connection or session was lost."""


class NoNodeError(ZooKeeperError):
    """The node, or its parent, does not exist."""


class NodeExistsError(ZooKeeperError):
    """There is a node at this path already."""


class BadVersionError(ZooKeeperError):
    """Compare-and-set failed: somebody wrote in between."""


class NotEmptyError(ZooKeeperError):
    """A node that is to go has children."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper knows of a node."""

    version: int
    czxid: int  # of the transaction that created it
    mzxid: int  # and of the one that changed it last
    ephemeral_owner: int
    child_changes: int = 0  # children that have been created, and deleted, in all its life


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node, as one part of a multi."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Operation of a multi. A version of -1 matches any."""

    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node, as one part of a multi."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """Operation of a multi: fails unless the node has this version."""

    path: str
    version: int


Operation = Create | SetData | Delete | Check


class ZooKeeper(Protocol):
    """One session at a time. Every call answers with a Future that is resolved on the loop.

    Watches fire once, on the loop, with no argument: read again, and watch again in the same call. They also fire when
    the session is lost, so a reader that reads again at every firing never sleeps through a change.
    """

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> Future[str]:
        """The path created. Raises NodeExistsError, NoNodeError."""
        ...

    def get(self, path: str, watch: Callback | None = None) -> Future[tuple[bytes, Stat]]:
        """Data and stat; the watch fires when either changes. Raises NoNodeError (and sets no watch)."""
        ...

    def exists(self, path: str, watch: Callback | None = None) -> Future[Stat | None]:
        """The stat, or None; the watch fires when the node appears, changes or goes."""
        ...

    def children(self, path: str, watch: Callback | None = None) -> Future[list[str]]:
        """Names, sorted; the watch fires when one comes or goes. Raises NoNodeError."""
        ...

    def set(self, path: str, data: bytes, version: int = -1) -> Future[Stat]:
        """Raises BadVersionError, NoNodeError."""
        ...

    def delete(self, path: str, version: int = -1) -> Future[None]:
        """Raises BadVersionError, NoNodeError, NotEmptyError."""
        ...

    def multi(self, operations: Sequence[Operation]) -> Future[list[Any]]:
        """All or nothing. Raises the error of the operation that failed. Results: path, Stat, None, None by kind."""
        ...

    def on_session(self, callback: Callable[[str], None]) -> None:
        """Called with "connected" (a new session), "suspended" (connection lost), "resumed" or "expired"."""
        ...

    def session_id(self) -> int:
        """Of the current session; 0 without one. Compare with Stat.ephemeral_owner."""
        ...

    def close(self) -> None:
        """End the session: ephemeral nodes go."""
        ...


# --- background work --------------------------------------------------------------------------------------------------


class Background(Protocol):
    """Work that would block the loop."""

    def run(self, work: Callable[[], T]) -> Future[T]:
        """What releases the GIL for its whole length: fsync, unlink, cold reads, codecs.

        The future is resolved on the loop.
        """
        ...

    def run_apart(self, work: Callable[[Callable[[int], None]], T], bytes_per_s: float) -> Future[T]:
        """What is Python, and long: in a process of its own, with what `work` was made of copied there.

        It gets a function to tell every number of bytes it has read or written; that sleeps, so that they are at most
        `bytes_per_s`. The process ends with ours, at whatever place it is then.
        """
        ...


@dataclass(frozen=True, slots=True)
class Doors:
    """All of them, as a broker gets them."""

    loop: Loop
    files: Files
    zookeeper: ZooKeeper
    background: Background
    random: Random

    @property
    def clock(self) -> Clock:
        return self.loop.clock
