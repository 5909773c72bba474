"""The door to ZooKeeper: what is written together, and what may be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dataplane.doors.basics import Callback
    from dataplane.tasks import Future


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
