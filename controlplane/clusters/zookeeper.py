"""The door to ZooKeeper: the one module of the control plane that imports kazoo.

`Tree` is what the rest asks of it: a tree of small documents with a version each, and writes that happen all or not at
all. Every call is bounded in time and raises ClusterUnavailable when ZooKeeper does not answer. Patience belongs to the
connection and not to the call: a page asks ten times, and is not to wait ten times for what is away. `tree(address)` gives
this process's connection to a cluster, made at the first call and made anew after a fork: a connection shared by two
processes would answer one with what the other asked. In a dry run it is one whose writes nobody else ever sees.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings
from kazoo import exceptions
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from controlplane.core import dry_runs
from controlplane.core.errors import ClusterUnavailable
from quota.contracts.zookeeper_login import NOBODY, Access
from quota.zookeeper.client import Client

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from controlplane.clusters.address import ClusterAddress

LOG = logging.getLogger(__name__)
TIMEOUT_S = 5.0
READ_TIMEOUT_S = 3.0
SILENT_TIMEOUT_S = 0.3  # while an answer is owed to somebody who has given up waiting for it
CONNECT_TIMEOUT_S = 4.0  # for a process's first call
RECONNECT_TIMEOUT_S = 1.0  # from the moment a connection was lost: who asks later is told at once


class VersionMismatch(Exception):  # noqa: N818  # an outcome its caller expects, not an error to show
    """Another writer was faster: a node had another version, existed already, was gone, or had got a child."""


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node; parents must exist.

    With `sequence`, a counter is appended to `path`, which must not end with a slash then: kazoo would drop it and
    number a neighbour of the directory.
    """

    path: str
    data: bytes
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Replace a node's data if it still has this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a node if it still has this version; -1 for any."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """Nothing is written unless a node has this version."""

    path: str
    version: int


Write = Create | Put | Delete | Check


class Tree(Protocol):
    """What this service asks of ZooKeeper."""

    def get(self, path: str) -> tuple[bytes, int] | None:
        """Data and version of a node; None if there is none."""
        ...

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        """`get` of each, in their order: all are asked before the first answer is waited for."""
        ...

    def children(self, path: str) -> list[str]:
        """Names below a node, sorted; empty if there is no such node."""
        ...

    def children_mark(self, path: str) -> Hashable:
        """Another value whenever the names below a node have changed, by whomever; cheap however many they are."""
        ...

    def ensure(self, path: str) -> None:
        """Make an empty node, and its parents."""
        ...

    def write(self, writes: Sequence[Write]) -> None:
        """All of it or nothing. Raises VersionMismatch."""
        ...


class KazooTree:
    """A tree on a real ZooKeeper, over one connection of kazoo's."""

    def __init__(self, hosts: str, access: Access = NOBODY) -> None:
        # No endless retries inside kazoo: a caller of ours has its own, and a request must come to an end.
        retry = KazooRetry(max_tries=-1, delay=0.1, max_delay=2, ignore_expire=True)
        self._client = Client(hosts, access, timeout=6.0, connection_retry=retry)
        self._connected = threading.Event()
        self._lost_s = time.monotonic()  # since when there is no connection
        self._owed: Any = None  # the answer that was waited for in vain
        self._client.add_listener(self._state_changed)
        self._client.start_async()

    def _state_changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._owed = None
            self._connected.set()
        elif self._connected.is_set():  # it is told twice: of the connection, and of the session
            self._lost_s = time.monotonic()
            self._connected.clear()

    def wait_connected(self, timeout_s: float) -> None:
        """Raises ClusterUnavailable if there has been no connection for so long; at once, if that is so already."""
        if not self._connected.wait(max(0.0, self._lost_s + timeout_s - time.monotonic())):
            raise ClusterUnavailable("the cluster's coordination service (ZooKeeper) does not answer")

    def close(self) -> None:
        """End the session."""
        self._client.stop()
        self._client.close()

    def _read(self, result: Any) -> Any:
        """The answer to a question. Answers come in their order: while one is owed, the next does not come sooner."""
        return self._ask(result, SILENT_TIMEOUT_S if self._is_owed() else READ_TIMEOUT_S)

    def _is_owed(self) -> bool:
        owed = self._owed
        return owed is not None and not owed.ready()

    def _ask(self, result: Any, timeout_s: float = TIMEOUT_S) -> Any:
        """The answer, bounded. A write has its time whatever is owed: it may be carried out although nobody waits for it."""
        try:
            return result.get(timeout=timeout_s)
        except KazooTimeoutError as error:
            if not self._is_owed():
                self._owed = result
            raise ClusterUnavailable("the cluster's coordination service (ZooKeeper) does not answer") from error
        except (exceptions.ConnectionLoss, exceptions.SessionExpiredError) as error:
            raise ClusterUnavailable("the cluster's coordination service (ZooKeeper) does not answer") from error
        except exceptions.ConnectionClosedError as error:
            raise ClusterUnavailable("the connection to ZooKeeper is closed") from error
        except exceptions.NoAuthError as error:
            self._client.complain(error)
            raise ClusterUnavailable("ZooKeeper does not let this process do that") from error

    def get(self, path: str) -> tuple[bytes, int] | None:
        self.wait_connected(RECONNECT_TIMEOUT_S)
        return self._node(self._client.get_async(path))

    def _node(self, result: Any) -> tuple[bytes, int] | None:
        try:
            data, stat = self._read(result)
        except exceptions.NoNodeError:
            return None
        return data, stat.version

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        self.wait_connected(RECONNECT_TIMEOUT_S)
        return [self._node(result) for result in [self._client.get_async(path) for path in paths]]

    def children(self, path: str) -> list[str]:
        self.wait_connected(RECONNECT_TIMEOUT_S)
        try:
            return sorted(self._read(self._client.get_children_async(path)))
        except exceptions.NoNodeError:
            return []

    def children_mark(self, path: str) -> Hashable:
        """See Tree. Synced first: another server of the ensemble may be behind what a broker has shown already."""
        self.wait_connected(RECONNECT_TIMEOUT_S)
        try:
            self._read(self._client.sync_async(path))
            stat = self._read(self._client.exists_async(path))
        except exceptions.NoNodeError:
            return None
        return None if stat is None else (stat.czxid, stat.cversion, stat.pzxid)

    def ensure(self, path: str) -> None:
        self.wait_connected(RECONNECT_TIMEOUT_S)
        self._ask(self._client.ensure_path_async(path))

    def write(self, writes: Sequence[Write]) -> None:
        self.wait_connected(RECONNECT_TIMEOUT_S)
        request = self._client.transaction()
        for item in writes:
            if isinstance(item, Create):
                request.create(item.path, item.data, sequence=item.sequence)
            elif isinstance(item, Put):
                request.set_data(item.path, item.data, version=item.version)
            elif isinstance(item, Check):
                request.check(item.path, item.version)
            else:
                request.delete(item.path, version=item.version)
        outcomes = self._ask(request.commit_async())
        errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        mismatch = (
            exceptions.BadVersionError,
            exceptions.NodeExistsError,
            exceptions.NoNodeError,
            exceptions.NotEmptyError,
        )
        for error in errors:  # those that did not fail themselves are RolledBackError or RuntimeInconsistency
            if isinstance(error, mismatch):
                raise VersionMismatch(str(error) or type(error).__name__) from error
        for error in errors:
            self._client.complain(error)
        if errors:
            raise ClusterUnavailable("ZooKeeper refused a write") from errors[0]


class TakenBack(dry_runs.Store):
    """A tree in a dry run: what is written there is read there, and nowhere else. It is refused as by the tree itself.

    What was read once is not asked for again: rows of the database may be locked by then.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._read: dict[str, tuple[bytes, int] | None] = {}
        self._names: dict[str, list[str]] = {}
        self._marks: dict[str, Hashable] = {}
        self._written: dict[str, tuple[bytes, int] | None] = {}  # None: it was removed

    def fork(self) -> TakenBack:
        """See Store."""
        return TakenBack(self)

    def get(self, path: str) -> tuple[bytes, int] | None:
        if path in self._written:
            return self._written[path]
        if path not in self._read:
            self._read[path] = self._tree.get(path)
        return self._read[path]

    def get_many(self, paths: Sequence[str]) -> list[tuple[bytes, int] | None]:
        unknown = [path for path in dict.fromkeys(paths) if path not in self._written and path not in self._read]
        if unknown:
            self._read.update(zip(unknown, self._tree.get_many(unknown), strict=True))
        return [self.get(path) for path in paths]

    def children(self, path: str) -> list[str]:
        if path not in self._names:
            self._names[path] = self._tree.children(path)
        names = set(self._names[path])
        for written, node in self._written.items():
            parent, _, name = written.rpartition("/")
            if parent == path:
                (names.discard if node is None else names.add)(name)
        return sorted(names)

    def children_mark(self, path: str) -> Hashable:
        if path not in self._marks:
            self._marks[path] = self._tree.children_mark(path)
        return self._marks[path], tuple((each, node is None) for each, node in self._written.items())

    def ensure(self, path: str) -> None:
        """It would be there: what is below it can be made."""

    def write(self, writes: Sequence[Write]) -> None:
        after = dict(self._written)
        for item, found in zip(writes, self.get_many([each.path for each in writes]), strict=True):
            node = after.get(item.path, found)
            version = -1 if node is None else node[1]
            if isinstance(item, Create):
                if not item.sequence:
                    _expect(item, fits=node is None)
                    after[item.path] = item.data, 0
                continue
            _expect(
                item,
                fits=node is not None and item.version in ((-1, version) if isinstance(item, Delete) else (version,)),
            )
            if not isinstance(item, Check):
                after[item.path] = (item.data, version + 1) if isinstance(item, Put) else None
        self._written = after


def _expect(item: Write, *, fits: bool) -> None:
    if not fits:
        raise VersionMismatch(f"{item.path} is not as it was read")


@contextmanager
def operators_client(hosts: str, access: Access) -> Iterator[Client]:
    """A client for `quota.zookeeper.securing`. Raises ClusterUnavailable where nobody answers in time."""
    client = Client(hosts, access, timeout=10.0)
    try:
        client.start(timeout=CONNECT_TIMEOUT_S)
        yield client
    except (KazooTimeoutError, exceptions.ConnectionLoss, exceptions.SessionExpiredError) as error:
        raise ClusterUnavailable("the cluster's coordination service (ZooKeeper) does not answer") from error
    finally:
        client.stop()
        client.close()


_connections: dict[tuple[int, str], KazooTree] = {}
"""By process id, since a forked child must find none of its parent's, and by ZooKeeper's hosts."""
_lock = threading.Lock()


def tree(address: ClusterAddress) -> Tree:
    """The tree of a cluster. Raises ClusterUnavailable."""
    found, scratch = connection(address), dry_runs.scratch()
    if scratch is None:
        return found
    rehearsed: Tree = scratch.setdefault(found, TakenBack(found))
    return rehearsed


def connection(address: ClusterAddress) -> Tree:
    """This process's own, as it is. Raises ClusterUnavailable."""
    key = os.getpid(), address.zookeeper_hosts
    with _lock:
        known = _connections.get(key)
        patience_s = RECONNECT_TIMEOUT_S if known else CONNECT_TIMEOUT_S
        if known is None:
            access = settings.ENVIRONMENT.zookeeper_access()
            known = _connections[key] = KazooTree(address.zookeeper_hosts, access)
    known.wait_connected(patience_s)
    return known
