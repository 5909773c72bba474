"""A client of ZooKeeper that says who it is and makes every node with the table's ACL. No other is made anywhere.

kazoo takes an ACL with each call that creates, and gives it to the missing parents too, for which it is wrong. So ACLs are put
into requests where all of them pass, however they came about (create, ensure_path, makepath, transactions): no caller can forget
one. Logins are said by kazoo itself, on every connection, before any request of ours.

**Founding.** ZooKeeper's first node `/` is everybody's until somebody says otherwise, and whoever may create there can be
the controller. So the first client that finds the cluster's root open makes the directories and gives the root its ACL. It
does so only with ACLs on, which an operator sets when all processes say who they are; and only to a root that is ours alone:
where other applications have nodes beside ours, it stays open, with a line in the log. A chroot of our own has no such trouble.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NoAuthError, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.serialization import Auth, Create, Create2, Transaction
from kazoo.protocol.states import KazooState
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id

from quota.contracts.zookeeper import DIRECTORIES, ROOT, ROWS, row_to_make
from quota.contracts.zookeeper_login import DIGEST, OPEN, Access, Entry, Tls
from quota.zookeeper.tls import context_of

LOG = logging.getLogger(__name__)
_FOUNDING_S = 10.0
_AGAIN_S = 10.0
_TRIES = 3
_SYSTEM = ("/zookeeper/quota", "/zookeeper")
"""ZooKeeper's own, which everybody might fill."""
_DIRECTORIES = tuple(
    dict.fromkeys(
        "/".join(path.split("/")[:depth]) for path in DIRECTORIES for depth in range(2, len(path.split("/")) + 1)
    )
)
"""With their parents, which come first."""
_OURS = frozenset(row.pattern.split("/")[1] for row in ROWS)


class Client(KazooClient):  # type: ignore[misc]  # kazoo has no types
    """A kazoo client as `Access` says.

    `chroot` is where callers put the cluster's root if they write it into paths themselves; a chroot in `hosts` is kazoo's.
    Further options are kazoo's.
    """

    def __init__(self, hosts: str, access: Access, *, chroot: str = "", **options: Any) -> None:
        logger = logging.getLogger("kazoo.client")
        logger.addFilter(_without_logins)
        super().__init__(
            hosts,
            auth_data=[(DIGEST, login) for login in access.logins],
            handler=SequentialThreadingHandler() if access.tls is None else _TlsHandler(access.tls),
            logger=logger,
            **options,
        )
        self.access = access
        self._base = chroot
        self._acls: dict[str, list[ACL]] = {}
        self._founded = not access.closed
        self._founding_over = threading.Event()
        self._complained = -_AGAIN_S
        if access.closed:
            self.add_listener(self._found_once)

    # --- ACLs ---------------------------------------------------------------------------------------------------------

    def _call(self, request: Any, async_object: Any) -> Any:
        """Where all requests pass. Raises UnlistedPathError for a node that is to be made without a row."""
        if isinstance(request, Create | Create2):
            request = self._with_acl(request)
        elif isinstance(request, Transaction):
            operations = [
                self._with_acl(each) if isinstance(each, Create | Create2) else each for each in request.operations
            ]
            request = Transaction(operations)
        return super()._call(request, async_object)

    def _with_acl(self, request: Any) -> Any:
        path = self.within(request.path)
        if not self.access.closed or path is None or path == ROOT:
            return request._replace(acl=OPEN_ACL_UNSAFE)  # the root itself: see "Founding"
        row = row_to_make(path)
        acl = self._acls.get(row.pattern)
        if acl is None:
            acl = self._acls[row.pattern] = acl_of(self.access.entries(row))
        return request._replace(acl=acl)

    def within(self, path: str) -> str | None:
        """A whole path as the table has it; None above the cluster's root, or beside it."""
        base = self.root
        if base == ROOT:
            return path
        if path == base:
            return ROOT
        return path[len(base) :] if path.startswith(f"{base}/") else None

    @property
    def root(self) -> str:
        """The whole path of the cluster's root."""
        return self._base or self.chroot or ROOT

    def whole(self, path: str) -> str:
        """A path of the table's as calls want it: kazoo adds a chroot of its own by itself."""
        return (self._base + path).rstrip("/") or ROOT

    def complain(self, error: BaseException) -> None:
        """To the log, where ZooKeeper says that we may not; at most every ten seconds."""
        now = time.monotonic()
        if isinstance(error, NoAuthError) and now >= self._complained + _AGAIN_S:
            self._complained = now
            said = ", ".join(dict.fromkeys(login.partition(":")[0] for login in self.access.logins)) or "nobody"
            LOG.error(
                "ZooKeeper refuses a request: we say that we are %s. Either our secret is another than that of who made the "
                "node, or its ACL is not the table's (manage.py zookeeper_secure --check)",
                said,
            )

    # --- founding -----------------------------------------------------------------------------------------------------

    def _found_once(self, state: str) -> None:
        """On kazoo's thread, which must not wait."""
        if state == KazooState.CONNECTED and not self._founded:
            self._founded = True
            self.handler.spawn(self._found)

    def _found(self) -> None:
        try:
            for _ in range(_TRIES):
                with suppress(BadVersionError):  # another client was faster: is it done?
                    _Founding(self).run()
                    break
        except NoAuthError:
            pass  # the root is somebody's already: all is well
        except (KazooException, KazooTimeoutError) as error:
            self._founded = False  # with the next connection
            LOG.info("not known whether ZooKeeper's root is open to everybody: %s", type(error).__name__)
        finally:
            self._founding_over.set()

    def wait_founded(self, timeout_s: float) -> None:
        """Until this client itself makes and closes nothing any more that nobody asked for."""
        if self.access.closed:
            self._founding_over.wait(timeout_s)


class _Founding:
    """Makes the directories of a cluster whose root is everybody's, and closes them and it.

    A node is made open and closed when all below it is: the table may not let us make anything in a directory that we have
    made. The root comes last. Who finds it open goes on where another has stopped.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def run(self) -> None:
        """Raises KazooException, KazooTimeoutError."""
        client = self._client
        at = client.whole(ROOT)
        if _answer(client.exists_async(at)) is None:
            _answer(client.ensure_path_async(at))
        if not is_open(_answer(client.get_acls_async(at))[0]):
            return
        for path in _DIRECTORIES:
            with suppress(NodeExistsError, NoAuthError):
                self._make_openly(path)
        for path in reversed(_DIRECTORIES):
            with suppress(NoAuthError, NoNodeError):
                self._close(path)
        others = others_at(client)
        if others:
            LOG.warning(
                "everybody may make and delete nodes in ZooKeeper's %s, and with it be a controller: it has nodes of others "
                "(%s), so it is left open. Give this cluster a chroot of its own",
                client.root,
                ", ".join(others[:5]),
            )
            return
        for path in _SYSTEM if client.root == ROOT else ():
            with suppress(NoAuthError):  # by one who did not come to the end
                self._close(path)
        self._close(ROOT)  # last: then all is done
        LOG.info("ZooKeeper's %s was everybody's and is not any more", client.root)

    def _make_openly(self, path: str) -> None:
        client = self._client
        asked = client.handler.async_result()
        whole = f"{client.root.rstrip('/')}{path}"
        KazooClient._call(client, Create(whole, b"", acl_of(OPEN), 0), asked)  # noqa: SLF001 - past our own ACLs
        _answer(asked)

    def _close(self, path: str) -> None:
        client = self._client
        acl, stat = _answer(client.get_acls_async(client.whole(path)))
        if is_open(acl):
            wanted = acl_of(client.access.entries(row_to_make(path)))
            _answer(client.set_acls_async(client.whole(path), wanted, stat.aversion))


def others_at(client: Client) -> list[str]:
    """Names beside ours at the cluster's root: applications that share it. Raises as kazoo."""
    return sorted(set(_answer(client.get_children_async(client.whole(ROOT)))) - _OURS)


def _answer(asked: Any) -> Any:
    return asked.get(timeout=_FOUNDING_S)


def acl_of(entries: Sequence[Entry]) -> list[ACL]:
    """As kazoo has it."""
    return [ACL(int(entry.rights), Id(entry.scheme, entry.id)) for entry in entries]


def is_open(acl: Sequence[ACL]) -> bool:
    """Whether everybody may do anything by it."""
    return any((each.id.scheme, each.id.id) == (OPEN[0].scheme, OPEN[0].id) for each in acl)


def _without_logins(record: logging.LogRecord) -> bool:
    """At level DEBUG kazoo writes every request to its log, those with passwords among them."""
    return not any(isinstance(each, Auth) for each in cast("tuple[object, ...]", record.args or ()))


class _TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """kazoo's threads, with connections secured as `quota.zookeeper.tls` says.

    kazoo's own TLS trusts the system's authorities beside ours and, if not told otherwise, takes a certificate of any host.
    """

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls

    def create_connection(self, address: tuple[str, int], hostname: str, timeout: float, **_: object) -> socket.socket:
        """Connected, and past the handshake. Raises OSError."""
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return context_of(self._tls).wrap_socket(plain, server_hostname=hostname)
        except OSError as error:
            plain.close()
            LOG.warning("no TLS to ZooKeeper at %s:%d: %s", hostname, address[1], error)
            raise

    def select(self, readers: Any, writers: Any, others: Any, timeout: float | None = None) -> Any:
        """What TLS has decrypted already is not in the socket any more: nobody would wake us for it."""
        waiting = [each for each in readers if callable(getattr(each, "pending", None)) and each.pending()]
        if waiting:
            return waiting, [], []
        return super().select(readers, writers, others, timeout)
