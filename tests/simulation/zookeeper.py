"""ZooKeeper in memory, behind the door: sessions, ephemerals, watches that fire once, and messages that take time.

    server = ZooKeeperServer(loop.call_later)               # any call_later(seconds, callback): the simulator's clock
    zookeeper = server.connect(session_timeout_s=2.0)       # a door: what a broker gets

A call travels to the server, is applied there, and its answer travels back; each leg takes `latency()` seconds and
keeps its order. A watch event reaches a client before any answer that could show the change, as ZooKeeper promises.
What can go wrong:

    zookeeper.suspend()   the connection breaks and both sides notice; calls under way fail, applied or not
    zookeeper.cut()       messages vanish silently; the client notices after two thirds of its timeout
    zookeeper.resume()    the connection is back: "resumed", or "expired" and "connected" where the session had ended
    zookeeper.expire()    the server ends the session now; the client hears of it and gets a new one
    zookeeper.kill()      the client's process dies; nothing is ever called back, the session ends by its timeout

What the table of ACLs does not let a broker do (`quota.contracts.zookeeper`) is an AssertionError in the middle of the
simulation, not an answer: no broker's code may even try. `connect(party=None)` may do everything.

A session without a connection ends after its timeout. Calls made while there is no connection wait for the next one
and fail if the session has expired by then (as kazoo's do).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dataplane.doors import Callback, Check, Create, Delete, Operation, SetData, Stat, ZooKeeperError
from dataplane.tasks import Future
from quota.contracts.zookeeper import Party, Right, row_to_make
from tests.simulation.zookeeper_tree import Event, Tree

CallLater = Callable[[float, Callback], Any]
Work = Callable[["_Link"], Any]
_FIRES = {"created": ("data",), "changed": ("data",), "deleted": ("data", "children"), "children": ("children",)}


class ZooKeeperServer:
    """The whole ensemble, as one server that never fails by itself."""

    def __init__(self, call_later: CallLater, latency: Callable[[], float] = lambda: 0.0) -> None:
        self.call_later = call_later
        self.latency = latency
        self.tree = Tree()
        self._links: dict[int, _Link | None] = {}  # by session; None: no connection at the moment
        self._detachments: dict[int, int] = {}  # how often each session lost its connection
        self._next_session = 0x1000

    def connect(self, session_timeout_s: float = 2.0, party: Party | None = Party.BROKERS) -> ZooKeeperClient:
        """A new client; its first session opens one round trip from now."""
        client = ZooKeeperClient(self, session_timeout_s, party)
        client.resume()
        return client

    def write(self, operations: Sequence[Operation], session: int = 0) -> list[Any]:
        """Apply at once, watches included: also how a test changes something behind everybody's back."""
        results, events = self.tree.transact(operations, session)
        self.publish(events)
        return results

    def publish(self, events: Sequence[Event]) -> None:
        """Send the watch events of changes to whoever watches."""
        for kind, path in events:
            for link in list(self._links.values()):
                if link is not None:
                    link.fire(_FIRES[kind], path)

    def open_session(self) -> int:
        self._next_session += 1
        self._links[self._next_session] = None
        return self._next_session

    def attach(self, session: int, link: _Link) -> None:
        """A session has a connection."""
        self._links[session] = link

    def detach(self, session: int, timeout_s: float) -> None:
        """A session has lost its connection: it ends unless another is attached in time."""
        if session not in self._links:
            return
        self._links[session] = None
        times = self._detachments[session] = self._detachments.get(session, 0) + 1

        def end_if_still_detached() -> None:
            if self._links.get(session, "gone") is None and self._detachments[session] == times:
                self.end_session(session)

        self.call_later(timeout_s, end_if_still_detached)

    def has_session(self, session: int) -> bool:
        return session in self._links

    def end_session(self, session: int) -> None:
        """Its ephemeral nodes go. Harmless when it has ended."""
        if self._links.pop(session, "gone") != "gone":
            for path in self.tree.ephemerals(session):
                self.write([Delete(path)])


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class _Watch:
    """One watch that a client set: it fires once."""

    def __init__(self, fire: Callback) -> None:
        self.fire = fire


class _Link:
    """One connection of a session: two queues in order, and the watches that were set through it."""

    def __init__(self, server: ZooKeeperServer, session: int) -> None:
        self.server = server
        self.session = session
        self.open = True
        self._up: deque[tuple[Work, Future[Any]]] = deque()
        self._down: deque[Callback] = deque()
        self._in_flight: dict[int, Future[Any]] = {}  # by identity, in order
        self._server_watches: dict[tuple[str, str], list[_Watch]] = {}
        self._watches: list[_Watch] = []  # that the client waits for

    def send(self, work: Work, future: Future[Any]) -> None:
        self._up.append((work, future))
        self._in_flight[id(future)] = future
        self.server.call_later(self.server.latency(), self._arrive)

    def watch(self, kind: str, path: str, callback: Callback) -> None:
        """Called at the server, while it applies a read."""
        watch = _Watch(callback)
        self._server_watches.setdefault((kind, path), []).append(watch)
        self._watches.append(watch)

    def fire(self, kinds: Sequence[str], path: str) -> None:
        for kind in kinds:
            for watch in self._server_watches.pop((kind, path), []):
                self._answer(lambda watch=watch: self._fire(watch))  # type: ignore[misc]

    def drop(self) -> None:
        """No message arrives any more in either direction."""
        self.open = False

    def lose(self, error: ZooKeeperError) -> None:
        """The client notices: what was under way has failed and every watch fires, for nobody knows what was missed."""
        self.drop()
        for future in list(self._in_flight.values()):
            future.fail(error)
        for watch in list(self._watches):
            watch.fire()

    def _fire(self, watch: _Watch) -> None:
        self._watches.remove(watch)
        watch.fire()

    def _arrive(self) -> None:
        if not self.open:
            return
        work, future = self._up.popleft()
        try:
            result, error = work(self), None
        except ZooKeeperError as failure:
            result, error = None, failure

        def answered() -> None:
            self._in_flight.pop(id(future), None)
            if error is None:
                future.resolve(result)
            else:
                future.fail(error)

        self._answer(answered)

    def _answer(self, message: Callback) -> None:
        self._down.append(message)
        self.server.call_later(self.server.latency(), self._deliver)

    def _deliver(self) -> None:
        if self.open:
            self._down.popleft()()


class ZooKeeperClient:
    """The door of one broker, and the simulator's handles on it."""

    def __init__(self, server: ZooKeeperServer, session_timeout_s: float, party: Party | None) -> None:
        self._server = server
        self._party = party
        self._timeout_s = session_timeout_s
        self._session = 0
        self._link: _Link | None = None
        self._told: str | None = None  # the last word to the listeners
        self._waiting: list[tuple[Work, Future[Any]]] = []
        self._listeners: list[Callable[[str], None]] = []
        self._closed = False

    # --- the door -------------------------------------------------------------------------------------------------

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False, parents: bool = False
    ) -> Future[str]:
        def work(link: _Link) -> str:
            self._may_make(path)
            if parents:
                self._server.publish(self._server.tree.create_parents(path))
            created: str = self._write([Create(path, data, ephemeral, sequential)], link)[0]
            return created

        return self._call(work)

    def get(self, path: str, watch: Callback | None = None) -> Future[tuple[bytes, Stat]]:
        def work(link: _Link) -> tuple[bytes, Stat]:
            node = self._server.tree.node(path)
            self._may(path, Right.READ)
            if watch is not None:
                link.watch("data", path, watch)
            return node.data, node.stat

        return self._call(work)

    def exists(self, path: str, watch: Callback | None = None) -> Future[Stat | None]:
        def work(link: _Link) -> Stat | None:
            node = self._server.tree.find(path)
            self._may(path, Right.READ)
            if watch is not None:
                link.watch("data", path, watch)
            return None if node is None else node.stat

        return self._call(work)

    def children(self, path: str, watch: Callback | None = None) -> Future[list[str]]:
        def work(link: _Link) -> list[str]:
            names = self._server.tree.children(path)
            self._may(path, Right.READ)
            if watch is not None:
                link.watch("children", path, watch)
            return names

        return self._call(work)

    def set(self, path: str, data: bytes, version: int = -1) -> Future[Stat]:
        return self._call(lambda link: self._write([SetData(path, data, version)], link)[0])

    def delete(self, path: str, version: int = -1) -> Future[None]:
        return self._call(lambda link: self._write([Delete(path, version)], link)[0])

    def multi(self, operations: Sequence[Operation]) -> Future[list[Any]]:
        frozen = list(operations)
        return self._call(lambda link: self._write(frozen, link))

    def on_session(self, callback: Callable[[str], None]) -> None:
        self._listeners.append(callback)

    def session_id(self) -> int:
        return self._session

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._link is not None:
                self._link.drop()
            self._server.end_session(self._session)
            self._session = 0

    # --- the simulator's handles ----------------------------------------------------------------------------------

    def suspend(self) -> None:
        if self._link is not None:
            self._detach()
            self._notice()

    def cut(self) -> None:
        if self._link is not None:
            link = self._link
            self._detach()
            self._server.call_later(self._timeout_s * 2 / 3, lambda: self._notice() if self._link is link else None)

    def resume(self) -> None:
        self._server.call_later(self._server.latency(), self._reconnect)

    def expire(self) -> None:
        self._server.end_session(self._session)
        self.suspend()
        self.resume()

    def kill(self) -> None:
        self._closed = True
        self._listeners.clear()
        if self._link is not None:
            self._detach()

    # --- what the table lets this client do -----------------------------------------------------------------------

    def _write(self, operations: Sequence[Operation], link: _Link) -> list[Any]:
        for operation in operations:
            match operation:
                case Create():
                    self._may_make(operation.path)
                case Delete():
                    self._may(_parent(operation.path), Right.DELETE)
                case SetData():
                    self._may(operation.path, Right.WRITE)
                case Check():
                    self._may(operation.path, Right.READ)
        return self._server.write(operations, link.session)

    def _may_make(self, path: str) -> None:
        """The node, below the first of its parents that is there."""
        if self._party is not None:
            row_to_make(path)
            above = _parent(path)
            while self._server.tree.find(above) is None:
                above = _parent(above)
            self._may(above, Right.CREATE)

    def _may(self, path: str, right: Right) -> None:
        if self._party is not None and self._server.tree.find(path) is not None:
            assert row_to_make(path).allows(self._party, right), f"{self._party} may not {right.name} {path}"

    # --- inside ---------------------------------------------------------------------------------------------------

    def _call(self, work: Work) -> Future[Any]:
        future: Future[Any] = Future()
        if self._closed:
            future.fail(ZooKeeperError("closed"))
        elif self._link is None:
            self._waiting.append((work, future))
        else:
            self._link.send(work, future)
        return future

    def _detach(self) -> None:
        """The server no longer hears this client; the session ends unless it comes back in time."""
        assert self._link is not None
        self._link.drop()
        self._server.detach(self._session, self._timeout_s)

    def _notice(self) -> None:
        link, self._link = self._link, None
        if link is not None and not self._closed:
            self._tell("suspended")
            link.lose(ZooKeeperError("the connection was lost"))

    def _reconnect(self) -> None:
        if self._closed or (self._link is not None and self._link.open):
            return
        self._notice()
        resumed = self._server.has_session(self._session)
        if not resumed:
            if self._session:
                self._session = 0
                self._tell("expired")
                lost, self._waiting = self._waiting, []
                for _, future in lost:
                    future.fail(ZooKeeperError("the session has expired"))
            self._session = self._server.open_session()
        self._link = _Link(self._server, self._session)
        self._server.attach(self._session, self._link)
        waiting, self._waiting = self._waiting, []
        for work, future in waiting:
            self._link.send(work, future)
        self._tell("resumed" if resumed else "connected")

    def _tell(self, state: str) -> None:
        if state != self._told:
            self._told = state
            for listener in list(self._listeners):
                listener(state)
