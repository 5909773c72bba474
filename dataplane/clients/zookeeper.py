"""The clients' door to ZooKeeper: the only file here that knows kazoo. And where brokers are, as ZooKeeper has it.

Errors of kazoo leave it as errors of ours: `NoBrokerError`, which may be tried again, where ZooKeeper does not answer.

**Who may.** Kafka's own clusters let everybody read and write below /brokers and /consumers. One of ours does not: its nodes
are for its own processes and its operators (`quota.contracts.zookeeper`), so that a client that speaks to ZooKeeper is one of an
operator, with an `Access`. Tenants have their port, and their groups at the coordinator.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState

from dataplane.clients.errors import ConfigurationError, NoBrokerError
from dataplane.clients.settings import Address, ConnectionSettings, addresses
from quota.contracts.zookeeper_login import NOBODY, Access
from quota.zookeeper.client import Client

LOG = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
Watch = Callable[[object], object]
"""Called once, on kazoo's thread, with what has happened; the same function given twice for one node is called once."""
_BROKERS = "/brokers/ids"


def _ours(do: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(do)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return do(*args, **kwargs)
        except (KazooException, KazooTimeoutError) as error:
            raise NoBrokerError(f"ZooKeeper: {error or type(error).__name__}") from error

    return wrapped


class ZooKeeper:
    """A session. `hosts` is ZooKeeper's own connect string, with a chroot or without."""

    def __init__(
        self, hosts: str, *, session_ms: int = 6_000, connect_ms: int = 6_000, access: Access = NOBODY
    ) -> None:
        self._client = Client(hosts, access, timeout=session_ms / 1000)
        self._answer_s = (session_ms + connect_ms) / 1000
        self._listeners: list[Callable[[bool], object]] = []
        self._is_lost = False
        self._client.add_listener(self._changed)
        if not self._client.start_async().wait(connect_ms / 1000):
            self.close()
            raise NoBrokerError(f"ZooKeeper at {hosts} does not answer within {connect_ms} ms")

    def close(self) -> None:
        """Ends the session: what is ephemeral goes with it."""
        self._client.stop()
        self._client.close()

    @property
    def session(self) -> int:
        """The number of the session that ephemeral nodes of ours belong to."""
        number = self._client.client_id
        return 0 if number is None else int(number[0])

    def on_expiry(self, do: Callable[[bool], object]) -> None:
        """`do(False)` when the session is over and all that is ephemeral gone; `do(True)` when there is a new one.

        It is called on kazoo's thread, and must not wait.
        """
        self._listeners.append(do)

    def _changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._is_lost = True
            self._tell(False)
        elif state == KazooState.CONNECTED and self._is_lost:
            self._is_lost = False
            self._tell(True)

    def _tell(self, is_new: bool) -> None:
        for listener in self._listeners:
            listener(is_new)

    def _answer(self, asked: Any) -> Any:
        """While there is no connection kazoo keeps requests for the next one: so long we do not wait."""
        return asked.get(timeout=self._answer_s)

    # --- nodes --------------------------------------------------------------------------------------------------------

    @_ours
    def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """Sorted; none where there is no such node. `watch` is called when they change."""
        try:
            return sorted(self._answer(self._client.get_children_async(path, watch)))
        except NoNodeError:
            if watch is not None and self._answer(self._client.exists_async(path, watch)) is not None:
                return self.children(path, watch)  # it has come this moment
            return []

    @_ours
    def read(self, path: str, watch: Watch | None = None) -> bytes | None:
        """A node's data; None where there is none. `watch` as with `children`, when the data changes."""
        try:
            return bytes(self._answer(self._client.get_async(path, watch))[0])
        except NoNodeError:
            if watch is not None and self._answer(self._client.exists_async(path, watch)) is not None:
                return self.read(path, watch)
            return None

    @_ours
    def ensure(self, path: str) -> None:
        """The node and all above it are there."""
        self._answer(self._client.ensure_path_async(path))

    @_ours
    def write(self, path: str, data: bytes) -> None:
        """The node has this data; it is made with all above it where it is missing."""
        try:
            self._answer(self._client.set_async(path, data))
        except NoNodeError:
            try:
                self._answer(self._client.create_async(path, data, makepath=True))
            except NodeExistsError:
                self._answer(self._client.set_async(path, data))

    @_ours
    def claim(self, path: str, data: bytes) -> bool:
        """An ephemeral node of ours. False: it is somebody else's; true as well where we have it already."""
        try:
            self._answer(self._client.create_async(path, data, ephemeral=True, makepath=True))
        except NodeExistsError:
            try:
                there, about = self._answer(self._client.get_async(path))
            except NoNodeError:  # gone this moment
                return False
            return bool(there == data and about.ephemeralOwner == self.session)
        return True

    @_ours
    def release(self, path: str) -> None:
        """What we have claimed is not ours any more. Somebody else's node stays: ours may have gone without our knowing."""
        with suppress(NoNodeError):
            _, about = self._answer(self._client.get_async(path))
            if about.ephemeralOwner == self.session:
                self._answer(self._client.delete_async(path, about.version))

    @_ours
    def remove(self, path: str) -> None:
        """The node is not there any more, whosever it was."""
        with suppress(NoNodeError):
            self._answer(self._client.delete_async(path))


def brokers_of(zookeeper: ZooKeeper, settings: ConnectionSettings) -> list[Address]:
    """Where registered brokers are, at listeners of the protocol that is set. Raises NoBrokerError."""
    found: list[Address] = []
    for name in zookeeper.children(_BROKERS):
        data = zookeeper.read(f"{_BROKERS}/{name}")
        if data is not None:
            found += addresses_of(data, settings.security_protocol)[:1]
    if not found:
        raise NoBrokerError(f"ZooKeeper knows no broker with a listener of {settings.security_protocol}")
    return found


def addresses_of(data: bytes, protocol: str) -> list[Address]:
    """A registration's addresses at listeners of a protocol, in any of its forms since Kafka 0.7."""
    try:
        document: Any = json.loads(data)
    except ValueError:
        document = None
    if not isinstance(document, dict):  # 0.7: creator:host:port; in the documents host:port
        return _or_none(":".join(data.decode(errors="replace").split(":")[-2:]))
    protocols = document.get("listener_security_protocol_map", {})
    found: list[Address] = []
    for endpoint in document.get("endpoints", ()):
        listener, _, address = endpoint.partition("://")
        if protocols.get(listener, listener) == protocol:
            found += _or_none(address)
    if not found and not document.get("endpoints") and protocol == "PLAINTEXT":  # 0.8
        found += _or_none(f"{document.get('host')}:{document.get('port')}")
    return found


def _or_none(text: str) -> list[Address]:
    try:
        return addresses(text)
    except ConfigurationError:
        LOG.warning("a broker is registered with an address that is none: %s", text)
        return []
