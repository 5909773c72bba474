"""The real door to ZooKeeper, over kazoo. With `zookeeper_reads` the only module of the broker that imports it.

Who we are, and whose the nodes are that we make, is `quota.zookeeper.client`'s.

kazoo runs threads of its own; every answer, watch and state change is handed to the loop with `call_threadsafe` and
nothing else of ours runs on them. Reads of one turn of the loop share a request (`zookeeper_reads`). kazoo's retries of
calls are not used: a call whose connection breaks has failed, applied or not, and the caller decides. kazoo forgets its
watches and fires them when the connection is lost, which is the door's contract.

Reconnecting is kazoo's: the same session while it lives ("resumed"), a new one after it expired ("expired",
"connected"). Paths are prefixed here and not by kazoo, whose chroot must exist beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kazoo import exceptions
from kazoo.protocol.states import KazooState, ZnodeStat
from kazoo.retry import KazooRetry

from dataplane.cluster.zookeeper_reads import Answer, MultiRead, ReadsOfATurn
from dataplane.doors import (
    BadVersionError,
    Callback,
    Check,
    Create,
    Delete,
    Loop,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SetData,
    Stat,
    ZooKeeperError,
)
from dataplane.tasks import Future
from quota.contracts.zookeeper_login import NOBODY, Access
from quota.zookeeper.client import Client

T = TypeVar("T")

_ERRORS: tuple[tuple[type[Exception], type[ZooKeeperError]], ...] = (
    (exceptions.NoNodeError, NoNodeError),
    (exceptions.NodeExistsError, NodeExistsError),
    (exceptions.BadVersionError, BadVersionError),
    (exceptions.NotEmptyError, NotEmptyError),
)
_RECONNECT_FIRST_S = 0.05
_RECONNECT_LONGEST_S = 0.5


class KazooZooKeeper:
    """One session at a time; see `dataplane.doors.ZooKeeper`. Connects when `connect` is called, and then forever."""

    def __init__(
        self, loop: Loop, hosts: str, session_timeout_s: float, chroot: str = "", access: Access = NOBODY
    ) -> None:
        self._loop = loop
        self._chroot = "/" + chroot.strip("/") if chroot.strip("/") else ""
        self._session = 0
        self._closed = False
        self._listeners: list[Callable[[str], None]] = []
        retry = KazooRetry(max_tries=-1, delay=_RECONNECT_FIRST_S, max_delay=_RECONNECT_LONGEST_S)
        self._reads = ReadsOfATurn(loop, self._read_together)
        self._kazoo = Client(hosts, access, chroot=self._chroot, timeout=session_timeout_s, connection_retry=retry)
        self._kazoo.add_listener(self._on_kazoo_state)

    def connect(self) -> None:
        """Begin to connect; returns at once."""
        self._kazoo.start_async()

    # --- calls ----------------------------------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> Future[str]:
        return self._call(
            lambda: self._kazoo.create_async(
                self._full(path), bytes(data), ephemeral=ephemeral, sequence=sequential, makepath=parents
            ),
            self._own,
        )

    def get(self, path: str, watch: Callback | None = None) -> Future[tuple[bytes, Stat]]:
        if watch is None:
            return _converted(self._reads.read(self._full(path)), self._found)
        return self._call(
            lambda: self._kazoo.get_async(self._full(path), self._watcher(watch)),
            lambda found: (found[0], _stat(found[1])),
        )

    def exists(self, path: str, watch: Callback | None = None) -> Future[Stat | None]:
        if watch is None:
            return _converted(self._reads.read(self._full(path)), self._stat_found)
        return self._call(
            lambda: self._kazoo.exists_async(self._full(path), self._watcher(watch)),
            lambda found: None if found is None else _stat(found),
        )

    def children(self, path: str, watch: Callback | None = None) -> Future[list[str]]:
        return self._call(lambda: self._kazoo.get_children_async(self._full(path), self._watcher(watch)), sorted)

    def set(self, path: str, data: bytes, version: int = -1) -> Future[Stat]:
        return self._call(lambda: self._kazoo.set_async(self._full(path), bytes(data), version), _stat)

    def delete(self, path: str, version: int = -1) -> Future[None]:
        return self._call(lambda: self._kazoo.delete_async(self._full(path), version), lambda _: None)

    def multi(self, operations: Sequence[Operation]) -> Future[list[Any]]:
        operations = list(operations)

        def commit() -> Any:
            transaction = self._kazoo.transaction()
            for operation in operations:
                self._add(transaction, operation)
            return transaction.commit_async()

        def results(found: list[Any]) -> list[Any]:
            self._raise_first(found)
            return [self._result(operation, result) for operation, result in zip(operations, found, strict=True)]

        return self._call(commit, results)

    # --- the session ----------------------------------------------------------------------------------------------

    def on_session(self, callback: Callable[[str], None]) -> None:
        self._listeners.append(callback)

    def session_id(self) -> int:
        return self._session

    def close(self) -> None:
        """End the session. Waits for kazoo's threads, which is short."""
        if not self._closed:
            self._closed = True
            self._session = 0
            self._kazoo.stop()
            self._kazoo.close()

    def _on_kazoo_state(self, state: str) -> None:
        """On kazoo's thread."""
        session = self._kazoo.client_id[0] if state == KazooState.CONNECTED and self._kazoo.client_id else 0
        self._loop.call_threadsafe(lambda: self._state_changed(state, session))

    def _state_changed(self, state: str, session: int) -> None:
        if self._closed:
            return
        if state == KazooState.CONNECTED:
            word = "resumed" if session == self._session else "connected"
            self._session = session
        elif state == KazooState.LOST:
            word, self._session = "expired", 0
        else:
            word = "suspended"
        for listener in list(self._listeners):
            listener(word)

    # --- plumbing -------------------------------------------------------------------------------------------------

    def _call(self, start: Callable[[], Any], convert: Callable[[Any], T]) -> Future[T]:
        future: Future[T] = Future()
        if self._closed:
            future.fail(ZooKeeperError("the door is closed"))
            return future
        self._reads.flush()  # what was asked before
        result = start()
        # rawlink calls on kazoo's thread
        result.rawlink(lambda done: self._loop.call_threadsafe(lambda: self._finish(future, done, convert)))
        return future

    def _finish(self, future: Future[T], done: Any, convert: Callable[[Any], T]) -> None:
        error = done.exception
        if error is not None:
            future.fail(self._error(error))
            return
        try:
            value = convert(done.value)
        except ZooKeeperError as refused:
            future.fail(refused.with_traceback(None))  # its frames have the future
        else:
            future.resolve(value)

    def _error(self, error: BaseException) -> ZooKeeperError:
        self._kazoo.complain(error)
        return _error(error)

    def _raise_first(self, results: list[Any]) -> None:
        """A refused transaction answers with one error of its own and "rolled back" or "not reached" for the others."""
        errors = [result for result in results if isinstance(result, Exception)]
        followers = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
        for error in errors:
            if not isinstance(error, followers):
                raise self._error(error)
        if errors:
            raise self._error(errors[0])

    def _read_together(self, paths: Sequence[str]) -> Future[list[Answer]]:
        def start() -> Any:
            result = self._kazoo.handler.async_result()
            self._kazoo._call(MultiRead(paths), result)  # noqa: SLF001 - kazoo has no public way for requests of others
            return result

        return self._call(start, lambda answers: answers)

    def _found(self, answer: Answer) -> tuple[bytes, Stat]:
        if isinstance(answer, Exception):
            raise self._error(answer)
        return answer[0], _stat(answer[1])

    def _stat_found(self, answer: Answer) -> Stat | None:
        return None if isinstance(answer, exceptions.NoNodeError) else self._found(answer)[1]

    def _watcher(self, watch: Callback | None) -> Callable[[Any], None] | None:
        if watch is None:
            return None
        loop = self._loop
        return lambda _event: loop.call_threadsafe(watch)

    def _full(self, path: str) -> str:
        return (self._chroot + path if path != "/" else self._chroot) or "/"

    def _own(self, full: str) -> str:
        return full[len(self._chroot) :] or "/"

    def _add(self, transaction: Any, operation: Operation) -> None:
        path = self._full(operation.path)
        match operation:
            case Create():
                transaction.create(
                    path, bytes(operation.data), ephemeral=operation.ephemeral, sequence=operation.sequential
                )
            case SetData():
                transaction.set_data(path, bytes(operation.data), operation.version)
            case Delete():
                transaction.delete(path, operation.version)
            case Check():
                transaction.check(path, operation.version)

    def _result(self, operation: Operation, found: Any) -> Any:
        match operation:
            case Create():
                return self._own(found)
            case SetData():
                return _stat(found)
            case _:
                return None


def _stat(found: ZnodeStat) -> Stat:
    return Stat(found.version, found.czxid, found.mzxid, found.ephemeralOwner, found.cversion)


def _converted(read: Future[Answer], convert: Callable[[Answer], T]) -> Future[T]:
    future: Future[T] = Future()

    def answered(read: Future[Answer]) -> None:
        try:
            future.resolve(convert(read.result()))
        except ZooKeeperError as refused:
            future.fail(refused.with_traceback(None))  # its frames have the future

    read.then(answered)
    return future


def _error(error: BaseException) -> ZooKeeperError:
    for theirs, ours in _ERRORS:
        if isinstance(error, theirs):
            return ours(str(error))
    return ZooKeeperError(f"{type(error).__name__}: {error}")
