"""The door to ZooKeeper: the only module of the master that imports kazoo. Everything comes back on the asyncio loop.

Reads answer None where a node does not exist. A call that fails for want of a connection or session raises
`ZooKeeperLost`, a compare-and-set or create that somebody else won raises `ZooKeeperConflict`. Watches fire once, and
also when the connection is lost: read again, and watch again in the same call.

Session states, as callbacks on the loop: "connected" (a session is usable, an old or a new one), "suspended" (no
connection; the session may live on), "expired" (the session is gone, its ephemeral nodes with it).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError, RolledBackError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

from quota.contracts.zookeeper_login import Access
from quota.zookeeper.client import Client

logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # the states below say it in fewer lines

STATES = {
    KazooState.CONNECTED: "connected",
    KazooState.SUSPENDED: "suspended",
    KazooState.LOST: "expired",
}
CALL_TIMEOUT_S = 5.0
Watch = Callable[[], None]


class ZooKeeperLost(Exception):  # noqa: N818 - a state of affairs, not a bug
    """No connection, no session, or no answer in time: the outcome of a write is unknown."""


class ZooKeeperConflict(Exception):  # noqa: N818 - see above
    """A guarded write lost: somebody else wrote first."""


@dataclass(frozen=True, slots=True)
class Node:
    """What a node held, and the version that guards writing it back."""

    data: bytes
    version: int
    ephemeral_owner: int


class ZooKeeper:
    """One client, which reconnects by itself; a lost session is followed by a new one."""

    def __init__(self, hosts: str, *, chroot: str, session_timeout_ms: int, access: Access) -> None:
        self._chroot = chroot
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[str], None]] = []
        self._client = Client(
            hosts,
            access,
            chroot=chroot,
            timeout=session_timeout_ms / 1000,
            connection_retry=KazooRetry(max_tries=-1, max_delay=1.0),
        )
        self._client.add_listener(self._state_changed)

    def on_state(self, listener: Callable[[str], None]) -> None:
        """Call with every new state."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Begin to connect; returns at once."""
        self._client.start_async()

    async def stop(self) -> None:
        """End the session: ephemeral nodes go at once."""
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._client.stop()
        self._client.close()

    @property
    def session_id(self) -> int:
        """Of the current session; 0 before the first."""
        return int((self._client.client_id or (0, b""))[0])

    async def get(self, path: str, watch: Watch | None = None) -> Node | None:
        """A node; the watch fires when it changes or goes, and where there is none, when it appears."""
        try:
            data, stat = await self._call(self._client.get_async(self._chroot + path, watch=self._watcher(watch)))
        except NoNodeError:
            if watch:
                appeared = self._client.exists_async(self._chroot + path, watch=self._watcher(watch))
                if await self._call(appeared) is not None:
                    return await self.get(path, watch)
            return None
        return Node(data, stat.version, stat.ephemeralOwner)

    async def children(self, path: str, watch: Watch | None = None) -> list[str] | None:
        """Names in order; the watch fires when one comes or goes."""
        try:
            names = await self._call(self._client.get_children_async(self._chroot + path, watch=self._watcher(watch)))
        except NoNodeError:
            return None
        return sorted(names)

    async def ensure(self, path: str, data: bytes = b"") -> None:
        """Make the node, and its parents, where it does not exist. Who may not make it may find it there."""
        if await self._call(self._client.exists_async(self._chroot + path)) is not None:
            return
        try:
            await self._call(self._client.create_async(self._chroot + path, data, makepath=True))
        except ZooKeeperConflict:
            return

    async def set_and_create(self, path: str, data: bytes, version: int, ephemeral: str, content: bytes) -> None:
        """Write one node by compare-and-set *and* create an ephemeral one, both or neither."""
        transaction = self._client.transaction()
        transaction.set_data(self._chroot + path, data, version=version)
        transaction.create(self._chroot + ephemeral, content, ephemeral=True)
        for result in await self._call(transaction.commit_async()):
            if isinstance(result, NodeExistsError | BadVersionError):
                raise ZooKeeperConflict(type(result).__name__)
            if isinstance(result, KazooException) and not isinstance(result, RolledBackError):
                self._client.complain(result)
                raise ZooKeeperLost(type(result).__name__)

    async def _call(self, result: Any) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        result.rawlink(lambda done: self._loop.call_soon_threadsafe(_resolve, future, done))
        try:
            return await asyncio.wait_for(future, CALL_TIMEOUT_S)
        except NoNodeError:
            raise
        except (NodeExistsError, BadVersionError) as error:
            raise ZooKeeperConflict(type(error).__name__) from error
        except (KazooException, KazooTimeoutError, TimeoutError) as error:
            self._client.complain(error)
            raise ZooKeeperLost(type(error).__name__) from error

    def _watcher(self, watch: Watch | None) -> Callable[[object], None] | None:
        if watch is None:
            return None
        return _Watcher(self._loop, watch)

    def _state_changed(self, state: str) -> None:
        """In a thread of kazoo's."""
        _on_loop(self._loop, self._announce, STATES[state])

    def _announce(self, state: str) -> None:
        for listener in self._listeners:
            listener(state)


@dataclass(frozen=True)
class _Watcher:
    """Equal for equal watches, so that kazoo, which keeps them in a set, holds one per path however often it is set."""

    loop: asyncio.AbstractEventLoop
    watch: Watch

    def __call__(self, event: object) -> None:
        del event
        _on_loop(self.loop, self.watch)


def _on_loop(loop: asyncio.AbstractEventLoop, fn: Callable[..., None], *args: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(fn, *args)


def _resolve(future: asyncio.Future[Any], done: Any) -> None:
    if future.done():
        return
    if done.exception is None:
        future.set_result(done.value)
    else:
        future.set_exception(done.exception)
